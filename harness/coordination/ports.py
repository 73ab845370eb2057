"""The ports by which a group or transaction coordinator uses its broker: appends to the log, timers, metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from harness.model import TopicPartition
from harness.wire.declaration import Message

Answer = Callable[[Message], None]
"""Answers a request, once."""

Stored = Callable[[int], None]
"""Takes Kafka's error code: 0 once all in-sync replicas have the records, otherwise why this is not certain."""


class LogRecord(NamedTuple):
    """A record of ``__consumer_offsets`` or ``__transaction_state``; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None


class Timer(Protocol):
    """A pending :meth:`CoordinatorPorts.call_later`."""

    def cancel(self) -> None:
        """Make sure that the callback will not run; harmless when it already has."""
        ...


class Caller(NamedTuple):
    """The client of a request: its name for itself, and its address."""

    client_id: str
    host: str


class ProducerIdentity(NamedTuple):
    """A producer of transactions, or an idempotent one: a process that takes its id over has a higher epoch."""

    producer_id: int
    epoch: int


class CoordinatorPorts(Protocol):
    """A broker, as a coordinator sees it that keeps what it knows in one partition of its topic."""

    def wall_ms(self) -> int:
        """The broker's wall clock, milliseconds since the Unix epoch."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` once, ``delay_ms`` monotonic milliseconds from now."""
        ...

    def store(self, records: Sequence[LogRecord], stored: Stored) -> None:
        """Append ``records`` to the partition with acks=all; calls ``stored`` once, later, never within this call."""
        ...


class Topics(Protocol):
    """The topics of the cluster, as far as the broker knows them."""

    @property
    def version(self) -> int:
        """Another number whenever they may be others."""
        ...

    def names(self) -> list[str]:
        """Every topic, sorted."""
        ...

    def topic_id(self, name: str) -> bytes | None:
        """The id of a topic; None: there is none of this name."""
        ...

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has; 0: there is none of this name."""
        ...

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: it is not known."""
        ...


class GroupPorts(CoordinatorPorts, Protocol):
    """A broker, as its groups see it."""

    @property
    def topics(self) -> Topics:
        """What members can subscribe to."""
        ...

    def new_member_id(self, prefix: str) -> str:
        """An id that no member has had, which begins with ``prefix``."""
        ...

    def store_in_transaction(self, records: Sequence[LogRecord], producer: ProducerIdentity, stored: Stored) -> None:
        """Like :meth:`store`, as a part of the producer's transaction."""
        ...


class TransactionPorts(CoordinatorPorts, Protocol):
    """A broker, as its transactions see it."""

    def new_producer_id(self, allocated: Callable[[int | None], None]) -> None:
        """Call ``allocated`` with a producer id that is new; None: no controller has answered."""
        ...

    def write_markers(
        self, producer: ProducerIdentity, partitions: Collection[TopicPartition], written: Callable[[], None],
        *, commits: bool,
    ) -> None:  # fmt: skip
        """Have leaders end the producer's transaction in these partitions; calls ``written`` once all have, later.

        It asks them again until they have; where another coordinator has taken over, it gives up without a call.
        """
        ...
