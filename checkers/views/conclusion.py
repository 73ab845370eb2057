"""Rules on facts: what they are given (:class:`RunFacts`), and what they return (:class:`Conclusion`).

Rules about elections, ISR changes and truncations are written once: each engine reduces the evidence to the same facts,
and one piece of plain Python judges them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from checkers.views.delete_records_orders import Order
from checkers.views.deletions import Deletion, Start, deletions
from checkers.views.expected import Expected
from checkers.views.proofs_match import filed
from checkers.views.row import Row
from checkers.views.unclean_elections import End, LeaderStart, UncleanElection, unclean_elections
from harness.anomaly import AnomalyKind
from harness.checker import Evidence
from harness.facts import Facts, LogEpoch, StateInterval
from harness.findings import KEPT_PER_GROUP, Finding, of_group, position
from harness.model import CONTROLLER_ID, TopicPartition


class Conclusion(NamedTuple):
    """A finding with its sentence and its evidence."""

    finding: Finding
    why: str
    evidence: tuple[Evidence, ...]


class FactRule(Protocol):
    """A rule on facts: a module whose docstring states the promise, and how a breach is judged.

    A new one is a module with these names and a line in ``checkers.registry.CONCLUSIONS``, or a plugin.
    """

    @property
    def KINDS(self) -> tuple[AnomalyKind, ...]:  # noqa: N802 - a module's constant
        """The kinds of anomaly that breach it."""
        ...

    def conclude(self, run: RunFacts) -> Iterator[Conclusion]:
        """Every breach in one run."""
        ...


@dataclass(frozen=True)
class RunFacts:
    """What is known about one run.

    Attributes:
        wanted: what the configuration demands; None: it does not say.
        generation: the protocol's generation; empty: not known.
        unrest: what the runner saw of a healed cluster that did not recover, as in ``run.json``; empty: it did.
        endings: how lives of nodes ended that had not been ordered to, as in ``run.json``.
        orders: the DeleteRecords that were sent, by partition; None: the run does not say.
    """

    run: str
    facts: Facts
    faults: Sequence[Row]
    guarantees: Mapping[str, Any]
    wanted: Expected | None
    generation: str = ""
    unrest: Mapping[str, Any] = field(default_factory=dict)
    endings: Sequence[Mapping[str, Any]] = ()
    orders: Mapping[TopicPartition, Sequence[Order]] | None = None

    @property
    def sampled(self) -> bool:
        """Whether the timeline consists of samples of the brokers' states (:mod:`checkers.views.sampled_timelines`)."""
        return is_sampled(self.guarantees)

    @property
    def is_virtual(self) -> bool:
        """Whether the time of the run is virtual, so that nothing is late because a machine is busy."""
        return self.guarantees.get("time") == "virtual"

    @cached_property
    def excusing(self) -> list[Row]:
        """The faults that may excuse something."""
        return filed(self.faults, self.wanted)

    @cached_property
    def reported(self) -> dict[TopicPartition, dict[int, list[StateInterval]]]:
        """The states that each broker reported of each replica while it ran, in order."""
        found: dict[TopicPartition, dict[int, list[StateInterval]]] = defaultdict(lambda: defaultdict(list))
        for one in self.facts.intervals:
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
        for one in self.facts.intervals:
            if one.topic is not None and one.node == CONTROLLER_ID and one.kind in ("election", "isr"):
                found[where(one)].append(one)
        return {place: sorted(intervals, key=age) for place, intervals in found.items()}

    @cached_property
    def ended(self) -> dict[TopicPartition, dict[int, StateInterval]]:
        """How each broker's replica was found in the end."""
        found: dict[TopicPartition, dict[int, StateInterval]] = defaultdict(dict)
        for one in sorted(self.facts.intervals, key=age):
            if one.topic is not None and one.node != CONTROLLER_ID and one.kind == "final":
                found[where(one)][one.node] = one
        return found

    @cached_property
    def sessions(self) -> list[tuple[int, int, str]]:
        """When the controller began or ended which broker's session: time, broker, what changed."""
        rows = sorted((x for x in self.facts.intervals if x.kind == "session"), key=age)
        changes = [(row.begin_ns, detail(row)) for row in rows]
        return [(time, int(d["broker"]), str(d["change"])) for time, d in changes if {"broker", "change"} <= set(d)]

    @cached_property
    def logs(self) -> dict[TopicPartition, dict[int, list[LogEpoch]]]:
        """The leader epochs in each replica's log, oldest first."""
        found: dict[TopicPartition, dict[int, list[LogEpoch]]] = defaultdict(lambda: defaultdict(list))
        for one in sorted(self.facts.log_epochs):
            found[TopicPartition(one.topic, one.partition)][one.node].append(one)
        return found

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
    def lasted(self) -> dict[tuple[int, int], int]:
        """Until when each life of a node is known to have lasted, in nanoseconds, by node and incarnation."""
        last_ns: dict[tuple[int, int], int] = defaultdict(int)
        for one in self.facts.intervals:
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

    def replication(self, place: TopicPartition) -> int | None:
        """How many replicas the partition has; None: the configuration does not state it."""
        demanded = None if self.wanted is None else self.wanted.partitions.get(place)
        return None if demanded is None else demanded.number

    def least_isr(self, place: TopicPartition) -> int | None:
        """The smallest ISR in which acks=all is acknowledged; None: the configuration does not state it."""
        least, replicas = self.guarantees.get("min_insync_replicas"), self.replication(place)
        return None if not isinstance(least, int) or replicas is None else min(least, replicas)

    def finding(self, kind: str, place: TopicPartition, **known: Any) -> Finding:
        """A finding about this run."""
        return Finding(self.run, kind, place.topic, place.partition, **known)


def is_watched(run: RunFacts) -> bool:
    """Whether brokers were there to be asked; not of an imported history, which only clients recorded."""
    return run.wanted is None or run.wanted.brokers


def is_sampled(guarantees: Mapping[str, Any]) -> bool:
    """Whether a run's timeline consists of samples of the brokers' states."""
    return guarantees.get("timeline") == "sampled"


def lag_allowed_ns(guarantees: Mapping[str, Any]) -> int | None:
    """How long a replica that lags may stay in the ISR; None: the run does not state it, or its timeline is sampled."""
    allowed_ms = guarantees.get("laggards_leave_ms")
    return None if not isinstance(allowed_ms, int) or is_sampled(guarantees) else allowed_ms * 1_000_000


def isr_wanted(guarantees: Mapping[str, Any]) -> int | None:
    """How large an ISR has to be for acks=all; None: any will do, or it is not stated or sampled."""
    least = guarantees.get("min_insync_replicas")
    return None if not isinstance(least, int) or least <= 1 or is_sampled(guarantees) else least


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


def age(interval: StateInterval) -> tuple[int, int, int]:
    """The order in which a node wrote its rows."""
    return interval.incarnation, interval.sequence, interval.begin_ns


def where(interval: StateInterval) -> TopicPartition:
    """The partition of an interval that is about one."""
    assert interval.topic is not None
    assert interval.partition is not None
    return TopicPartition(interval.topic, interval.partition)


def detail(interval: StateInterval) -> dict[str, Any]:
    """The ``detail`` of an interval's first row; empty where it has none."""
    found = json.loads(interval.detail or "{}")
    return found if isinstance(found, dict) else {}


def cite(interval: StateInterval, says: str, sequence: int | None = None) -> Evidence:
    """The first row of an interval, or another one, as evidence."""
    row = {"node": interval.node, "incarnation": interval.incarnation}
    return Evidence("timeline", {**row, "sequence": interval.sequence if sequence is None else sequence}, says)


def seen_at(interval: StateInterval, sequence: int | None = None) -> dict[str, int]:
    """The fields of a finding that name a row of a timeline."""
    at = interval.sequence if sequence is None else sequence
    return {"node": interval.node, "incarnation": interval.incarnation, "row": at, "time_ns": interval.begin_ns}


def kept(conclusions: Sequence[Conclusion]) -> list[Conclusion]:
    """The first conclusions of each kind, partition and excuse, with the totals of each group."""
    groups: dict[tuple[object, ...], list[Conclusion]] = defaultdict(list)
    for one in conclusions:
        x = one.finding
        groups[x.kind, x.topic, x.partition, x.excuse].append(one)
    return [
        one._replace(finding=of_group(one.finding, [other.finding for other in group]))
        for group in groups.values()
        for one in sorted(group, key=lambda c: position(c.finding))[:KEPT_PER_GROUP]
    ]
