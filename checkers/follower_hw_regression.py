"""A follower's high watermark only rises while it follows one leader, as that leader's does.

``follower-hw-regression``: while a follower followed one leader in one leader epoch, within one life of its broker, its
high watermark rose, and fell later. A follower takes the lesser of its log end and its leader's high watermark, which
never falls within a term. Kafka lets a follower's watermark fall in these cases, which are not reported:

* when the log is cut, which is a row of its own, or ends earlier in the next row;
* with the first responses of a new leader, whose watermark may lag behind an earlier leader's: so only what had risen
  in that epoch can have fallen in it;
* when the leader has begun a new life since the follower began to follow it: it starts from its checkpoint, in the old
  generations in the same epoch;
* when that leader had been given another epoch, too, by then: before 2.1 fetches do not name the epoch, so a response
  may be of another one, with another leader in between.

Severity: ``VIOLATION``. Such a follower, once elected, begins with a watermark that is too low, so that consumers do
not see records that they were given before. One anomaly for each replica, life and epoch; a sampled timeline is not
judged.
Severity: ``VIOLATION``. Such a follower, once elected, begins with a watermark that is too low: consumers do not see
what they had been given before. One anomaly for each replica, life and epoch; of a sampled timeline nothing is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from checkers.views.conclusion import Conclusion, cite, seen_at
from checkers.views.configured import Configured
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.facts import StateInterval
from harness.model import NO_LEADER, TopicPartition

FOLLOWER_HW_REGRESSION = AnomalyKind(
    name="follower-hw-regression",
    invariants=("T1",),
    meaning="A follower's high watermark fell while it followed one leader in one epoch.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (FOLLOWER_HW_REGRESSION,)


def conclude(states: States, configured: Configured) -> Iterator[Conclusion]:
    """Every breach in one run: for each replica, life and epoch the first interval that shows it."""
    starts = _starts(states.intervals)
    for place, nodes in states.reported.items():
        others = [*chain.from_iterable(nodes.values()), *states.decided.get(place, ())]
        for intervals in nodes.values():
            for followed in _followed(intervals):
                fell = _fall(followed)
                if fell is not None and not _may_fall(followed[0], fell, others, starts):
                    yield _conclusion(configured, place, fell)


def _starts(intervals: Sequence[StateInterval]) -> Mapping[int, list[int]]:
    """When each node's lives began, in nanoseconds."""
    first: dict[tuple[int, int], int] = {}
    for one in intervals:
        life = (one.node, one.incarnation)
        first[life] = min(first.get(life, one.begin_ns), one.begin_ns)
    found: dict[int, list[int]] = defaultdict(list)
    for (node, _), begin_ns in first.items():
        found[node].append(begin_ns)
    return found


def _followed(intervals: Sequence[StateInterval]) -> Iterator[list[StateInterval]]:
    """A broker's intervals as a follower, by its life, leader and epoch."""
    groups: dict[tuple[int, int | None, int | None], list[StateInterval]] = defaultdict(list)
    for one in intervals:
        if one.kind == "state" and one.role == "follower" and one.leader not in (None, NO_LEADER):
            groups[one.incarnation, one.leader, one.leader_epoch].append(one)
    yield from groups.values()


def _fall(followed: Sequence[StateInterval]) -> StateInterval | None:
    """The first interval in which the watermark fell after it had risen; None: there is none."""
    risen = False
    for one in followed:
        if one.fell is not None and (risen or (one.rose is not None and one.rose < one.fell)):
            return one
        risen = risen or one.rose is not None
    return None


def _may_fall(
    first: StateInterval, fell: StateInterval, others: Sequence[StateInterval], starts: Mapping[int, list[int]]
) -> bool:
    """Whether the leader began a life since the follower began to follow it, or had another epoch by then."""
    assert fell.leader is not None
    if any(first.begin_ns <= begin_ns <= fell.end_ns for begin_ns in starts.get(fell.leader, ())):
        return True
    other = (x for x in others if x.leader == fell.leader and x.leader_epoch != fell.leader_epoch)
    return any(x.begin_ns <= fell.end_ns for x in other)


def _conclusion(configured: Configured, place: TopicPartition, fell: StateInterval) -> Conclusion:
    return Conclusion(
        configured.finding(
            "follower-hw-regression", place, leader_epoch=fell.leader_epoch, other_node=fell.leader,
            **seen_at(fell, fell.fell),
        ),
        f"Node {fell.node}'s high watermark fell while it followed node {fell.leader} in epoch {fell.leader_epoch}, "
        "and nothing had been cut off its log.",
        (cite(fell, f"node {fell.node}'s high watermark is lower here than in the row before", fell.fell),),
    )  # fmt: skip
