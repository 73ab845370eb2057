"""What a :class:`World` is made of: brokers with logs that survive a kill, messages, and clients' requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.error_codes import ErrorCode
from harness.model import NO_OFFSET, NodeId, Offset
from harness.replication.messages import (
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    BatchSpan,
    EpochEntry,
    LogStartedAt,
    LogStartRaised,
    NextEpochLookup,
    NextFetch,
    RaiseLogStart,
    ReplicaEvent,
    StartLogAt,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica

ENOSPC = 28


class Batch(NamedTuple):
    span: BatchSpan
    values: tuple[str, ...]


class Record(NamedTuple):
    """One record as it lies in a log."""

    offset: Offset
    value: str
    leader_epoch: int


@dataclass
class Broker:
    """What survives a kill, and the process if it lives.

    Attributes:
        fetching: whether it waits for the answer to a fetch or a lookup.
        clean_epoch: the broker epoch with which it last shut down cleanly; -1: it did not.
    """

    node: NodeId
    replica: Replica | None = None
    log: list[Batch] = field(default_factory=list)
    log_start: Offset = 0
    epochs: tuple[EpochEntry, ...] = ()
    checkpointed_watermark: Offset = 0
    incarnation: int = 0
    broker_epoch: int = -1
    clean_epoch: int = -1
    fetching: bool = False
    disk_full: bool = False
    clock_ns: int = 0

    @property
    def records(self) -> list[Record]:
        return [
            Record(batch.span.base_offset + position, value, batch.span.leader_epoch)
            for batch in self.log
            for position, value in enumerate(batch.values)
            if batch.span.base_offset + position >= self.log_start
        ]

    @property
    def log_end(self) -> Offset:
        return self.log[-1].span.end_offset if self.log else self.log_start

    @property
    def spans(self) -> tuple[BatchSpan, ...]:
        return tuple(batch.span for batch in self.log)

    def store(self, effect: Append | Truncate | RaiseLogStart | StartLogAt, now_ns: int) -> ReplicaEvent:
        """Do what storage is asked; returns its answer."""
        match effect:
            case Append(payload, spans):
                if self.disk_full:
                    return AppendFailed(ENOSPC)
                self.log += [Batch(span, values) for span, values in zip(spans, payload, strict=True)]  # type: ignore[call-overload]
                return Appended(now_ns)
            case Truncate(to_offset):
                self.log = [batch for batch in self.log if batch.span.end_offset <= to_offset]
                return Truncated(self.log_end, self.spans)
            case RaiseLogStart(to_offset):
                self.log_start = to_offset
                self.log = [batch for batch in self.log if batch.span.end_offset > to_offset] or self.log[-1:]
                return LogStartRaised(to_offset)
            case StartLogAt(offset):
                self.log, self.log_start = [], offset
                return LogStartedAt(offset)

    def lose(self, batches: int) -> None:
        """The last so many batches had not reached the disk when the power failed."""
        self.log = self.log[: len(self.log) - batches]

    def wipe(self) -> None:
        """Somebody has put in an empty disk."""
        self.log, self.log_start, self.epochs, self.checkpointed_watermark, self.clean_epoch = [], 0, (), 0, -1


@dataclass(eq=False)
class Message:
    """Something on its way to ``destination``; a connection's messages die with either process."""

    kind: str
    destination: NodeId
    incarnation: int
    arrive: Callable[[], None]
    lost: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Produced:
    """A client's produce request: its values, and what came of it."""

    values: tuple[str, ...]
    acks: int
    answer: AnswerProduce | None = None

    @property
    def acknowledged(self) -> bool:
        return self.answer is not None and self.answer.error is ErrorCode.NONE


class FetchToken(NamedTuple):
    """Whose fetch or lookup it is, where its log starts, and what frees that replica to send the next one."""

    node: NodeId
    incarnation: int
    wanted: NextFetch | NextEpochLookup
    finish: Callable[[], None]
    log_start: Offset = NO_OFFSET


class IsrToken(NamedTuple):
    """Whose proposal it is, and what happens when its answer is lost."""

    node: NodeId
    incarnation: int
    lost: Callable[[], None]
