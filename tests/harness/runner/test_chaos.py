from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness import scenario
from harness.clock import SystemClock
from harness.model import NodeId, TopicPartition
from harness.runner import plan
from harness.runner.chaos import Chaos
from harness.runner.journal import Journal
from harness.runner.nemesis import Nemesis
from harness.runner.run_lifecycle import chaos_of
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view
from tests.harness.runner.by_wall_clock import by_wall_clock
from tests.harness.runner.mix_of import mix_of

TEXT = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
chaos:
  interval_s: [0, 0.005]
  for_s: [0, 0.005]
  faults:
    - {fault: kill, node: leader}
    - {fault: pause, node: any}
    - {fault: partition, isolate: follower}
    - {fault: disk_full, node: any}
    - {fault: clock, node: any, offset_ms: 60000, weight: 2, for_s: [0.02, 0.02]}
"""
VIEW = cluster_view(3, {TopicPartition("ledger", 0): partition_view(1, [1, 0, 2])})
TAKES_A_BROKER_AWAY = {"kill", "pause", "cut", "limit_disk"}


def unleashed(tmp_path: Path, seed: int, duration_s: float = 0.01) -> tuple[Nemesis, ScriptedTarget]:
    target = ScriptedTarget(shown=VIEW)
    with Journal(tmp_path / "run") as journal:
        nemesis = Nemesis(target, journal, SystemClock(), seed, lambda line: None)
        made = plan(scenario.parse(TEXT), seed=seed, duration_s=duration_s)
        Chaos(mix_of(made), (), target, nemesis, SystemClock()).unleash()
        nemesis.heal_all()
    return nemesis, target


def test_every_kind_comes_up_however_short_the_run_is(tmp_path: Path) -> None:
    nemesis, _ = unleashed(tmp_path, seed=3)
    kinds = [record.kind for record in nemesis.records]
    assert sorted(kinds) == ["clock", "clock", "disk_full", "kill", "partition", "pause"]
    assert not nemesis.unproven()
    assert all(record.heal_proven_ns for record in nemesis.records)


def test_a_longer_run_has_more_faults(tmp_path: Path) -> None:
    nemesis, _ = unleashed(tmp_path, seed=3, duration_s=0.5)
    assert len(nemesis.records) > 6


def test_at_most_one_broker_is_away_at_a_time(tmp_path: Path) -> None:
    _, target = unleashed(tmp_path, seed=5, duration_s=0.3)
    away = 0
    for method, *arguments in target.calls:
        injected = method in TAKES_A_BROKER_AWAY and not (method == "limit_disk" and arguments[1] is None)
        healed = method in {"restart", "resume", "mend"} or (method == "limit_disk" and arguments[1] is None)
        away += injected - healed
        assert 0 <= away <= 1


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_does_the_same_to_the_same_cluster(tmp_path: Path, seed: int) -> None:
    first, second = (
        [(r.kind, r.row("r")["nodes"], r.row("r")["parameters"]) for r in unleashed(tmp_path, seed)[0].records]
        for _ in range(2)
    )
    assert first == second


class Forgetful(ScriptedTarget):
    """Its broker 1 is out of the ISR once its clock has been moved, until it is started again."""

    def offset_clock(self, node: str, offset_ms: int) -> None:
        super().offset_clock(node, offset_ms)
        behind = dataclasses.replace(partition_view(0, [0, 1, 2]), isr=(NodeId(0), NodeId(2)))
        self.shown = cluster_view(3, {TopicPartition("ledger", 0): behind})

    def restart(self, node: str) -> None:
        super().restart(node)
        if node == "1":
            self.shown = cluster_view(3, {TopicPartition("ledger", 0): partition_view(0, [0, 1, 2])})


def test_a_real_broker_that_its_clock_keeps_away_is_started_again_before_another_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runner.chaos._REGAIN_S", 0.02)
    text = TEXT[: TEXT.index("  faults:")] + (
        "  faults:\n"
        "    - {fault: clock, node: 1, offset_ms: 60000, for_s: [0.02, 0.02]}\n"
        "    - {fault: kill, node: 2}\n"
    )
    target = Forgetful(shown=cluster_view(3, {TopicPartition("ledger", 0): partition_view(0, [0, 1, 2])}))
    made = by_wall_clock(plan(scenario.parse(text), seed=1, duration_s=0.2))
    clock = VirtualScheduler()
    with Journal(tmp_path / "run") as journal:
        nemesis = Nemesis(target, journal, clock, 1, lambda line: None)
        chaos_of(made, mix_of(made), target, nemesis, clock).unleash()
    restarts = [record.name for record in nemesis.records if record.name.startswith("restart of 1")]
    assert restarts[:2] == ["restart of 1", "restart of 1, time 2"]
    away = {"1": False}
    for method, *arguments in target.calls:
        if method == "offset_clock":
            away["1"] = True
        elif (method, *arguments) == ("restart", "1"):
            away["1"] = False
        elif (method, *arguments) == ("kill", "2"):
            assert not away["1"]
