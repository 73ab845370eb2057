"""A consumer receives the records of a partition in offset order, and none is skipped.

* ``nonmonotonic-poll``: a process is given an offset that is not above the last one of its operations before.
* ``poll-skip``: a process is given an offset beyond the next one, although the partition holds a workload's record
  between the two. Offsets that hold none (control records, compacted ones) are no gap.
* ``int-nonmonotonic-poll``, ``int-poll-skip``: the same between two deliveries of one operation.

The partition's records are those of the final leader's log; where that is not known, everything that was acknowledged
or delivered; and so it is for what lies before that log, unless transactions send to the partition, whose markers take
offsets. Records of a transaction that failed, or is not known to be committed, may be left out. A first record between
two deliveries that is of a newer leader epoch than both was not there yet: leader epochs only rise along a log, so the
log that was read had something else at that offset, or nothing.

A process is one consumer; it is never reused, so a consumer that starts over is a new process. Its position in a
partition is what its last operation that ended ``ok`` delivered: an operation that failed is rolled back, and what it
delivered is compared with the position but does not move it. A position is dropped when the process is assigned, or
subscribes to, partitions without this one, and when a rebalance moved the partition in the meantime, in which case
deliveries of one operation are not compared either.

Severity: ``VIOLATION``. Between operations ``DOCUMENTED`` when the process has subscribed and the history has no
rebalance rows at all: its group may have moved the partition away and back, and goes on from its commit. A history with
rebalance rows has all of them.

Going back is ``DOCUMENTED`` when an unclean election before it gave up the consumer's position, so that the consumer
was reset to the new end, and the configuration permits such elections. Its position is the last record delivered. With
transactions it may also be a later marker or aborted record that a leader wrote while the consumer was polling. The
consumer was not reset where the log before the new end still holds a record older than the election that it would have
been given on the way.

A skip is ``DOCUMENTED`` when all skipped records had been deleted on purpose by then (see
:mod:`checkers.views.deletions`) and the configuration permits that, even if a later leader still holds them. Where the
configuration permits unclean elections, it is so, too, when an earlier one gave up the consumer's position, which then
has no meaning in the new log; or the skipped record, which the leader lacked then; or the marker that committed it, so
that the next one aborts it (see :mod:`checkers.views.transaction_markers`); or, where epochs are unknown, when a later
one gave up everything from there on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from checkers.inconsistent_offsets import sightings
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Read, where
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import gave_up_some, replaced
from checkers.views.unclean_elections import UncleanElection
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered, sent_again, withheld
from checkers.wire_tap.send_grounds import committed_if_transactional
from harness.anomaly import (
    NO_WORD,
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
from harness.checker import Attribution, Evidence
from harness.excuse import Excuse
from harness.findings import Finding
from harness.history.schema import REBALANCES
from harness.model import TopicPartition

NONMONOTONIC_POLL = AnomalyKind(
    name="nonmonotonic-poll",
    invariants=("C7",),
    meaning="A consumer was given an offset that is not above the one before it.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.STEP_BACK,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_SEEN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)

POLL_SKIP = AnomalyKind(
    name="poll-skip",
    invariants=("C7",),
    meaning="A consumer was given an offset beyond the next one, although the log has a record between.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=("wrong-marker",),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.BEFORE_THE_POLL,
        fault=False,
        lossy_failure=LossyFailure.BETWEEN_POLLS,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.DELETION),
    in_scenarios=NO_WORD,
    permitted_by="",
)

INT_NONMONOTONIC_POLL = AnomalyKind(
    name="int-nonmonotonic-poll",
    invariants=("C7",),
    meaning="One operation was given an offset that is not above the one before it.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=("lost-write", "vanished-read", "duplicate"),
    cause_at=CauseAt.STEP_BACK,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_SEEN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)

INT_POLL_SKIP = AnomalyKind(
    name="int-poll-skip",
    invariants=("C7",),
    meaning="One operation was given two records and not one that lies between them.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=("wrong-marker",),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.BEFORE_THE_POLL,
        fault=False,
        lossy_failure=LossyFailure.BETWEEN_POLLS,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.DELETION),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (NONMONOTONIC_POLL, POLL_SKIP, INT_NONMONOTONIC_POLL, INT_POLL_SKIP)


class Step(NamedTuple):
    """Two deliveries of a partition to a process, one after the other; ``within`` one operation or not."""

    before: Read
    after: Read
    within: bool


class Record(NamedTuple):
    """A record that a partition holds."""

    value: int
    leader_epoch: int | None


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every step of one run's consumers that goes back or skips a record."""
    readers: dict[tuple[int, TopicPartition], list[Read]] = {}
    for read in history.reads:
        readers.setdefault((read.process, read.where), []).append(read)
    moves, begun_ns = _moves(history), _begun(history)
    held = _held(history, logs, ends)
    aborted = replaced(history, timeline, logs, ends, "abort")
    for (process, place), reads in readers.items():
        log = held.get(place, {})
        offsets = sorted(log)
        for step in _steps(reads):
            if step.after.offset == step.before.offset + 1 or moves.between(process, place, step):
                continue
            group = not step.within and moves.may_be_unnamed(process, step.after.row)
            begin = bisect_right(offsets, step.before.offset)
            beyond = [(offset, log[offset]) for offset in offsets[begin : begin + 1]]
            elections = _elections_before(timeline, step)
            thrown = any(
                _threw_back(history, timeline, election, step.before, beyond, begun_ns=begun_ns[process])
                for election in elections
            )
            if step.after.offset <= step.before.offset:
                yield _back(history, step, group=group, thrown=thrown)
                continue
            deleted = timeline.deleted_to(place, step.after.time_ns)
            skipped = offsets[begin : bisect_left(offsets, step.after.offset)]
            kept = skipped[bisect_left(skipped, deleted) :]
            there = [first for first in (*kept[:1], *skipped[:1]) if _was_there(step, log[first])]
            if there:
                hidden_ns = aborted.get((place, there[0], log[there[0]].value))
                hidden = hidden_ns is not None and hidden_ns <= step.after.time_ns
                unclean = thrown or hidden or _was_given_up(timeline, step, there[0], log[there[0]])
                excuse: Excuse | None = "unclean" if unclean else None
                excuse = "group" if group else "retention" if there[0] not in kept else excuse
                yield _skip(history, step, there[0], log[there[0]], excuse)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    within = " in one operation" if finding.kind.startswith("int-") else ""
    if finding.kind.endswith("nonmonotonic-poll"):
        at, before = finding.offset, finding.other_offset
        return f"Process {finding.process} was delivered offset {at} after offset {before}{within}."
    return (
        f"Process {finding.process} was delivered offset {finding.until} right after offset {finding.other_offset}"
        f"{within}, although the partition holds value {finding.value} at offset {finding.offset}."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """A skip rests on the record's commit and on what the poll does not deliver, a step back on what it does."""
    if finding.until is not None:
        return attributed(committed_if_transactional(frames, finding), withheld(frames, finding))
    return attributed(delivered(frames, finding, finding.offset, finding.value), sent_again(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The two deliveries, and what was left out."""
    skip = finding.kind.endswith("poll-skip")
    yield from witnesses.read_by(finding, finding.other_offset, (finding.row or 0) - 1)
    yield from witnesses.read_by(finding, finding.until if skip else finding.offset, finding.row)
    if skip:
        yield from witnesses.send(finding)
        yield from witnesses.holders(finding)


# -------------------------------------------------------------------------------------------------------- what moved


class _Moves:
    """When partitions were given to processes and taken from them."""

    def __init__(self) -> None:
        self.assigned: dict[int, dict[int, tuple[int, set[TopicPartition]]]] = defaultdict(dict)
        self.rebalanced: dict[tuple[int, TopicPartition], list[tuple[int, int]]] = defaultdict(list)
        self.subscriptions: dict[int, int] = {}

    def between(self, process: int, place: TopicPartition, step: Step) -> bool:
        ops, rows = (step.before.op, step.after.op), range(step.before.row, step.after.row)
        rebalanced = any(op in ops or row in rows for op, row in self.rebalanced.get((process, place), ()))
        named = self.assigned.get(process, {}).values()
        return rebalanced or any(row in rows and place not in places for row, places in named)

    def may_be_unnamed(self, process: int, row: int) -> bool:
        """Whether a rebalance may have moved partitions of the process without a row."""
        return not self.rebalanced and self.subscriptions.get(process, row) < row


def _moves(history: History) -> _Moves:
    found = _Moves()
    for row in history.operations:
        if row["f"] in ("assign", "subscribe") and row["type"] in ("ok", "info"):
            first, places = found.assigned[row["process"]].get(row["op"], (row["index"], set()))
            places |= set() if row["topic"] is None else {where(row)}
            found.assigned[row["process"]][row["op"]] = (min(first, row["index"]), places)
            if row["f"] == "subscribe":
                known = found.subscriptions.get(row["process"], row["index"])
                found.subscriptions[row["process"]] = min(known, row["index"])
        elif row["f"] in REBALANCES and row["topic"] is not None:
            found.rebalanced[row["process"], where(row)].append((row["op"], row["index"]))
    return found


def _steps(reads: list[Read]) -> Iterator[Step]:
    position: Read | None = None
    for before, after in pairwise([None, *reads]):
        assert after is not None
        if before is not None and before.op == after.op:
            yield Step(before, after, within=True)
        else:
            position = before if before is not None and before.type == "ok" else position
            if position is not None:
                yield Step(position, after, within=False)


def _held(history: History, logs: ReplicaLogs, ends: PartitionEnds) -> dict[TopicPartition, dict[int, Record]]:
    """The records that a consumer may not skip, by offset; of several at one offset that of the lowest value."""
    doubtful = {(send.where, send.value) for send in history.sends if history.is_uncommitted(send)}
    found: dict[TopicPartition, dict[int, Record]] = {place: {} for place in ends.by_partition}
    for place, offset, value in _known_records(history, ends):
        if (place, value) not in doubtful:
            record = _record(logs, place, offset, value)
            known = found[place].setdefault(offset, record)
            found[place][offset] = min(known, record, key=lambda r: r.value)
    return found


def _was_there(step: Step, record: Record) -> bool:
    """Whether the log that was read may have held the record: it is not newer than both deliveries."""
    epochs = (step.before.leader_epoch, step.after.leader_epoch)
    known = [epoch for epoch in epochs if epoch is not None]
    return record.leader_epoch is None or step.after.leader_epoch is None or record.leader_epoch <= max(known)


def _known_records(history: History, ends: PartitionEnds) -> Iterator[tuple[TopicPartition, int, int]]:
    """Partition, offset and value of every record that a partition is known to hold."""
    for place, end in ends.by_partition.items():
        if end.node is not None:
            yield from ((place, row["offset"], row["value"]) for row in ends.final_log(place))
    for seen in sightings(history):
        end = ends.by_partition[seen.where]
        before = seen.offset < (end.log_start_offset or 0) and seen.where not in history.marked
        if end.node is None or before:
            yield seen.where, seen.offset, seen.value


def _record(logs: ReplicaLogs, place: TopicPartition, offset: int, value: int) -> Record:
    logged = logs.logged.get(place, {}).get(offset, [])
    epochs = [row["leader_epoch"] for row in logged if row["value"] == value and row["leader_epoch"] >= 0]
    return Record(value, min(epochs, default=None))


# ---------------------------------------------------------------------------------------------------------- findings


def _back(history: History, step: Step, *, group: bool, thrown: bool) -> Finding:
    before, after, within = step
    return Finding(
        history.run, "int-nonmonotonic-poll" if within else "nonmonotonic-poll", *after.where,
        offset=after.offset,
        value=after.value,
        leader_epoch=after.leader_epoch,
        excuse="group" if group else "unclean" if thrown else None,
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        other_offset=before.offset,
    )  # fmt: skip


def _skip(history: History, step: Step, skipped: int, record: Record, excuse: Excuse | None) -> Finding:
    before, after, within = step
    return Finding(
        history.run, "int-poll-skip" if within else "poll-skip", *after.where,
        offset=skipped,
        value=record.value,
        leader_epoch=record.leader_epoch,
        excuse=excuse,
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        other_offset=before.offset,
        until=after.offset,
        since_ns=before.time_ns,
    )  # fmt: skip


def _begun(history: History) -> dict[int, int]:
    """When each process polled first."""
    found: dict[int, int] = {}
    for row in history.operations:
        if row["f"] == "poll":
            found[row["process"]] = min(row["time_ns"], found.get(row["process"], row["time_ns"]))
    return found


def _elections_before(timeline: Timeline, step: Step) -> list[UncleanElection]:
    return [
        election
        for election in timeline.unclean_elections.get(step.after.where, [])
        if election.time_ns <= step.after.time_ns
    ]


def _threw_back(
    history: History,
    timeline: Timeline,
    election: UncleanElection,
    last: Read,
    beyond: Sequence[tuple[int, Record]],
    *,
    begun_ns: int,
) -> bool:
    """Whether an unclean election gave up the position of a consumer whose last delivery was ``last``.

    ``beyond``: the first record behind it that a consumer may not skip, if there is one; ``begun_ns``: when it polled
    first. A sampled timeline does not show where the winner's log ended.
    """
    if election.gave_up(last.leader_epoch, None if timeline.sampled else last.offset):
        return True
    held = any(_is_of_before(election, offset, record) for offset, record in beyond)
    terms = [
        term
        for term in timeline.leader_terms(last.where)
        if term.leader_epoch >= (last.leader_epoch or 0) and (term.end_ns is None or term.end_ns >= begun_ns)
    ]
    return last.where in history.marked and not held and any(gave_up_some(election, t, last.offset + 1) for t in terms)


def _is_of_before(election: UncleanElection, offset: int, record: Record) -> bool:
    """Whether the log of an election's winner held the record when it became leader."""
    older = record.leader_epoch is None or record.leader_epoch < election.leader_epoch
    return election.log_end is not None and offset < election.log_end and older


def _was_given_up(timeline: Timeline, step: Step, skipped: int, record: Record) -> bool:
    """Whether an unclean election is why the consumer was not given the record that it skipped."""
    passed, elections = None if timeline.sampled else skipped, _elections_before(timeline, step)
    if record.leader_epoch is not None and any(election.gave_up(record.leader_epoch, passed) for election in elections):
        return True
    unknown = None in (step.after.leader_epoch, record.leader_epoch)
    return unknown and timeline.cut_off(step.after.where, skipped, step.after.time_ns)
