"""The facts about a run: what both engines reduce its evidence to, for the rules of ``checkers`` that work on facts.

A run has many rows, and few turning points: elections, changes of an ISR, truncations, restarts. Facts grow with those,
and with the number of partitions, replicas and producers, but not with the number of operations. So they fit into the
driver, where ``checkers`` judges them in plain Python, once for both engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from harness.metadata_facts import MetadataEpoch, MetadataRefusal, ToldStart


class StateInterval(NamedTuple):
    """Consecutive ``state`` rows of one node about one replica in which nothing but offsets changes.

    A log end that falls begins a new one, and so does a log start that moves. Every row of another kind is an interval
    of its own, also one about no partition in particular (``topic`` and ``partition`` None).

    Attributes:
        sequence: of the first row, as are ``begin_ns``, ``detail`` and the offsets called ``first``.
        end_sequence: of the last row, as are ``end_ns``, ``high_watermark`` and ``log_end_offset``.
        rose: the first row in which the high watermark is above that of the row before it in the interval; None: it
            never rises.
        fell: the last row in which the high watermark is below that of the row before it in the interval; None: it
            never falls.
        crossed: the first ``state`` row whose high watermark or log start lies beyond its log end, or whose log start
            lies beyond its high watermark; None for none.
    """

    run: str
    topic: str | None
    partition: int | None
    node: int
    incarnation: int
    sequence: int
    begin_ns: int
    kind: str
    role: str | None
    leader: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    isr: tuple[int, ...] | None
    detail: str | None
    first_high_watermark: int | None
    first_log_end: int | None
    log_start_offset: int | None
    end_sequence: int
    end_ns: int
    high_watermark: int | None
    log_end_offset: int | None
    rose: int | None
    fell: int | None
    crossed: int | None


class LogEpoch(NamedTuple):
    """The records of one leader epoch in one replica's log, as collected at the end.

    Attributes:
        first: the lowest of their offsets; ``last``: the highest.
        offsets: how many different offsets; ``contents``: how many different records (by offset, value and batch).
        damaged: the lowest offset of a record that is not intact; None for none.
    """

    run: str
    topic: str
    partition: int
    node: int
    leader_epoch: int
    first: int
    last: int
    offsets: int
    contents: int
    damaged: int | None = None


class ProducerLog(NamedTuple):
    """The records of one epoch of an idempotent producer in one replica's log, where something is wrong with them.

    Its sequences are not each there once and in order, or it begins before an older epoch has ended.

    Attributes:
        first: the lowest sequence number, ``last`` the highest.
        records: how many records there are; ``sequences``: how many different sequence numbers.
        offset: the lowest offset of them.
        older_until: the highest offset of a record of an older epoch, where that is behind ``offset``; else None.
        falls: whether a record lies behind one of a higher sequence number (of a number that is there several times
            the last record counts).
    """

    run: str
    topic: str
    partition: int
    node: int
    producer_id: int
    producer_epoch: int
    first: int
    last: int
    records: int
    sequences: int
    offset: int
    older_until: int | None = None
    falls: bool = False


class Silence(NamedTuple):
    """A second or more without an acknowledgement of a partition, although a client tried to send meanwhile.

    It begins with the acknowledgement before, or with the first attempt of all, and ends with the next one; without a
    next one, with the last attempt, or its completion.
    """

    run: str
    topic: str
    partition: int
    begin_ns: int
    end_ns: int


class Unwatched(NamedTuple):
    """More than :data:`UNWATCHED_NS` without a sample of a broker, in a sampled timeline.

    It lies between two looks in one life of the broker, or before one whose ``detail`` records for how long there was
    none (``unseen_ms``) although the broker was up, which is ``reported``.
    """

    run: str
    node: int
    incarnation: int
    begin_ns: int
    end_ns: int
    reported: bool


UNWATCHED_NS = 5_000_000_000
"""After how long without a look at a broker a timeline has to record it."""


class FirstAck(NamedTuple):
    """The first acknowledgement of a partition after the run's last fault was healed."""

    run: str
    topic: str
    partition: int
    time_ns: int


SILENCE_NS = 1_000_000_000
"""How long a silence lasts at least, and the resolution at which the history is searched for it."""


class Lag(NamedTuple):
    """Rows of a leader whose ISR has a replica that has no row meanwhile, and lacks what the leader has.

    The rows are of one version of the ISR, follow each other closely, and go on for as long as the run's
    ``guarantees.laggards_leave_ms`` at least.

    Attributes:
        node: the leader; ``member``: the replica that lags.
        sequence: of the first row, as is ``begin_ns``; ``end_sequence`` of the last, as is ``end_ns``.
        log_end: the leader's, in the first row; ``reached``: the member's, all the time.
    """

    run: str
    topic: str
    partition: int
    node: int
    incarnation: int
    leader_epoch: int
    member: int
    sequence: int
    begin_ns: int
    end_sequence: int
    end_ns: int
    log_end: int
    reached: int


class Stall(NamedTuple):
    """Rows of a leader whose high watermark is the same in all, and below what its log's end was in the first.

    The rows are of one version of the ISR, follow each other closely, and go on for as long as the run's
    ``guarantees.laggards_leave_ms`` at least.

    Attributes:
        node: the leader.
        isr: in all rows.
        sequence: of the first row, as is ``begin_ns``; ``end_sequence`` of the last, as is ``end_ns``.
        log_end: in the first row.
    """

    run: str
    topic: str
    partition: int
    node: int
    incarnation: int
    leader_epoch: int
    isr: tuple[int, ...]
    sequence: int
    begin_ns: int
    end_sequence: int
    end_ns: int
    high_watermark: int
    log_end: int


class AcksBelowMinIsr(NamedTuple):
    """Sends acknowledged with acks=all whose records one leader appended while the ISR that it knew was small.

    Smaller than the run's ``guarantees.min_insync_replicas``. The leader's rows are of one version of that ISR: the log
    ended at or before each record in the first of them and behind it in the last. Either a replica's log holds each
    record in the leader's epoch (``logged``), whenever it was acknowledged, or the acknowledgement came between the two
    rows.

    Attributes:
        node: the leader.
        members: how many were in the ISR.
        sequence: of the first row, as is ``begin_ns``; ``end_sequence`` of the last, as is ``end_ns``.
        first: the lowest offset that was acknowledged, ``last`` the highest.
        value: what was acknowledged at ``first``; ``row`` and ``acked_ns``: the history's row of that, and its time.
    """

    run: str
    topic: str
    partition: int
    node: int
    incarnation: int
    leader_epoch: int
    members: int
    sequence: int
    begin_ns: int
    end_sequence: int
    end_ns: int
    first: int
    last: int
    value: int
    row: int
    acked_ns: int
    logged: bool


LOOKS = 4
"""Into how many parts a laggard's time is cut: the leader must have written a row in each of them."""


class LostRange(NamedTuple):
    """Lost writes at consecutive offsets of one partition and one leader epoch (None: unknown).

    Attributes:
        end: one more than the last offset.
        first_ack_ns: when the first of them was acknowledged; ``last_ack_ns``: the last.
        acks: the least that a sender of them waited for.
        kept: of a sampled timeline, if the epoch is unknown: the nodes whose logs hold any of them in a message
            format without epochs (0 and 1), ascending.
    """

    run: str
    topic: str
    partition: int
    leader_epoch: int | None
    first: int
    end: int
    first_ack_ns: int
    last_ack_ns: int
    acks: int
    kept: tuple[int, ...] = ()


class ReadEpoch(NamedTuple):
    """The first and last offset (inclusive) at which polls returned a leader epoch with the records.

    Attributes:
        final: whether these are the polls of the final read, or the others.
        begin_ns: when the first of them ended.
    """

    run: str
    topic: str
    partition: int
    leader_epoch: int
    first: int
    last: int
    final: bool
    begin_ns: int


UNDESERVED = frozenset(
    {
        "INVALID_MSG",
        "INVALID_RECORD",
        "INVALID_REQUEST",
        "INVALID_REQUIRED_ACKS",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_VERSION",
    }
)
"""Errors, by librdkafka's names, by which a broker refuses a send as malformed; ``INVALID_MSG`` is CORRUPT_MESSAGE."""

OUT_OF_SEQUENCE = frozenset({"INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER"})
"""Errors by which a broker refuses a batch that does not follow on the last one of its idempotent producer."""


class Standing(NamedTuple):
    """Where an idempotent producer stood in a partition before a send that was refused.

    Attributes:
        leader_epoch: of the last record that it had been acknowledged there, as a log has it; ``offset`` likewise.
        acked_ns: when it was acknowledged; ``invoked_ns``: when the refused send began.
    """

    leader_epoch: int
    offset: int
    acked_ns: int
    invoked_ns: int


class Refusal(NamedTuple):
    """Sends that are in no transaction and ended with one error: either :data:`UNDESERVED` or :data:`OUT_OF_SEQUENCE`.

    The sends of one partition that ended with one error of the first sort are one. Each of the second sort is one of
    its own, and only where its process had sent to the partition before, was acknowledged each of those sends with
    acks=all, and a replica's log holds the last of them.

    Attributes:
        process: of the first such send, as are ``value``, ``row`` and ``time_ns`` (where and when it ended).
        sends: how many there are.
        standing: of the second sort; None of the first.
    """

    run: str
    topic: str
    partition: int
    error: str
    process: int
    value: int
    row: int
    time_ns: int
    sends: int
    standing: Standing | None = None


class UnfencedRead(NamedTuple):
    """The first record of a later leader epoch that a partition's polls were given in fetches naming an older one.

    Attributes:
        named: the leader epoch that the fetches named.
        leader_epoch: of the record, as are ``offset``, ``row`` (in the history) and ``time_ns``.
    """

    run: str
    topic: str
    partition: int
    named: int
    leader_epoch: int
    offset: int
    row: int
    time_ns: int


class Dependency(NamedTuple):
    """A transaction that follows from another one: the operation ``target`` from the operation ``source``.

    Attributes:
        kind: ``ww`` (it wrote the next record of a partition), ``wr`` (it read a record of it), ``wwr`` (it read a
            record that another client wrote after it); ``entangled`` instead of more edges than can be followed.
        offset: of the record written or read, as is ``value``; ``row`` is its row in the history.
        process: of ``target``.
    """

    run: str
    kind: str
    source: int
    target: int
    topic: str
    partition: int
    offset: int
    value: int
    row: int
    process: int


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts from the nodes' timelines."""

    intervals: Sequence[StateInterval] = ()
    lags: Sequence[Lag] = ()
    stalls: Sequence[Stall] = ()
    unwatched: Sequence[Unwatched] = ()
    metadata: Sequence[MetadataEpoch] = ()
    metadata_refusals: Sequence[MetadataRefusal] = ()
    told_starts: Sequence[ToldStart] = ()


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts from the replicas' logs."""

    log_epochs: Sequence[LogEpoch] = ()
    producer_logs: Sequence[ProducerLog] = ()


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """Facts from the clients' history."""

    silences: Sequence[Silence] = ()
    first_acks: Sequence[FirstAck] = ()
    read_epochs: Sequence[ReadEpoch] = ()
    unfenced_reads: Sequence[UnfencedRead] = ()
    refusals: Sequence[Refusal] = ()
    dependencies: Sequence[Dependency] = ()


@dataclass(frozen=True, slots=True)
class AckFacts:
    """What became of acknowledged records, by the history, the timelines and the logs."""

    lost_ranges: Sequence[LostRange] = ()
    acks_below_min_isr: Sequence[AcksBelowMinIsr] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about any number of runs."""

    nodes: NodeFacts = NodeFacts()
    logs: LogFacts = LogFacts()
    clients: ClientFacts = ClientFacts()
    acks: AckFacts = AckFacts()

    def of(self, run: str) -> Facts:
        """Those about one run."""
        return _each(lambda rows: [x for x in rows if x.run == run], self)


def joined(parts: Sequence[Facts]) -> Facts:
    """The facts of several runs as one."""
    return _each(lambda *several: [x for rows in several for x in rows], *parts)


def _each(made: Callable[..., list[Any]], *parts: Facts) -> Facts:
    """Facts of which each sort is ``made`` of the same sort of all ``parts``."""

    def group(sort: type[Any], *groups: Any) -> Any:
        return sort(**{f.name: made(*(getattr(one, f.name) for one in groups)) for f in fields(sort)})

    return Facts(
        group(NodeFacts, *(one.nodes for one in parts)),
        group(LogFacts, *(one.logs for one in parts)),
        group(ClientFacts, *(one.clients for one in parts)),
        group(AckFacts, *(one.acks for one in parts)),
    )
