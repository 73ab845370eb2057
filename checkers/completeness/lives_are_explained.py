"""Every start and every exit of a node in the timeline has a fault or a recorded exit that explains it.

A fault's times, and a life's ending, decide what excuses what. Where they contradict the node's own rows the run is
``INVALID``:

* a node has another life after one, and neither was a fault in force meanwhile that restarts a node, nor is the end of
  the first life among the ``endings``; a broker that writes that it halts after a storage error did end;
* a node has written a row while a fault is proven to keep it down, in a life that had begun before. In a life that
  begins while it is down the node is already being healed, which takes no time in virtual time, and on the machine
  less than ten seconds after the first row;
* a node is down twice at once.

Sampled timelines, and runs that no target made, are not checked: their lives are not the harness's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from checkers.views.conclusion import detail
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from checkers.views.runner_report import RunnerReport
from checkers.views.states import States
from faults import traits_of
from harness.downtime import in_force
from harness.fault import DiskEffect, ProcessEffect
from harness.model import NodeId, node_name

_HEALING_NS = 10_000_000_000
"""For how long a restarted node may write rows before the harness has seen that it is up."""


class Life(NamedTuple):
    """One incarnation of a node: when its own rows begin and end, and whether a row records that the node halts."""

    node: int
    incarnation: int
    begin_ns: int
    end_ns: int
    halts: bool


def contradictions(states: States, configured: Configured, journal: FaultJournal, runner: RunnerReport) -> list[str]:
    """One sentence for each life or fault that another witness contradicts; of a run that a target made."""
    if states.sampled:
        return []
    by_node: dict[int, list[Life]] = {}
    for life in _lives(states):
        by_node.setdefault(life.node, []).append(life)
    sentences = [*_at_once(journal.faults)]
    for node, lives in sorted(by_node.items()):
        own = [fault for fault in journal.faults if node_name(NodeId(node)) in fault["nodes"]]
        sentences += _unexplained(runner, lives, own)
        sentences += _up_while_down(
            lives, own, healing_ns=0 if configured.guarantees.get("time") == "virtual" else _HEALING_NS
        )
    return sentences


def _lives(states: States) -> list[Life]:
    found: dict[tuple[int, int], Life] = {}
    for one in states.intervals:
        if one.kind != "final":
            halts = one.kind == "storage_failed" and detail(one).get("halts") is True
            before = found.get((one.node, one.incarnation), Life(one.node, one.incarnation, one.begin_ns, 0, False))
            found[one.node, one.incarnation] = before._replace(
                begin_ns=min(before.begin_ns, one.begin_ns), end_ns=max(before.end_ns, one.end_ns),
                halts=before.halts or halts,
            )  # fmt: skip
    return [life for _, life in sorted(found.items())]


def _unexplained(runner: RunnerReport, lives: Sequence[Life], faults: Sequence[Row]) -> Iterator[str]:
    """A sentence for each life of a node that follows another one without a reason."""
    ended = {(ending["node"], ending["incarnation"]) for ending in runner.endings}
    for before, life in pairwise(lives):
        if (before.node, before.incarnation) not in ended and not any(
            _may_have_ended(fault, before)
            and in_force(fault["injected_ns"], fault["heal_proven_ns"], before.end_ns, life.begin_ns)
            for fault in faults
        ):
            halted = ", in which a row records that it halts" if before.halts else ""
            yield (
                f"Node {node_name(NodeId(life.node))} has a life {life.incarnation}, and neither a fault nor an ending "
                f"in run.json says how its life {before.incarnation} ended{halted}."
            )


def _may_have_ended(fault: Row, life: Life) -> bool:
    """Whether the harness may have ended this life under a fault of that kind.

    Of a node that has lost its last log directory it may do so before the node halts by itself.
    """
    traits = traits_of(fault["kind"])
    if traits.process is ProcessEffect.MAY_END:
        return not life.halts or traits.disk is DiskEffect.DIRECTORY
    return traits.process is ProcessEffect.ENDS


def _up_while_down(lives: Sequence[Life], faults: Sequence[Row], *, healing_ns: int) -> Iterator[str]:
    """A sentence for each fault during which its node has written rows."""
    for fault in faults:
        if (
            traits_of(fault["kind"]).process is not ProcessEffect.ENDS
            or fault["proven_ns"] is None
            or fault["healed_ns"] is None
        ):
            continue
        since_ns, until_ns = fault["proven_ns"], fault["healed_ns"]
        early = [x for x in lives if x.end_ns > since_ns and x.begin_ns < max(since_ns, until_ns - healing_ns)]
        if early:
            yield (
                f"Fault {fault['fault']!r} ({fault['kind']}) has node {node_name(NodeId(early[0].node))} down from "
                f"{since_ns} to {until_ns}, and the node has rows of its life {early[0].incarnation} meanwhile."
            )


def _at_once(faults: Sequence[Row]) -> Iterator[str]:
    """A sentence for each pair of proven faults that have one node down at one time."""
    down: Mapping[str, list[Row]] = {node: [] for fault in faults for node in fault["nodes"]}
    for fault in faults:
        seen = None not in (fault["injected_ns"], fault["proven_ns"], fault["healed_ns"])
        if seen and traits_of(fault["kind"]).process is ProcessEffect.ENDS:
            for node in fault["nodes"]:
                down[node].append(fault)
    for node, own in sorted(down.items()):
        for first, second in pairwise(sorted(own, key=lambda x: (x["injected_ns"], x["healed_ns"]))):
            if second["injected_ns"] < first["healed_ns"]:
                yield (
                    f"Faults {first['fault']!r} and {second['fault']!r} both have node {node} down "
                    f"at {second['injected_ns']}."
                )
