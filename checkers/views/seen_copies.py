"""Which replica held which offsets, and what removed them, as far as the samples of a real cluster show it.

Two looks show where a log ended, and nothing of the time in between. What a log has grown by from one look to the next
it got in the epoch of both, if they were in the same one; else its epoch is unknown, and it is no copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.views.copies import Copy, split
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from checkers.views.states import States
from faults import traits_of
from harness.facts import StateInterval
from harness.fault import DiskEffect, ProcessEffect
from harness.fault_losses import taken
from harness.model import NO_LEADER, TopicPartition

BETWEEN_LOOKS = "between two looks"
"""The reason for a truncation without a row: the broker's process went on."""

_UNDER_WAY_NS = 1_000_000_000
"""For how long an acknowledgement may have been under way to its client."""


class Last(NamedTuple):
    """The copy that went last. ``overall``: of all that were seen; else of those in the ISR."""

    copy: Copy
    overall: bool


def seen_copies(intervals: Sequence[StateInterval], journal: FaultJournal, place: TopicPartition) -> Iterator[Copy]:
    """What one replica was seen to hold, lost copies first; ``intervals``: its broker's, in order."""
    log: list[Copy] = []
    before: StateInterval | None = None
    harmful = journal.robbing(intervals[0].node, place) if intervals else ()
    for one in intervals:
        if one.kind != "state" or one.first_log_end is None or one.log_end_offset is None:
            continue
        if before is not None:
            harm = _harm(before, one, harmful)
            emptied = harm is not None and traits_of(harm["kind"]).disk is DiskEffect.EVERYTHING
            kept = 0 if emptied else min(before.log_end_offset or 0, one.first_log_end)
            gone, log = split(log, kept)
            event, reason = _event(before, one, harm, place)
            yield from (copy._replace(lost=one, event=event, reason=reason, seen=before) for copy in gone)
            if before.leader_epoch == one.leader_epoch:
                log += _got(one, kept, one.first_log_end)
        start = one.log_start_offset or 0
        if log and log[0].start < start:
            yield from (
                copy._replace(end=min(copy.end, start), lost=one, event="log_start", seen=before)
                for copy in log
                if copy.start < start
            )
            log = [copy._replace(start=max(copy.start, start)) for copy in log if copy.end > start]
        log += _got(one, one.first_log_end, one.log_end_offset)
        before = one
    yield from log


def last_seen(states: States, journal: FaultJournal, place: TopicPartition, held: Sequence[Copy]) -> Last | None:
    """Which of the copies went last; None: no look, no proof and no ISR shows it.

    The last in the ISR is one whose replica was in it all the time in which it went, when every other one there had
    lost its own. A replica outside the ISR has to cut its log to that of a leader from it.
    """
    gone = sorted((copy for copy in held if copy.lost is not None), key=lambda c: (window(journal, c)[1], c.node))
    for copy in reversed(gone):
        others = [other for other in held if other.node != copy.node]
        overall = all(_went_before(journal, other, copy) for other in others)
        members = _isrs(states, place, *window(journal, copy))
        over = {other.node for other in others if _went_before(journal, other, copy)}
        over -= {other.node for other in others if not _went_before(journal, other, copy)}
        if overall or (members and all(copy.node in isr and {*isr} <= over | {copy.node} for isr in members)):
            return Last(copy, overall)
    return None


def window(journal: FaultJournal, copy: Copy) -> tuple[int, int]:
    """Since when and until when a copy that is gone can have gone: between two looks, or while a fault took it."""
    assert copy.lost is not None
    assert copy.seen is not None
    since_ns, until_ns = copy.seen.end_ns, copy.lost.begin_ns
    place = TopicPartition(copy.got.topic or "", copy.got.partition or 0)
    harm = _harm(copy.seen, copy.lost, journal.robbing(copy.node, place))
    if harm is None or harm["kind"] != copy.event:
        return since_ns, until_ns
    return max(since_ns, harm["injected_ns"]), min(until_ns, harm["proven_ns"])


def epoch_of(states: States, journal: FaultJournal, place: TopicPartition, begin_ns: int, end_ns: int) -> int | None:
    """The only leader epoch in which records can have been acknowledged between two times; None: it is not known.

    That is the epoch of every broker that had been elected or believed that it led, since a second before.
    """
    since_ns = begin_ns - _UNDER_WAY_NS
    decided = states.decided.get(place, [])
    elected = [one for at, one in enumerate(decided) if one.begin_ns <= end_ns and _lasts(decided, at, since_ns)]
    epochs = {one.leader_epoch for one in elected if one.leader != NO_LEADER}
    for intervals in states.reported.get(place, {}).values():
        for at, one in enumerate(intervals):
            until_ns = intervals[at + 1].begin_ns if at + 1 < len(intervals) else None
            if one.role == "leader" and one.begin_ns <= end_ns and _leads_on(journal, one, until_ns, since_ns):
                epochs.add(one.leader_epoch)
    return epochs.pop() if len(epochs) == 1 else None


def _got(one: StateInterval, start: int, end: int) -> list[Copy]:
    known = one.leader_epoch is not None and start < end
    return [Copy(one.node, start, end, one.leader_epoch or 0, one)] if known else []


def _harm(before: StateInterval, one: StateInterval, harmful: Sequence[Row]) -> Row | None:
    """The last of the faults that took data from a log which was in effect between two looks."""
    due = [fault for fault in harmful if fault["injected_ns"] <= one.begin_ns and before.end_ns <= fault["proven_ns"]]
    return max(due, key=lambda f: (f["injected_ns"], str(f["fault"])), default=None)


def _event(
    before: StateInterval, one: StateInterval, harm: Row | None, place: TopicPartition
) -> tuple[str, str | None]:
    if harm is not None:
        words = taken(traits_of(harm["kind"]).disk, harm["proof"], place)
        return harm["kind"], f"{harm['kind']} {harm['fault']} {words}"
    return ("truncation", BETWEEN_LOOKS) if before.incarnation == one.incarnation else ("unseen", None)


def _went_before(journal: FaultJournal, other: Copy, copy: Copy) -> bool:
    return other.lost is not None and window(journal, other)[1] <= window(journal, copy)[0]


def _isrs(states: States, place: TopicPartition, since_ns: int, until_ns: int) -> list[tuple[int, ...]]:
    """Every ISR that was decided, and in force at some time between the two."""
    decided = states.decided.get(place, [])
    return [
        one.isr or () for at, one in enumerate(decided) if one.begin_ns <= until_ns and _lasts(decided, at, since_ns)
    ]


def _lasts(decided: Sequence[StateInterval], at: int, time_ns: int) -> bool:
    """Whether a decision was still in force at some time, or is later than that."""
    return at + 1 == len(decided) or decided[at + 1].begin_ns > time_ns


def _leads_on(journal: FaultJournal, one: StateInterval, until_ns: int | None, time_ns: int) -> bool:
    """Whether a leader may still have led after some time: no later look shows otherwise, and it had not ended."""
    if until_ns is not None and until_ns <= time_ns:
        return False
    ends = [
        fault["proven_ns"]
        for fault in journal.excusing
        if traits_of(fault["kind"]).process is ProcessEffect.ENDS
        and fault["proven_ns"] is not None
        and str(one.node) in fault["nodes"]
    ]
    return not any(one.end_ns <= end_ns <= time_ns for end_ns in ends)
