"""Every cut of a log, every move of its start, and every broker session has a row of its own.

Other checks learn from ``truncation`` and ``log_start`` rows what was cut and deleted, and why, and from the
controller's ``session`` rows which brokers were registered. If such a row is missing, the timeline is incomplete and
the run ``INVALID``:

* within one life of a broker the end of a log fell, and no row records a truncation;
* within one life of a broker a log began at a higher offset, and no row gives the reason (a replica that is made anew
  after its log directory failed begins a life of its own);
* a broker led a partition, or followed a leader, and no row of the controller records that its session began.

A sampled timeline is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.views.states import States
from harness.facts import StateInterval
from harness.model import NO_LEADER, TopicPartition

_CUTS = frozenset({"truncation", "log_start"})


def unrecorded(states: States) -> list[str]:
    """One sentence for each replica or broker of which a row is missing."""
    if states.sampled or not (states.decided or states.sessions):
        return []
    logs = [(place, intervals) for place, nodes in states.reported.items() for intervals in nodes.values()]
    return [
        *(sentence for place, intervals in logs for sentence in _of_log(place, intervals)),
        *_without_session(states),
    ]


def _of_log(place: TopicPartition, intervals: Sequence[StateInterval]) -> Iterator[str]:
    before: StateInterval | None = None
    kinds: set[str] = set()
    for one in intervals:
        if before is not None and (one.incarnation != before.incarnation or before.role == "offline"):
            before = None
        if one.kind != "state":
            kinds.add(one.kind)
            continue
        if before is not None:
            yield from _between(place, before, one, kinds)
        before, kinds = one, set()


def _between(place: TopicPartition, before: StateInterval, after: StateInterval, kinds: set[str]) -> Iterator[str]:
    """What is missing between two successive states of a replica, given the kinds of the rows between them."""
    whose = f"Node {after.node} (incarnation {after.incarnation}) does not say why its log of {place}, which"
    row = f"in its row {after.sequence}."
    if (after.first_log_end or 0) < (before.log_end_offset or 0) and not kinds & _CUTS:
        yield f"{whose} ended at {before.log_end_offset}, ended at {after.first_log_end} {row}"
    if (after.log_start_offset or 0) > (before.log_start_offset or 0) and "log_start" not in kinds:
        yield f"{whose} began at {before.log_start_offset}, began at {after.log_start_offset} {row}"


def _without_session(states: States) -> Iterator[str]:
    known = {broker for _, broker, _ in states.sessions}
    obeyed = {
        one.node
        for nodes in states.reported.values()
        for intervals in nodes.values()
        for one in intervals
        if one.leader not in (None, NO_LEADER)
    }
    for node in sorted(obeyed - known):
        yield f"The controller's timeline does not say that the session of broker {node} began, which obeyed it."
