"""Which replica held which offsets, from when to when, and what removed them.

Derived from the log end offsets that each broker reports: a replica got an offset in the leader epoch that it was in at
the time. Offsets that a replica had at its first report are left out: the epoch in which it got them is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from checkers.views.conclusion import detail
from checkers.views.row import Row
from faults import traits_of
from harness.facts import StateInterval
from harness.fault import DiskEffect

ROBBING = frozenset({DiskEffect.UNFLUSHED, DiskEffect.EVERYTHING, DiskEffect.DAMAGE})
"""Effects that remove what was on a disk; a failed log directory does when a new disk takes its place."""


DELETED = ("leader", "first_batch")
"""Reasons of a log's new start when its records were deleted on purpose: the leader deleted them, or the leader's first
batch begins earlier than asked for."""


class Copy(NamedTuple):
    """Consecutive offsets that one replica got in one leader epoch.

    Attributes:
        end: exclusive.
        got: the interval in which it got them.
        lost: the interval with which they were gone; None: the replica had them until its last report.
        seen: the last interval in which the replica still had them, where they were gone.
        event: what took them: truncation, log_start, power_loss, wipe_disk, corrupt_log or restart; None with ``lost``.
        reason: the reason in the row of that event.
    """

    node: int
    start: int
    end: int
    leader_epoch: int
    got: StateInterval
    lost: StateInterval | None = None
    event: str | None = None
    reason: str | None = None
    seen: StateInterval | None = None


def copies(intervals: Sequence[StateInterval], faults: Sequence[Row]) -> Iterator[Copy]:
    """What one replica held, lost copies first; ``intervals``: its broker's, in order."""
    log: list[Copy] = []
    end: int | None = None
    before: StateInterval | None = None
    for one in intervals:
        start = cut_at(one)
        if one.first_log_end is not None and (start is None or one.first_log_end < start):
            start = one.first_log_end
        if one.kind == "log_start" and detail(one).get("reason") in DELETED:
            log, end = [], one.log_end_offset
            continue
        for at, cause in ((_found_at(one), _taken), (start, _event)):
            if at is not None and end is not None and at < end:
                gone, log = split(log, at)
                event, reason = cause(one, before, faults)
                yield from (copy._replace(lost=one, event=event, reason=reason, seen=before) for copy in gone)
                end = at
        if one.log_end_offset is None:
            continue
        if end is None:
            end = one.first_log_end or 0
        if one.log_end_offset > end:
            if one.kind == "state" and one.leader_epoch is not None:
                log.append(Copy(one.node, end, one.log_end_offset, one.leader_epoch, one))
            end = one.log_end_offset
        before = one
    yield from log


def robs(fault: Row, effects: Collection[DiskEffect] = ROBBING) -> bool:
    """Whether a fault takes from a disk what was on it: by one of ``effects``, or because a directory was replaced."""
    disk = traits_of(fault["kind"]).disk
    if disk is DiskEffect.DIRECTORY:
        return json.loads(fault["parameters"] or "{}").get("replaced") is True
    return disk in effects


def cut_at(one: StateInterval) -> int | None:
    """The offset from which a truncation row cut the log; None: the row does not name it."""
    if one.kind == "truncation":
        cut = detail(one)
        return min(int(cut.get("from_offset", 0)), int(cut.get("to_offset", 0)))
    return None


def _found_at(one: StateInterval) -> int | None:
    """Where the log ended that a truncation cut: what had been beyond was gone before. None: not stated."""
    if one.kind != "truncation" or "from_offset" not in detail(one):
        return None
    return max(int(detail(one)["from_offset"]), cut_at(one) or 0)


def split(log: list[Copy], at: int) -> tuple[list[Copy], list[Copy]]:
    """What of a log lies at and above an offset, and what lies below it; copies are in order."""
    if not log or log[-1].end <= at:
        return [], log
    gone = [copy._replace(start=max(copy.start, at)) for copy in log if copy.end > at]
    return gone, [copy._replace(end=min(copy.end, at)) for copy in log if copy.start < at]


def _event(one: StateInterval, before: StateInterval | None, faults: Sequence[Row]) -> tuple[str, str | None]:
    if one.kind in ("truncation", "log_start"):
        return one.kind, detail(one).get("reason")
    return _taken(one, before, faults)


def _taken(one: StateInterval, before: StateInterval | None, faults: Sequence[Row]) -> tuple[str, str | None]:
    """What removed the offsets that a replica lacked in ``one``, although no truncation row mentions them.

    A broker that kept running must have cut them itself between two samples.
    """
    robbed = [
        fault for fault in faults if robs(fault) and str(one.node) in fault["nodes"] and _is_due(fault, one, before)
    ]
    if robbed:
        return robbed[-1]["kind"], f"fault {robbed[-1]['fault']}"
    went_on = before is not None and before.incarnation == one.incarnation
    return ("truncation", "no row shows it") if went_on else ("restart", None)


def _is_due(fault: Row, one: StateInterval, before: StateInterval | None) -> bool:
    """Whether a fault can have shown itself between two intervals; damage in a log may lie there for several lives.

    It has taken effect when it is proven: until then its broker may still be shutting down and write rows.
    """
    if fault["injected_ns"] is None:
        return False
    lasts = traits_of(fault["kind"]).disk is DiskEffect.DAMAGE
    since_ns = before.begin_ns if before is not None and not lasts else 0
    effect_ns = fault["proven_ns"] or fault["injected_ns"]
    return bool(fault["injected_ns"] <= one.begin_ns and since_ns <= effect_ns)
