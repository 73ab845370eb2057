"""What a workload is: clients that do things and write down everything they did and saw.

What a schedule asks of them is an *order*. An order is begun, and looked at until it is done: whoever drives the run
lets time pass in between, real or virtual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict

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


class Unread(NamedTuple):
    """How far the final read of a partition has come that has not come to its end.

    Attributes:
        begun: whether a consumer has begun to read it.
        position: the offset that it waits for; None: no leader has said where the log begins.
        end: the offset up to which, exclusive, it is to read; None: no leader has said.
        error: the name of the error that ended the last consumer before it came there; None: there was none.
    """

    begun: bool = False
    position: Offset | None = None
    end: Offset | None = None
    error: str | None = None

    def come_to(self, position: Offset) -> Unread:
        """The same when a consumer stands at ``position``: what matters is how far any of them came."""
        return self._replace(position=position if self.position is None else max(position, self.position))

    def bounded(self, start: Offset, end: Offset) -> Unread:
        """The same when a leader has said from where to where the log can be read."""
        return self.come_to(start)._replace(end=end)


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


@dataclass(frozen=True, slots=True)
class ConsumeOrder:
    """Read partitions as a member of a group, up to the high watermarks of now; see ``steps.Consume``."""

    group: str
    partitions: tuple[TopicPartition, ...]
    start: Literal["committed", "beginning", "end"] = "committed"
    reset: Literal["earliest", "latest", "none"] = "none"
    checks_epochs: bool = False
    commit: bool = False
    timeout_s: float = 20.0


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


class WorkloadParameters(BaseModel, ABC):
    """What a scenario may write about a workload: the fields are the workload's own, the runner asks the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    @abstractmethod
    def has_background_load(self) -> bool:
        """Whether producers send by themselves, beside what a schedule orders."""

    @property
    @abstractmethod
    def answered_within_s(self) -> float:
        """After how many seconds a background producer takes what has not been answered for indeterminate."""

    @property
    @abstractmethod
    def numbers_records(self) -> bool:
        """Whether producers with acks=all number their records (KIP-98)."""

    @property
    @abstractmethod
    def asked_acks(self) -> frozenset[int]:
        """What the requests of the background load ask for: -1 (all), 1 or 0."""

    @property
    def appends_once(self) -> bool:
        """Whether no record of the background load is appended twice: each is numbered, or sent only once.

        With acks 0 or 1 librdkafka sends again only after an answer that comes before the append.
        """
        return self.numbers_records or ALL_ACKS not in self.asked_acks

    @abstractmethod
    def without_numbers(self) -> Self:
        """The same for generations and releases before 0.11, which do not know numbered records."""


class Pending(Protocol[ResultT_co]):
    """An order under way."""

    def result(self) -> ResultT_co | None:
        """What came of it; None while it is under way. Never waits.

        Raises:
            BaseException: whatever ended it that is no answer: a bug.
        """
        ...


class Workload(Protocol):
    """Clients against a bootstrap address, recording every operation.

    An implementation is one file in ``workloads/``, whose ``KIND`` is listed in ``workloads/__init__``. It never
    retries a measured operation unless an order says so, and never calls a failed one ``fail`` without proof that it
    did not happen. No method blocks for longer than it takes to begin, except where it says so.
    """

    name: ClassVar[str]

    def start(self) -> None:
        """Start background load, where the workload has any, and the tailing consumers."""
        ...

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
        """Begin to fetch as a follower would; done when the answer is there."""
        ...

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """Up to where (exclusive) the tailing consumers have read each partition; 0 where they have read nothing."""
        ...

    def stop(self) -> None:
        """Stop sending, tailing and the final read; waits for every outstanding completion. Idempotent.

        What is ordered afterwards is begun as before.
        """
        ...

    def final_read(self, timeout_s: float) -> bool:
        """Read every partition from the start to its end with a fresh consumer; waits until that is done.

        Returns whether the end was reached everywhere: False after ``timeout_s``, or when errors have ended consumers
        of every partition that is left. The read goes on then, until :meth:`stop`, with new consumers where errors
        ended the last ones, each from the start; the next call is about the same read.
        """
        ...

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """By partition, how far the final read has come; without those that it has read to their ends."""
        ...
