"""What becomes of a healed cluster that does not get whole again."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import faults
from harness import scenario
from harness.clock import SystemClock
from harness.errors import InvalidRun
from harness.history.run_directory import RunDirectory
from harness.model import Link, NodeId, TopicPartition
from harness.runner import plan
from harness.runner import settle as settling
from harness.runner.archive import DirectoryArchive
from harness.runner.journal import Journal
from harness.runner.manifest import manifest, now
from harness.runner.nemesis import Nemesis
from harness.runner.plan import Plan
from harness.runner.run_environment import RunEnvironment
from harness.runner.run_lifecycle import RunLifecycle
from harness.target import Ending, ReplicaView
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view
from tests.harness.runner.by_wall_clock import by_wall_clock

LEDGER = TopicPartition("ledger", 0)
TEXT = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
settle_s: 0.1
chaos: {faults: [{fault: clock, node: any, offset_ms: 3600000}]}
"""


WHOLE = partition_view(0, [0, 1, 2])


class Hurried(SystemClock):
    """Its time passes while it is waited on alone, and at once."""

    def __init__(self) -> None:
        super().__init__()
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        return self._now_ns

    def sleep(self, seconds: float) -> None:
        self._now_ns += round(seconds * 1e9)


class Waiting(ScriptedTarget):
    """Its broker 1 waits for an hour that its clock has shown once, until it is started again."""

    def restart(self, node: str) -> None:
        super().restart(node)
        if node == "1":
            self.shown = cluster_view(3, {LEDGER: WHOLE})


def waiting() -> Waiting:
    replica = ReplicaView("follower", NodeId(0), 0, 1, 1, 0, (), {})
    return Waiting(
        shown=cluster_view(3, {LEDGER: dataclasses.replace(WHOLE, isr=(NodeId(0), NodeId(2)))}),
        replicas={(str(node), LEDGER): replica for node in range(3)},
    )


@pytest.fixture
def chaotic() -> Plan:
    return plan(scenario.parse(TEXT), seed=1, duration_s=1)


def settle(made: Plan, target: ScriptedTarget, path: Path, *harm: dict[str, Any]) -> list[str]:
    """What the lifecycle says while it waits for ``target``, which has suffered ``harm``."""
    said: list[str] = []
    directory = RunDirectory.create(path / "run", manifest(plan(made.scenario), "small/1", now()))
    environment = RunEnvironment(target, Hurried(), cast("Callable[..., Any]", logging.getLogger))
    with Journal(path / "journal") as journal:
        lifecycle = RunLifecycle(made, DirectoryArchive(directory), environment, journal, said.append)
        for number, written in enumerate(harm):
            lifecycle._nemesis.inject(f"f{number}", faults.parse(written, "test"))
        lifecycle.heal()
        lifecycle.settle()
    return said


def unrest(path: Path) -> Mapping[str, Any]:
    """What ``run.json`` says of a cluster that did not settle."""
    return RunDirectory.open(path / "run").manifest().unrest


def test_how_nodes_ended_by_themselves_is_written_down(chaotic: Plan, tmp_path: Path) -> None:
    ending = Ending(NodeId(1), 0, 17, 1, "FATAL over")
    target = ScriptedTarget(shown=cluster_view(3, {LEDGER: WHOLE}), ended=[ending])
    directory = RunDirectory.create(tmp_path / "run", manifest(chaotic, "small/1", now()))
    environment = RunEnvironment(target, Hurried(), cast("Callable[..., Any]", logging.getLogger))
    with Journal(tmp_path / "journal") as journal:
        RunLifecycle(chaotic, DirectoryArchive(directory), environment, journal, lambda _: None).collect()
    assert RunDirectory.open(directory.path).manifest().endings == [dataclasses.asdict(ending)]


CLOCK = {"fault": "clock", "node": 1, "offset_ms": 3_600_000}
KILL = {"fault": "kill", "node": 2}


def test_a_real_broker_whose_clock_was_set_back_is_restarted_when_it_does_not_return(
    chaotic: Plan, tmp_path: Path
) -> None:
    target = waiting()
    said = settle(by_wall_clock(chaotic), target, tmp_path, CLOCK)
    assert [call for call in target.calls if call[0] in ("kill", "restart")] == [("kill", "1"), ("restart", "1")]
    assert "restart of 1: proven: node 1 is dead" in said


@pytest.mark.parametrize("harm", [[], [KILL]])
def test_a_real_broker_that_does_not_return_without_a_fault_of_its_clock_is_a_finding(
    chaotic: Plan, tmp_path: Path, harm: list[dict[str, Any]]
) -> None:
    settle(by_wall_clock(chaotic), waiting(), tmp_path, *harm)
    assert unrest(tmp_path)["missing"] == {"ledger-0": ["the ISR is [0, 2], not [0, 1, 2]"]}


def test_a_built_in_broker_that_does_not_return_is_a_finding_whatever_its_clock_did(
    chaotic: Plan, tmp_path: Path
) -> None:
    target = waiting()
    settle(chaotic, target, tmp_path, CLOCK)
    assert unrest(tmp_path)["missing"]
    assert ("kill", "1") not in target.calls


def test_a_cluster_that_does_not_settle_because_of_its_environment_makes_the_run_invalid(
    chaotic: Plan, tmp_path: Path
) -> None:
    target = waiting()
    target.lossy.add(Link("0", "1"))
    with pytest.raises(InvalidRun, match=r"the ISR is \[0, 2\], not .* A probe blames its environment: 0->1"):
        settle(chaotic, target, tmp_path)
    assert not unrest(tmp_path)


def test_a_cluster_is_not_blamed_while_a_fault_may_be_in_force(chaotic: Plan, tmp_path: Path) -> None:
    target = waiting()
    target.ignored.add("mend")
    with pytest.raises(InvalidRun, match=r"did not settle, and fault f0 \(partition\) was not proven healed"):
        settle(chaotic, target, tmp_path, {"fault": "partition", "links": [[0, 1]]})
    assert not unrest(tmp_path)


def test_a_fault_that_found_nothing_to_aim_at_does_not_keep_a_cluster_from_being_stuck(
    chaotic: Plan, tmp_path: Path
) -> None:
    target = waiting()
    target.shown = cluster_view(
        3, {LEDGER: dataclasses.replace(WHOLE, isr=(NodeId(0),), replicas=(NodeId(0), NodeId(9)))}
    )
    settle(chaotic, target, tmp_path, {"fault": "kill", "node": "follower", "topic": "other"})
    assert unrest(tmp_path)["missing"]


def test_only_nodes_whose_clocks_have_moved_are_misled(tmp_path: Path) -> None:
    target = waiting()
    target.refused.add("kill")
    with Journal(tmp_path / "journal") as journal:
        nemesis = Nemesis(target, journal, SystemClock(), 1, lambda line: None)
        for number, written in enumerate((CLOCK, {"fault": "pause", "node": 0})):
            nemesis.inject(f"f{number}", faults.parse(written, "test"))
    assert settling.misled(nemesis.records) == ["1"]
