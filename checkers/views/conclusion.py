"""Rules on facts: what they are (:class:`FactRule`), and what they return (:class:`Conclusion`).

Rules about elections, ISR changes and truncations are written once: each engine reduces the evidence to the same facts,
and one piece of plain Python judges them. A rule is given the parts of the evidence that the types of its parameters
name: :class:`checkers.views.states.States`, :class:`checkers.views.log_epochs.LogEpochs`,
:class:`checkers.views.configured.Configured`, :class:`checkers.views.fault_journal.FaultJournal`,
:class:`checkers.views.runner_report.RunnerReport`, and the other facts by their groups (:mod:`harness.facts`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from harness.anomaly import AnomalyKind
from harness.checker import Evidence
from harness.facts import StateInterval
from harness.findings import KEPT_PER_GROUP, Finding, of_group, position
from harness.model import TopicPartition


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

    @property
    def conclude(self) -> Callable[..., Iterable[Conclusion]]:
        """Every breach in one run, by those parts of its evidence that its parameters name."""
        ...


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
