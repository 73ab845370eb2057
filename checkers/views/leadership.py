"""Which brokers led a partition, from when to when, and what may have ended that: elections and broker starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from checkers.views.sampled_timelines import LOOK_NS
from checkers.views.states import States
from harness.facts import StateInterval
from harness.model import NO_LEADER, TopicPartition


def elections(states: States, place: TopicPartition) -> list[StateInterval]:
    """The elections in the partition after the one that created it."""
    return [one for one in states.decided.get(place, ()) if one.kind == "election" and (one.leader_epoch or 0) > 0]


def leaders(states: States, place: TopicPartition, since_ns: float, until_ns: float) -> set[int]:
    """Every broker that led at some time in between, by its own rows or the controller's."""
    reported = [
        one for intervals in states.reported.get(place, {}).values() for one in _leading(intervals, since_ns, until_ns)
    ]
    elected = _standing(states.decided.get(place, ()), since_ns, until_ns)
    return {one.node for one in reported} | {one.leader for one in elected if one.leader not in (None, NO_LEADER)}


def starts(states: States, place: TopicPartition) -> Iterator[tuple[int, int]]:
    """Every start, but its first, of a broker that had led the partition by then: it, and the first row of that life.

    In a sampled timeline a broker counts as a leader also when only the controller's rows, which are complete, name it.
    """
    look_ns = LOOK_NS if states.sampled else 0
    for node, intervals in states.reported.get(place, {}).items():
        begun: dict[int, int] = {}
        for one in intervals:
            begun[one.incarnation] = min(one.begin_ns, begun.get(one.incarnation, one.begin_ns))
        for incarnation, at_ns in begun.items():
            if incarnation > 0 and node in leaders(states, place, float("-inf"), at_ns + look_ns):
                yield node, at_ns


def was_restarted(states: States, node: int, since_ns: int, by_ns: int) -> bool:
    """Whether by then no process of the broker was left that had run at ``since_ns``.

    In a sampled timeline a process may have run for a while before the first row of it.
    """
    look_ns = LOOK_NS if states.sampled else 0
    lives = states.lives.get(node, {}).items()
    last = max((incarnation for incarnation, begun_ns in lives if begun_ns <= since_ns + look_ns), default=0)
    return any(incarnation > last and begun_ns <= by_ns for incarnation, begun_ns in lives)


def _leading(intervals: Sequence[StateInterval], since_ns: float, until_ns: float) -> Iterator[StateInterval]:
    return (one for one in _standing(intervals, since_ns, until_ns) if one.role == "leader")


def _standing(intervals: Sequence[StateInterval], since_ns: float, until_ns: float) -> Iterator[StateInterval]:
    """The intervals in force at some time in between, each until the node's next one."""
    for one, after in zip_longest(intervals, intervals[1:]):
        if one.begin_ns <= until_ns and (after is None or after.begin_ns >= since_ns):
            yield one
