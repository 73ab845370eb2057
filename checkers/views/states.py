"""What the nodes of one run reported, by the intervals of their timelines: states, decisions, elections, deletions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.about_run import AboutRun
from checkers.views.conclusion import age, detail, where
from checkers.views.deletions import Deletion, Start, deletions
from checkers.views.unclean_elections import End, LeaderStart, UncleanElection, unclean_elections
from harness.facts import StateInterval
from harness.model import CONTROLLER_ID, TopicPartition


@dataclass(frozen=True)
class States(AboutRun):
    """What nodes reported.

    Attributes:
        intervals: of all nodes, in any order.
        sampled: whether the timeline consists of samples of the brokers' states
            (:mod:`checkers.views.sampled_timelines`).
    """

    intervals: Sequence[StateInterval]
    sampled: bool

    @cached_property
    def reported(self) -> dict[TopicPartition, dict[int, list[StateInterval]]]:
        """The states that each broker reported of each replica while it ran, in order."""
        found: dict[TopicPartition, dict[int, list[StateInterval]]] = defaultdict(lambda: defaultdict(list))
        for one in self.intervals:
            if one.topic is not None and one.node != CONTROLLER_ID and one.kind != "final":
                found[where(one)][one.node].append(one)
        return {
            place: {n: sorted(intervals, key=age) for n, intervals in sorted(nodes.items())}
            for place, nodes in found.items()
        }

    @cached_property
    def decided(self) -> dict[TopicPartition, list[StateInterval]]:
        """The controller's decisions about each partition, in order."""
        found: dict[TopicPartition, list[StateInterval]] = defaultdict(list)
        for one in self.intervals:
            if one.topic is not None and one.node == CONTROLLER_ID and one.kind in ("election", "isr"):
                found[where(one)].append(one)
        return {place: sorted(intervals, key=age) for place, intervals in found.items()}

    @cached_property
    def ended(self) -> dict[TopicPartition, dict[int, StateInterval]]:
        """How each broker's replica was found in the end."""
        found: dict[TopicPartition, dict[int, StateInterval]] = defaultdict(dict)
        for one in sorted(self.intervals, key=age):
            if one.topic is not None and one.node != CONTROLLER_ID and one.kind == "final":
                found[where(one)][one.node] = one
        return found

    @cached_property
    def sessions(self) -> list[tuple[int, int, str]]:
        """When the controller began or ended which broker's session: time, broker, what changed."""
        rows = sorted((x for x in self.intervals if x.kind == "session"), key=age)
        changes = [(row.begin_ns, detail(row)) for row in rows]
        return [(time, int(d["broker"]), str(d["change"])) for time, d in changes if {"broker", "change"} <= set(d)]

    @cached_property
    def unclean(self) -> dict[TopicPartition, list[int]]:
        """The leader epochs that began with an unclean election."""
        return {place: [epoch for _, epoch in _unclean(rows)] for place, rows in self.decided.items()}

    @cached_property
    def unclean_elections(self) -> dict[TopicPartition, list[UncleanElection]]:
        """What the unclean elections gave up."""
        return {
            place: list(unclean_elections(_unclean(rows), *self._leader_starts(self.reported.get(place, {}))))
            for place, rows in self.decided.items()
        }

    @cached_property
    def deletions(self) -> dict[TopicPartition, list[Deletion]]:
        """What was deleted on purpose; of a sampled timeline what may have been: wherever a replica's log begins."""
        if self.sampled:
            return {
                place: [
                    Deletion(x.begin_ns, x.log_start_offset or 0) for intervals in nodes.values() for x in intervals
                ]
                for place, nodes in self.reported.items()
            }
        return {
            place: deletions(
                (_start(x) for intervals in nodes.values() for x in intervals if x.kind in _STARTS), self.lasted
            )
            for place, nodes in self.reported.items()
        }

    @cached_property
    def lives(self) -> dict[int, dict[int, int]]:
        """When each life of a node was first reported, in nanoseconds, by node and incarnation."""
        first_ns: dict[int, dict[int, int]] = defaultdict(dict)
        for one in self.intervals:
            if one.kind != "final":
                known = first_ns[one.node]
                known[one.incarnation] = min(one.begin_ns, known.get(one.incarnation, one.begin_ns))
        return dict(first_ns)

    @cached_property
    def lasted(self) -> dict[tuple[int, int], int]:
        """Until when each life of a node is known to have lasted, in nanoseconds, by node and incarnation."""
        last_ns: dict[tuple[int, int], int] = defaultdict(int)
        for one in self.intervals:
            if one.kind != "final" or one.role != "offline":
                last_ns[one.node, one.incarnation] = max(last_ns[one.node, one.incarnation], one.end_ns)
        return last_ns

    @staticmethod
    def _leader_starts(nodes: Mapping[int, Sequence[StateInterval]]) -> tuple[list[LeaderStart], dict[int, list[End]]]:
        """With which log each leader began, and where each replica's log ended in each epoch."""
        states = [
            x for intervals in nodes.values() for x in intervals if x.kind == "state" and x.leader_epoch is not None
        ]
        starts = [LeaderStart(x.leader_epoch or 0, x.begin_ns, x.node, x.first_log_end or 0)
                   for x in states if x.role == "leader"]  # fmt: skip
        ends: dict[int, list[End]] = defaultdict(list)
        for x in states:
            if x.first_log_end is not None and x.log_end_offset is not None:
                lowest = min(x.first_log_end, x.log_end_offset)
                ends[x.node].append(End(x.leader_epoch or 0, lowest, x.log_end_offset))
        return starts, ends

    def final_leader(self, place: TopicPartition) -> int | None:
        """The node that leads in the end, of several the one of the highest epoch; None: none does."""
        leaders = [x for x in self.ended.get(place, {}).values() if x.role == "leader"]
        last = max(leaders, key=lambda x: (x.leader_epoch or 0, x.begin_ns, x.node), default=None)
        return None if last is None else last.node


def _unclean(decisions: Sequence[StateInterval]) -> Iterator[tuple[int, int]]:
    """The unclean elections among decisions: when, and for which leader epoch."""
    for one in decisions:
        if detail(one).get("clean") is False and one.leader_epoch is not None:
            yield one.begin_ns, one.leader_epoch


_STARTS = frozenset({"state", "log_start"})


def _start(one: StateInterval) -> Start:
    """Where the log starts at the beginning of an interval: what moves it is a row of its own."""
    return Start(
        one.node, one.incarnation, one.sequence, one.begin_ns, one.kind, one.role, one.leader_epoch,
        one.log_start_offset or 0, detail(one).get("reason"),
    )  # fmt: skip
