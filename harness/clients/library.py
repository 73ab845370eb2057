"""What a client library does for the harness: clients whose calls block, each used as its class says.

:mod:`harness.clients.threaded_clients` makes the port of clients of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from harness.client_ports import (
    Answered,
    Begins,
    Bounds,
    CommitAnswered,
    CommittedOffset,
    Isolation,
    Manner,
    OffsetForTime,
    Polled,
    Transacted,
)
from harness.history.recorder import Change
from harness.history.sends import Answer
from harness.history.shares import Acknowledging
from harness.membership import Membership
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord
from harness.share_ports import Acquired, ShareMembership

OnRebalance = Callable[[Change, Sequence[TopicPartition]], Begins | None]
"""See :data:`harness.client_ports.Rebalanced`; called in the thread that polls, or closes, the member."""


class Sender(Protocol):
    """See :class:`harness.client_ports.Producer`; any number of threads may send with it."""

    def send_batch(
        self,
        partition: TopicPartition,
        batch: Sequence[ProducerRecord],
        *,
        give_up: threading.Event,
        answered: Answered,
    ) -> list[Answer]:
        """Send records and wait for their answers; once ``give_up`` is set, the rest is ``info``."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class TransactionalSender(Protocol):
    """See :class:`harness.client_ports.TransactionalProducer`; one thread at a time uses it."""

    @property
    def offsets(self) -> Sequence[Offset | None]:
        """See the port."""
        ...

    def initialise(self) -> str | None:
        """See the port."""
        ...

    def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """See the port."""
        ...

    def commit_offsets(self, metadata: object, offsets: Mapping[TopicPartition, CommittedOffset]) -> Transacted | None:
        """See the port; ``metadata``: of the member."""
        ...

    def end(self, *, commits: bool) -> Transacted:
        """See the port."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Reader(Protocol):
    """See :class:`harness.client_ports.Consumer`; one thread at a time uses it."""

    @property
    def isolation(self) -> Isolation:
        """See the port."""
        ...

    @property
    def positions(self) -> Mapping[TopicPartition, Offset]:
        """See the port."""
        ...

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See the port."""
        ...

    def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds:
        """See the port.

        Raises:
            EnvironmentFault: no leader answered in time.
        """
        ...

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """See the port."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class GroupOffsets(Protocol):
    """See :class:`harness.client_ports.GroupOffsets`; one thread at a time uses it."""

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """See the port."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See the port."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Member(GroupOffsets, Protocol):
    """See :class:`harness.client_ports.Member`; one thread at a time uses it."""

    @property
    def positions(self) -> Mapping[TopicPartition, CommittedOffset]:
        """See the port."""
        ...

    @property
    def generation(self) -> int:
        """See the port."""
        ...

    @property
    def metadata(self) -> object:
        """See the port."""
        ...

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See the port; ``answered`` is called in the thread that polls, or closes, the member."""
        ...

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See the port."""
        ...


class ClientLibrary(Protocol):
    """Makes clients of one library for the brokers of one cluster; ``name`` is a client's for the brokers' logs."""

    def sender(self, name: str, acks: int, timeout_s: float, manner: Manner) -> Sender:
        """See :meth:`harness.client_ports.Clients.producer`."""
        ...

    def transactional_sender(self, name: str, timeout_s: float) -> TransactionalSender:
        """See :meth:`harness.client_ports.TransactionalClients.transactional_producer`."""
        ...

    def reader(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> Reader:
        """See :meth:`harness.client_ports.Clients.consumer`."""
        ...

    def group_offsets(self, name: str, group: str) -> GroupOffsets:
        """See :meth:`harness.client_ports.Clients.group`."""
        ...

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: OnRebalance) -> Member:
        """See :meth:`harness.client_ports.Clients.member`."""
        ...

    def apart(self) -> ClientLibrary | None:
        """The same in a process of its own, which :meth:`close` kills; None: it runs in the harness's process."""
        ...

    def close(self) -> None:
        """Kill what the library has started besides the harness's process, and with it the clients. Idempotent."""
        ...


class ShareConsumer(Protocol):
    """See :class:`harness.share_ports.ShareConsumer`; one thread at a time uses it."""

    def acquire(self, timeout_s: float) -> Acquired:
        """See the port."""
        ...

    def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        """See the port."""
        ...

    def close(self) -> None:
        """See the port."""
        ...


@runtime_checkable
class SharingLibrary(ClientLibrary, Protocol):
    """A library that has share consumers, too."""

    def share_consumer(self, name: str, membership: ShareMembership) -> ShareConsumer:
        """See :meth:`harness.share_ports.SharingClients.share_consumer`."""
        ...

    def configure_group(self, group: str, configs: Mapping[str, str]) -> str | None:
        """See :meth:`harness.share_ports.SharingClients.configure_group`."""
        ...
