"""What a schedule asks of clients, as orders: sends, reads of a group, commits, deletions, spoofed fetches.

An order is begun, and looked at until it is done: the runner lets time pass in between, real or virtual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from harness.model import NO_EPOCH, NodeId, Offset, TopicPartition

ResultT_co = TypeVar("ResultT_co", covariant=True)

Ending = Literal["commit", "abort", "open"]
"""How a part of a transaction ends; ``open``: another part follows."""

ALL_ACKS = -1
"""``acks`` of a request that waits for every in-sync replica."""


class Sent(NamedTuple):
    """What became of one record. ``error`` is the error's name unless ``kind`` is ``ok``.

    Of a transaction that is still open ``ok`` only says that the leader has taken it.
    """

    partition: TopicPartition
    value: int
    kind: Literal["ok", "fail", "info"]
    offset: Offset | None
    error: str | None


class Consumed(NamedTuple):
    """What a group member has read.

    Attributes:
        incident: the last thing that happened to it besides reading: ``reset``: its position was out of range, or there
            was none, and it went on where its policy said; ``out_of_range``: the same without a policy: it gave up;
            ``truncated``: its log was found truncated; ``unreachable``: it did not come to the end; None: nothing.
        values: by partition, what it read, in order; None for what is no workload's record.
        positions: by partition, where it stopped: the offset of the next record.
    """

    incident: Literal["reset", "out_of_range", "truncated", "unreachable"] | None
    values: Mapping[TopicPartition, Sequence[int | None]]
    positions: Mapping[TopicPartition, Offset]


class Done(NamedTuple):
    """How a request without content went: ``error`` is the error's name, None for success."""

    error: str | None


@dataclass(frozen=True, slots=True)
class SendOrder:
    """``count`` records to each partition, ``batch`` of them per request, one request at a time; see ``steps.Send``.

    Attributes:
        acks: -1 (all), 1 or 0.
        timeout_s: after which whatever has not been answered is ``info``.
        age_ms: the records' CreateTime is the client's wall clock minus this.
        retries: how often a request that was refused or not answered in ``retry_after_s`` is sent again as it is.
        producer: orders with the same name share a producer id and its sequence numbers, if they are idempotent.
        transaction: how the transaction ends that the records of each partition are, or are a part of; None: there is
            none.
        transaction_version: by which version of the protocol a producer that speaks it itself runs the transaction;
            None: librdkafka does.
        transactional_id: of the producer's transactions; None: its name.
    """

    partitions: tuple[TopicPartition, ...]
    count: int
    acks: int = ALL_ACKS
    timeout_s: float = 20.0
    batch: int = 1
    age_ms: int = 0
    retries: int = 0
    retry_after_s: float = 1.0
    producer: str | None = None
    idempotent: bool = False
    transaction: Ending | None = None
    transaction_version: int | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumeOrder:
    """Read partitions as a member of a group, up to the high watermarks of now; see ``steps.Consume``.

    Attributes:
        age_ms: with ``start`` at a ``time``, that time is the client's wall clock minus this.
    """

    group: str
    partitions: tuple[TopicPartition, ...]
    start: Literal["committed", "beginning", "end", "time"] = "committed"
    reset: Literal["earliest", "latest", "none"] = "none"
    checks_epochs: bool = False
    commit: bool = False
    timeout_s: float = 20.0
    age_ms: int = 0


@dataclass(frozen=True, slots=True)
class CommitOrder:
    """Commit offsets for a group that has no members; ``leader_epoch`` goes with each of them."""

    group: str
    offsets: Mapping[TopicPartition, Offset]
    leader_epoch: int = NO_EPOCH
    timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class DeleteOrder:
    """Delete the records before ``before``, None meaning the high watermark, at the partitions' leaders."""

    partitions: tuple[TopicPartition, ...]
    before: Offset | None
    timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class SpoofedFetchOrder:
    """One Fetch request to the broker ``to`` that claims to be from the follower ``replica``."""

    to: NodeId
    replica: NodeId
    partitions: tuple[TopicPartition, ...]
    offset: Offset
    leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    timeout_s: float = 20.0


class Pending(Protocol[ResultT_co]):
    """An order under way."""

    def result(self) -> ResultT_co | None:
        """What came of it; None while it is under way. Never waits.

        Raises:
            BaseException: whatever ended it that is no answer: a bug.
        """
        ...


class ScheduledClient(Protocol):
    """Does what a schedule orders and records it; no method waits. It serves every workload, on every target.

    It never repeats a measured operation unless the order says so, and calls none ``fail`` without proof that it did
    not happen.
    """

    def send(self, order: SendOrder) -> Pending[Sequence[Sent]]:
        """Begin to send records; the result has one entry per record, in the order of sending per partition."""
        ...

    def consume(self, order: ConsumeOrder) -> Pending[Consumed]:
        """Begin to read as a member of a group; every poll goes into the history, under a new process."""
        ...

    def commit(self, order: CommitOrder) -> Pending[Done]:
        """Begin to commit offsets."""
        ...

    def delete_records(self, order: DeleteOrder) -> Pending[Done]:
        """Begin to delete records."""
        ...

    def spoof_fetch(self, order: SpoofedFetchOrder) -> Pending[Done]:
        """Begin to fetch as a follower would; done when the answer has come."""
        ...

    def stop(self) -> None:
        """End what is under way, wait for its completions, and close every client. Orders may follow."""
        ...
