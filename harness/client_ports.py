"""The port of clients: Kafka clients, time and tasks, as a workload needs them, in real or in virtual time.

What a workload does is a coroutine. In real time each runs in a thread of its own, and what it awaits blocks that
thread (:mod:`harness.clients.threaded_clients`); in virtual time the simulation resumes it
(:mod:`harness.simulation.stack.simulated_clients`). Either way a coroutine awaits nothing but what is declared here.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from harness.client_properties import Access
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.polls import OutOfRange
from harness.history.recorder import Change, PolledRecord, Recorder
from harness.history.sends import Answer, Completion
from harness.membership import Membership
from harness.model import NO_EPOCH, Offset, ProcessId, TopicPartition
from harness.orders import DeleteOrder, Pending, SpoofedFetchOrder
from harness.payload import EVERYTHING, Carried, ProducerRecord

ResultT = TypeVar("ResultT")

Isolation = Literal["read_uncommitted", "read_committed"]

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

Answered = Callable[[Sequence[int], Sequence[Answer]], None]
"""Takes which records of a batch have been answered, counted from 0, and their answers."""


def not_recorded(which: Sequence[int], answers: Sequence[Answer]) -> None:
    """An :data:`Answered` for clients whose sends are no part of the history."""


BEGINNING: Offset = -2
"""A position: the first offset still held. librdkafka's ``OFFSET_BEGINNING``."""

TRUNCATED = "_LOG_TRUNCATION"
"""The error of a poll by which a consumer learns that its log was truncated below its position (KIP-320)."""

MOVED_ERRORS = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", TRUNCATED})
"""Errors of a poll after which the position is not in the log: the log was truncated, or its start moved."""

ABORTED = "ABORTED"
"""The error of a transaction that its client has aborted, as it was to."""

_BROKER_SHARE = 0.75
"""How much of the client's own timeout a broker is given to answer a request that is sent once: its answer, and a wrong
one too, must reach a client that still waits."""


class Polled(NamedTuple):
    """What one poll delivered: records in order, the name of the error that ended it, and the position it is about."""

    records: list[PolledRecord]
    error: str | None
    out_of_range: OutOfRange | None = None


class Bounds(NamedTuple):
    """The log's start offset, and the high watermark (exclusive)."""

    start_offset: Offset
    end_offset: Offset


class OffsetForTime(NamedTuple):
    """The first offset whose record is as young as was asked for, None: no record is; ``error``: there is no answer."""

    offset: Offset | None
    error: str | None = None


class CommittedOffset(NamedTuple):
    """The offset of the next record to read, and the epoch of the last one read; ``NO_EPOCH``: not known."""

    offset: Offset
    leader_epoch: int = NO_EPOCH

    @classmethod
    def after(cls, record: PolledRecord) -> CommittedOffset:
        """Where a consumer goes on that has read ``record``."""
        return cls(record.offset + 1, NO_EPOCH if record.leader_epoch is None else record.leader_epoch)


class Transacted(NamedTuple):
    """How a transaction ended: ``ok``: committed; ``fail``: proven never to be; and where its records are, if known."""

    kind: Completion
    offsets: list[Offset | None]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a producer sends: whether again, whether the cluster can detect duplicates, and how much at once.

    Attributes:
        retries: how often it repeats a request that was refused, or not answered in ``retry_after_s``.
        idempotent: whether batches are numbered, so that a leader refuses the second of two (KIP-98).
        batch: how many records go into one batch.
        linger_s: how long a batch that is not full waits for more records; None: until no more are handed over.
        in_flight: how many requests to a broker may be under way; None: as many as the client takes to be right.
        compression: of batches.
    """

    retries: int = 0
    retry_after_s: float = 1.0
    idempotent: bool = False
    batch: int = 1
    linger_s: float | None = None
    in_flight: int | None = None
    compression: Compression = "none"

    def request_timeout_s(self, timeout_s: float) -> float:
        """How long a broker may take, when the producer waits ``timeout_s`` for each answer."""
        return self.retry_after_s if self.retries else timeout_s * _BROKER_SHARE


PLAIN = Manner()
"""Every record at once and alone, and once only."""

NUMBERED = Manner(retries=1000, idempotent=True)
"""Every record at once and alone, and again until its time is up: the leader detects duplicates."""


class Producer(Protocol):
    """Sends batches; any number of tasks may send with it at once."""

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        """Send records, in as few requests as the manner permits, and wait for their answers; returns them in order.

        ``answered`` is called with every answer, soon after it has come, in any task, one call after the other. Once
        the clients stop the rest is ``info``.
        """
        ...

    def close(self) -> None:
        """Close the connections; what is under way ends with ``info``."""
        ...


class TransactionalSends(Protocol):
    """Sends records in transactions, one transaction at a time (KIP-98)."""

    @property
    def turn(self) -> AbstractAsyncContextManager[Any]:
        """Held while an order of this producer is carried out: several tasks may have orders for it."""
        ...

    @property
    def offsets(self) -> Sequence[Offset | None]:
        """Where the records of the open transaction are, as far as is known; empty: none is open."""
        ...

    async def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """Send ``batch`` in the transaction that is open, or in a new one; None: it stays open."""
        ...

    async def end(self, *, commits: bool) -> Transacted:
        """Commit or abort the transaction that is open."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class TransactionalProducer(TransactionalSends, Protocol):
    """Does so as an application's producer does, and commits offsets of a group in its transactions, too."""

    async def initialise(self) -> str | None:
        """Take the transactional id over, which ends what a process before has left open; the error's name.

        None: it is taken over. The first sending does so by itself.
        """
        ...

    async def commit_offsets(
        self, member: Member, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Transacted | None:
        """Commit ``offsets`` of the group of ``member``, in the transaction that is open; None: it stays open.

        They take effect when the transaction is committed. The coordinator of the group refuses them if ``member``,
        of the same clients, is none of the present generation any more (KIP-447).
        """
        ...


class Consumer(Protocol):
    """Reads assigned partitions with ``auto.offset.reset=error``."""

    @property
    def isolation(self) -> Isolation:
        """Whether it is given records of transactions that are not committed."""
        ...

    @property
    def positions(self) -> Mapping[TopicPartition, Offset]:
        """By partition, the offset of the next record."""
        ...

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        """Wait up to ``timeout_s`` for up to ``max_records`` records; an error ends what is delivered."""
        ...

    async def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds | None:
        """What there is to read of ``partition``, asked of its leader; None when it does not answer in time."""
        ...

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """Ask the leader for the first offset whose record is of ``timestamp_ms``, since the Unix epoch, or later."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class GroupOffsets(Protocol):
    """The committed offsets of one consumer group, asked of its coordinator without joining the group."""

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """What is committed, partitions without it left out; or the error's name."""
        ...

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """Commit ``offsets``, once, and wait for the answer; the error's name, None for success."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


Begins = Mapping[TopicPartition, CommittedOffset]
"""Where a member begins to read partitions that it has been given; ``BEGINNING`` stands for the first offset held. What
is left out its client finds by itself, from what its group has committed."""

Rebalanced = Callable[[Change, Sequence[TopicPartition]], Coroutine[Any, Any, Begins | None]]
"""Runs within a poll, or a close, of a member: while it is given partitions, before it gives them up, or after it has
lost them. It may commit, and ask what is committed. For partitions that are given it returns where to begin; None: that
is not known, and the poll ends with an error.
"""

CommitAnswered = Callable[[str | None], None]
"""Takes the answer to an asynchronous commit: the error's name, None for success."""

LEFT_UNKNOWN = "_STATE"
"""The error of a poll after a :data:`Rebalanced` that returned None."""


class Member(Protocol):
    """A consumer that has subscribed, and reads what its group gives it."""

    @property
    def isolation(self) -> Isolation:
        """Whether it is given records of transactions that are not committed."""
        ...

    @property
    def positions(self) -> Mapping[TopicPartition, CommittedOffset]:
        """What it may commit: of the partitions that it has, those of which it was given records."""
        ...

    @property
    def generation(self) -> int:
        """The generation of its group, or its member epoch; ``NO_GENERATION``: it is in none."""
        ...

    @property
    def metadata(self) -> object:
        """What a transactional producer of the same clients says of the member to the coordinator of its group."""
        ...

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        """Wait up to ``timeout_s``, and longer during a rebalance, for up to ``max_records`` records."""
        ...

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """Commit ``offsets`` as the member that it is, and wait; the error's name, None for success."""
        ...

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """Commit ``offsets`` likewise, and do not wait: ``answered`` is called within a later call of the member.

        It may never be called, if the coordinator does not answer before the member is closed.
        """
        ...

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """What its group has committed, partitions without it left out; or the error's name."""
        ...

    def stand_still(self, seconds: float) -> None:
        """For that long send no heartbeats, as if the whole client stood still, and learn nothing of the group.

        Without effect where a client's heartbeats cannot be stopped; librdkafka sends them in a thread of its own.
        """
        ...

    async def close(self) -> None:
        """Give up what it has, leave the group, unless it is a static member, and close the connections."""
        ...


class Clients(Protocol):
    """Clients and tasks that are stopped together, and the time that passes for them."""

    @property
    def stopping(self) -> bool:
        """Whether :meth:`stop` was called: tasks end as soon as they can."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of the run's monotonic clock."""
        ...

    def wall_ms(self) -> int:
        """The clients' wall clock, in milliseconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; not much longer than until the clients stop."""
        ...

    def begin(self, work: Coroutine[Any, Any, ResultT]) -> Pending[ResultT]:
        """Begin a task, which runs beside whatever else runs."""
        ...

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """From outside of any task, let time pass until ``holds``; returns whether it came to that in time."""
        ...

    def stop(self) -> None:
        """Have every task end: outstanding sends end with ``info``. Does not wait."""
        ...

    def join(self, timeout_s: float | None = None) -> None:
        """Let time pass until every task has ended, ``timeout_s`` for each at the most; None: as long as that takes.

        Raises:
            BaseException: what ended a task that is no answer: a bug.
        """
        ...

    def producer(self, name: str, acks: int, timeout_s: float, manner: Manner = PLAIN) -> Producer:
        """A producer that waits ``timeout_s`` for the answer to a batch. ``acks``: -1 (all), 1 or 0."""
        ...

    def consumer(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> Consumer:
        """A consumer of ``positions``; those with a leader epoch in ``epochs`` are validated first (KIP-320)."""
        ...

    def group(self, group: str) -> GroupOffsets:
        """A client for the offsets of ``group``."""
        ...

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: Rebalanced) -> Member:
        """A member of a group, which joins it with its first poll."""
        ...

    def process(self) -> ClientProcess | None:
        """Clients in a process of their own, which stops with these; None: these cannot be killed.

        librdkafka and kafka-python run in the process of the harness.
        """
        ...

    async def delete_records(self, order: DeleteOrder, orders: DeleteRecordsLog) -> str | None:
        """Ask leaders to delete records, and note it in ``orders``; the first error's name, None for success."""
        ...

    async def spoof_fetch(self, order: SpoofedFetchOrder) -> str | None:
        """Fetch as a follower would; what went wrong, None: the broker answered as it answers a follower."""
        ...


class ClientProcess(Clients, Protocol):
    """Clients that can be killed together, as ``kill -9`` of an application's process does it.

    Its tasks are those of the clients that have made it, and are stopped and joined with them.
    """

    def kill(self, *, silently: bool) -> None:
        """End all of its clients at once. Idempotent.

        They leave no group and end no transaction, and what they wait for ends with an error. What they have sent
        still arrives.

        Args:
            silently: whether no broker learns of it, as if the clients' machine had lost its power: their connections
                stay, and nothing comes over them. Else they end, as the kernel ends those of a killed process, which
                is all that happens in real time.
        """
        ...


@runtime_checkable
class TransactionalClients(Clients, Protocol):
    """Clients that can run transactions, too."""

    def transactional_producer(self, name: str, timeout_s: float, *, numbered: bool = False) -> TransactionalProducer:
        """``name``: for its transactional id. ``numbered``: of version 2 (KIP-890), unless a library decides that."""
        ...

    def wire_producer(self, name: str, timeout_s: float, version: int) -> TransactionalSends:
        """Likewise, but one that speaks transaction version 0 or 2 itself, and sends each batch once."""
        ...


@dataclass(frozen=True, slots=True)
class RealTime:
    """Where a run in real time takes place.

    Attributes:
        access: to the brokers, for any client on this machine.
        directory: the run directory.
        log: takes what clients have to say.
        failed: called, in any thread, with what has ended background load before its time; a run in virtual time learns
            of it when the load stops.
        prefix: with what the names of groups begin, on a cluster that others use.
    """

    access: Access
    directory: Path
    log: logging.Logger
    failed: Callable[[BaseException], None]
    prefix: str = ""


@dataclass(frozen=True)
class ClientContext:
    """What the clients of a run share.

    Attributes:
        new_clients: makes clients that are stopped together.
        partitions: every partition of the scenario.
        recorder: of the history.
        seed: of the run.
        carried: what of a record the cluster stores as it was sent.
        real_time: None in virtual time, which passes nowhere.
    """

    new_clients: Callable[[], Clients]
    partitions: Sequence[TopicPartition]
    recorder: Recorder
    seed: int
    carried: Carried = EVERYTHING
    real_time: RealTime | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_process(self) -> ProcessId:
        """A process number that was never used before in this run; any thread may ask."""
        return ProcessId(next(self._numbers))
