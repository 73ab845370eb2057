"""A replica's log is sound: each offset once, bounds in order, intact records, each batch of a producer once.

* ``log-overlap``: a replica's log, as collected at the end, holds two different records at one offset (R5). A missing
  offset makes the run ``INVALID``: the log does not hold what its bounds promise, and whether the broker or the
  collector lost it is unknown; a lost or diverging record is a finding of its own.
* ``damaged-record``: a replica's disk holds, below the high watermark that it has in the end, a record whose bytes do
  not match their checksum (R9): it counts as a copy, and is none. One anomaly for each replica: the first.
* ``bounds-crossed``: a running broker reported a high watermark or a log start beyond its log end, or a log start
  beyond its high watermark (R8). On a dead node's disk a checkpoint may be ahead of the log that survived.
* ``uncommitted-deletion``: a leader deleted records above its high watermark (R8, KIP-107), according to the row of the
  deletion and the one before it. A follower that starts anew at its leader's log start does not count.
* ``repeated-sequence``: the final leader's log holds a sequence number of one epoch of an idempotent producer twice:
  a retry was appended again (R11).
* ``sequence-gap``: it lacks sequence numbers between the first and the last of one epoch of an idempotent producer, or
  has a record behind one of a higher number: the leader accepted a batch that did not follow on (R11).
* ``zombie-append``: in it a record of an older epoch of a producer lies behind one of a newer epoch: the leader
  accepted a fenced producer (R11).

Severity: ``VIOLATION``. A ``damaged-record`` is ``DOCUMENTED`` when a ``corrupt_log`` fault has damaged a log of that
node. A ``sequence-gap`` is ``DOCUMENTED`` after an unclean election of the partition that the
configuration permits. Both sequence kinds need sequences that do not wrap around at 2^31, and concern no topic of
Kafka's own: coordinators number nothing of what they write there in the name of a producer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.log_epochs import LogEpochs
from checkers.views.states import States
from faults import traits_of
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Evidence
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.facts import LogEpoch, LogFacts, ProducerLog, StateInterval
from harness.fault import DiskEffect
from harness.model import TopicPartition

LOG_OVERLAP = AnomalyKind(
    name="log-overlap",
    invariants=("R5", "T14"),
    meaning="A log holds two records at one offset.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_logs=True,
)

DAMAGED_RECORD = AnomalyKind(
    name="damaged-record",
    invariants=("R9",),
    meaning="A replica's disk holds a committed record whose bytes do not match their checksum.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=False,
        retention=Retention.NEVER,
        fault=True,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_logs=True,
)

BOUNDS_CROSSED = AnomalyKind(
    name="bounds-crossed",
    invariants=("R8",),
    meaning="A running broker's log start, watermark and log end were not in this order.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

UNCOMMITTED_DELETION = AnomalyKind(
    name="uncommitted-deletion",
    invariants=("R8",),
    meaning="A leader deleted records that were not committed.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

REPEATED_SEQUENCE = AnomalyKind(
    name="repeated-sequence",
    invariants=("R11",),
    meaning="A log holds a sequence number of an idempotent producer twice.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

SEQUENCE_GAP = AnomalyKind(
    name="sequence-gap",
    invariants=("C5", "R11"),
    meaning="A log lacks sequence numbers of an idempotent producer.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

ZOMBIE_APPEND = AnomalyKind(
    name="zombie-append",
    invariants=("R11",),
    meaning="A log holds a record of a producer's older epoch behind one of a newer.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (
    LOG_OVERLAP,
    DAMAGED_RECORD,
    BOUNDS_CROSSED,
    UNCOMMITTED_DELETION,
    REPEATED_SEQUENCE,
    SEQUENCE_GAP,
    ZOMBIE_APPEND,
)


def conclude(
    states: States, configured: Configured, journal: FaultJournal, log_epochs: LogEpochs, log_facts: LogFacts
) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, logs in log_epochs.by_replica.items():
        for node, epochs in logs.items():
            yield from _overlapping(configured, place, node, epochs)
            yield from _damaged(states, configured, journal, place, node, epochs=epochs)
    for place, nodes in states.reported.items():
        for intervals in nodes.values():
            yield from _crossed(configured, place, intervals)
            yield from _deleted(configured, place, intervals)
    for log in log_facts.producer_logs:
        place = TopicPartition(log.topic, log.partition)
        if log.node == states.final_leader(place):
            yield from _sequences(states, place, log)


def _crossed(configured: Configured, place: TopicPartition, intervals: Sequence[StateInterval]) -> Iterator[Conclusion]:
    for one in intervals:
        if one.crossed is not None:
            yield Conclusion(
                configured.finding("bounds-crossed", place, leader_epoch=one.leader_epoch, **seen_at(one, one.crossed)),
                f"Node {one.node} reported a log start, a high watermark and a log end that are not in this order.",
                (cite(one, f"node {one.node}'s bounds cross here", one.crossed),),
            )


def _deleted(configured: Configured, place: TopicPartition, intervals: Sequence[StateInterval]) -> Iterator[Conclusion]:
    for before, one in pairwise(intervals):
        if one.kind != "log_start" or one.role != "leader" or before.incarnation != one.incarnation:
            continue
        committed, start = before.high_watermark or 0, one.log_start_offset or 0
        if start > committed:
            yield Conclusion(
                configured.finding(
                    "uncommitted-deletion", place,
                    offset=committed, until=start, leader_epoch=one.leader_epoch, **seen_at(one),
                ),
                f"Node {one.node}, leader in epoch {one.leader_epoch}, deleted offsets {committed} to {start - 1} "
                f"({detail(one).get('reason', 'no reason given')}), which were not committed.",
                (
                    cite(before, f"node {one.node} had a high watermark of {committed}", before.end_sequence),
                    cite(one, f"its log starts at {start} from here on"),
                ),
            )  # fmt: skip


def _overlapping(
    configured: Configured, place: TopicPartition, node: int, epochs: Sequence[LogEpoch]
) -> Iterator[Conclusion]:
    within = [one.first for one in epochs if one.contents > one.offsets]
    between = [offset for one, other in permutations(epochs, 2) for offset in _taken_twice(one, other)]
    if not within and not between:
        return
    at = min([*within, *between])
    about: dict[str, int | str] = {"node": node, "topic": place.topic, "partition": place.partition}
    yield Conclusion(
        configured.finding("log-overlap", place, offset=at, node=node),
        f"Node {node}'s log holds two records at one offset, {at} or one behind it.",
        (Evidence("replica_logs", {**about, "offset": at}, f"node {node}'s log holds records at offset {at}"),),
    )


def _taken_twice(one: LogEpoch, other: LogEpoch) -> Iterator[int]:
    """The ends of an epoch where another one has a record, too: an end of its own, or anything if it lacks nothing."""
    has_all = other.offsets == other.last - other.first + 1
    for offset in (one.first, one.last):
        if offset in (other.first, other.last) or (has_all and other.first < offset < other.last):
            yield offset


def _damaged(
    states: States,
    configured: Configured,
    journal: FaultJournal,
    place: TopicPartition,
    node: int,
    *,
    epochs: Sequence[LogEpoch],
) -> Iterator[Conclusion]:
    end = states.ended.get(place, {}).get(node)
    if end is None or (configured.wanted is not None and place not in configured.wanted.partitions):
        return
    committed = min(end.high_watermark or 0, end.log_end_offset or 0)
    bad = [(one.damaged, one.leader_epoch) for one in epochs if one.damaged is not None and one.damaged < committed]
    if not bad:
        return
    at, epoch = min(bad)
    rotted = any(
        traits_of(fault["kind"]).disk is DiskEffect.DAMAGE and str(node) in fault["nodes"] for fault in journal.excusing
    )
    about: dict[str, int | str] = {"node": node, "topic": place.topic, "partition": place.partition, "offset": at}
    yield Conclusion(
        states.finding(
            "damaged-record", place,
            offset=at, until=committed, leader_epoch=epoch, node=node, excuse="damage" if rotted else None,
        ),
        f"Node {node}'s disk holds a record at offset {at} whose bytes do not match their checksum, below its "
        f"high watermark of {committed}.",
        (Evidence("replica_logs", about, f"node {node}'s log holds a damaged record at offset {at}"),),
    )  # fmt: skip


def _sequences(states: States, place: TopicPartition, log: ProducerLog) -> Iterator[Conclusion]:
    whose = f"producer {log.producer_id} (epoch {log.producer_epoch})"
    has = f"{log.records} records with {log.sequences} sequence numbers from {log.first} to {log.last}"
    row: dict[str, int | str] = {
        "node": log.node,
        "topic": place.topic,
        "partition": place.partition,
        "offset": log.offset,
    }
    evidence = (Evidence("replica_logs", row, f"node {log.node}'s log holds the first record of {whose}"),)
    about = {"offset": log.offset, "node": log.node}
    is_numbered = place.topic not in INTERNAL_TOPICS
    if is_numbered and log.records > log.sequences:
        why = f"The final leader's log has {has} of {whose}: some are there twice."
        yield Conclusion(states.finding("repeated-sequence", place, **about), why, evidence)
    missing = log.sequences < log.last - log.first + 1
    if is_numbered and (missing or (log.falls and log.records == log.sequences)):
        wrong = "some are missing" if missing else "some lie behind higher ones"
        why = f"The final leader's log has {has} of {whose}: {wrong}."
        excuse = "unclean" if states.unclean.get(place) else None
        yield Conclusion(states.finding("sequence-gap", place, excuse=excuse, **about), why, evidence)
    if log.older_until is not None:
        why = (
            f"The final leader's log has a record of an older epoch of {whose} at offset {log.older_until}, behind it."
        )
        yield Conclusion(states.finding("zombie-append", place, until=log.older_until, **about), why, evidence)
