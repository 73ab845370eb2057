"""The port of share consumers (KIP-932), beside that of other clients in :mod:`harness.client_ports`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from harness.client_ports import Clients
from harness.history.sends import Answer
from harness.history.shares import Acknowledging, SharedRecord

AcquireMode = Literal["batch_optimized", "record_limit"]
"""How a share consumer is given records: whole batches, or no more records than it asked for (KIP-1206)."""


class Acquired(NamedTuple):
    """What one poll delivered, and the name of the error if it delivered nothing because of one."""

    records: list[SharedRecord]
    error: str | None


class ShareBounds(NamedTuple):
    """What brokers permit share groups to configure (KIP-932, KIP-1240).

    Attributes:
        least_lock_s: ``group.share.min.record.lock.duration.ms``, in seconds.
        most_deliveries: ``group.share.max.delivery.count.limit``.
    """

    least_lock_s: float
    most_deliveries: int


def share_bounds(settings: Mapping[str, str]) -> ShareBounds | None:
    """The bounds in brokers' settings, by Kafka's names; None: they have no such share groups."""
    lock_ms = settings.get("group.share.min.record.lock.duration.ms")
    deliveries = settings.get("group.share.max.delivery.count.limit")
    return None if lock_ms is None or deliveries is None else ShareBounds(int(lock_ms) / 1000, int(deliveries))


@dataclass(frozen=True, slots=True)
class ShareMembership:
    """How a consumer takes part in a share group.

    Attributes:
        group: which one.
        topics: what it subscribes to.
        acquire_mode: how it is given records.
        max_records: how many it is given in one poll; where whole batches are, about so many.
    """

    group: str
    topics: Sequence[str]
    acquire_mode: AcquireMode
    max_records: int


class ShareConsumer(Protocol):
    """Is given records of a share group, and acknowledges each of them explicitly.

    It must acknowledge all that a poll has delivered before it polls again.
    """

    async def acquire(self, timeout_s: float) -> Acquired:
        """Poll: wait up to ``timeout_s`` for records, which it holds until it acknowledges them, or its lock ends."""
        ...

    async def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        """Acknowledge records, and wait for the brokers' answers; returns the answer to each of them in order.

        ``ok``: the leader of the partition has confirmed it; ``fail``: it was not sent; else ``info``.
        """
        ...

    async def close(self) -> None:
        """Leave the group, which gives back what is not acknowledged, and close the connections."""
        ...


@runtime_checkable
class SharingClients(Clients, Protocol):
    """Clients among which there are share consumers, too."""

    def share_consumer(self, name: str, membership: ShareMembership) -> ShareConsumer:
        """A consumer that has subscribed, and joins its group with its first poll."""
        ...

    async def configure_group(self, group: str, configs: Mapping[str, str]) -> str | None:
        """Set configurations of a group (KIP-848's ``GROUP`` resource); the error's name, None for success."""
        ...
