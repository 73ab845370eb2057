"""Several faults at once, on a target that lives in memory and in virtual time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from checkers.verdicts.memory import decided
from harness import scenario
from harness.checker import Outcome, Verdict
from harness.clock import PacedClock
from harness.errors import UsageError
from harness.model import NodeId, TopicPartition
from harness.runner import plan
from harness.runner.journal import Journal
from harness.runner.nemesis import Nemesis
from harness.runner.overlapping_chaos import OverlappingChaos
from harness.runner.plan import Plan
from harness.runner.rehearsal import rehearse
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.target import ClusterView, PartitionView
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view
from tests.harness.runner.mix_of import mix_of

TEXT = """\
id: small
title: A small scenario
source: a test
cluster: {settings: {min.insync.replicas: 2, broker.session.timeout.ms: 300, replica.lag.time.max.ms: 300}}
topics: [{name: ledger}]
workload: {name: unique_sends}
chaos:
  at_once: 3
  interval_s: [0.01, 0.1]
  for_s: [0.2, 0.6]
  faults:
    - {fault: kill, node: leader}
    - {fault: kill, node: any}
    - {fault: pause, node: any}
    - {fault: partition, between: [leader, follower]}
    - {fault: disk_full, node: any}
    - {fault: power_loss, node: any}
    - {fault: clock, node: any, offset_ms: 60000, weight: 2}
"""
LEDGER = TopicPartition("ledger", 0)
WHOLE = cluster_view(3, {LEDGER: partition_view(1, [1, 0, 2])})


class Dropping(ScriptedTarget):
    """Drops dead brokers from the ISR."""

    def kill(self, node: str) -> None:
        super().kill(node)
        self._show()

    def lose_power(self, node: str) -> None:
        super().lose_power(node)
        self._show()

    def restart(self, node: str) -> None:
        super().restart(node)
        self._show()

    def _show(self) -> None:
        isr = tuple(NodeId(node) for node in range(3) if not self._away(str(node)))
        leader = isr[0] if isr else NodeId(-1)
        self.shown = cluster_view(3, {LEDGER: PartitionView(leader, 0, isr, tuple(map(NodeId, range(3))))})

    def _away(self, node: str) -> bool:
        return self.is_dead(node).holds


class Misled(Dropping):
    """A broker whose clock was moved stays out of the ISR until it is started again."""

    def __init__(self) -> None:
        super().__init__(shown=WHOLE)
        self._misled: set[str] = set()

    def offset_clock(self, node: str, offset_ms: int) -> None:
        super().offset_clock(node, offset_ms)
        self._misled.add(node)
        self._show()

    def restart(self, node: str) -> None:
        self._misled.discard(node)
        super().restart(node)

    def _away(self, node: str) -> bool:
        return node in self._misled or super()._away(node)


class Unhurried(ScriptedTarget):
    """Drops a broker that has lost power from the ISR after ``notices_s``; keeps the ISR that each restart meets."""

    def __init__(self, clock: PacedClock, notices_s: float) -> None:
        super().__init__(shown=WHOLE)
        self._clock = clock
        self._notices_ns = round(notices_s * 1e9)
        self._lost_ns: dict[str, int] = {}
        self.isr_met: list[tuple[NodeId, tuple[NodeId, ...]]] = []

    def lose_power(self, node: str) -> None:
        super().lose_power(node)
        self._lost_ns[node] = self._clock.monotonic_ns()

    def restart(self, node: str) -> None:
        self.isr_met.append((NodeId(int(node)), self.view().partitions[LEDGER].isr))
        super().restart(node)
        self._lost_ns.pop(node, None)

    def view(self) -> ClusterView:
        noticed_ns = self._clock.monotonic_ns() - self._notices_ns
        gone = {int(node) for node, lost_ns in self._lost_ns.items() if lost_ns <= noticed_ns}
        return cluster_view(3, {LEDGER: partition_view(1, [node for node in (1, 0, 2) if node not in gone])})


def made(text: str = TEXT, *, seed: int = 1, duration_s: float = 5.0, **overrides: str) -> Plan:
    named = {f"chaos.{name}": value for name, value in overrides.items()}
    return plan(scenario.parse(text), seed=seed, duration_s=duration_s, overrides=named)


def unleashed(
    tmp_path: Path,
    drawn: Plan,
    target: ScriptedTarget | None = None,
    clock: PacedClock | None = None,
    *,
    by_wall_clock: bool = False,
) -> Nemesis:
    target = target or Dropping(shown=WHOLE)
    clock = clock or VirtualScheduler()
    with Journal(tmp_path / "run") as journal:
        nemesis = Nemesis(target, journal, clock, drawn.seed, lambda line: None)
        mix, partitions = mix_of(drawn), drawn.partitions
        OverlappingChaos(mix, partitions, target, nemesis, clock, by_wall_clock=by_wall_clock).unleash()
    assert not nemesis.active
    return nemesis


def at_once(nemesis: Nemesis) -> int:
    """How many faults of processes and links were in force at one time."""
    records = [one for one in nemesis.records if one.kind != "clock" and one.fault is not None]
    spans = [(one.injected_ns or 0, one.healed_ns or 0) for one in records]
    return max(sum(begun <= at < ended for begun, ended in spans) for at, _ in spans)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("budget", ["promised", "any"])
def test_faults_overlap_and_each_kind_comes_up_and_is_proven(tmp_path: Path, seed: int, budget: str) -> None:
    nemesis = unleashed(tmp_path, made(seed=seed, budget=budget))
    kinds = {record.kind for record in nemesis.records}
    assert kinds == {"clock", "disk_full", "kill", "partition", "pause", "power_loss"}
    assert not nemesis.unproven()
    assert 2 <= at_once(nemesis) <= 3


def test_a_power_loss_is_not_healed_before_a_slow_controller_has_dropped_the_broker(tmp_path: Path) -> None:
    mix = TEXT[TEXT.index("    - {fault: kill") :]
    text = TEXT.replace(mix, "    - {fault: power_loss, node: 2}\n").replace("timeout.ms: 300", "timeout.ms: 30000")
    drawn = plan(scenario.parse(text), generation="3.7", duration_s=0.2)
    clock: PacedClock = VirtualScheduler()
    target = Unhurried(clock, notices_s=30)
    unleashed(tmp_path, drawn, target, clock)
    assert target.isr_met == [(2, (1, 0))]


@pytest.mark.parametrize("by_wall_clock", [True, False])
def test_brokers_that_moved_clocks_keep_away_are_started_again_and_faults_go_on(
    tmp_path: Path, *, by_wall_clock: bool
) -> None:
    mix = TEXT[TEXT.index("    - {fault: kill") :]
    faults = ["clock, node: 2, offset_ms: 60000", "kill, node: leader", "power_loss, node: 2"]
    drawn = made(TEXT.replace(mix, "".join(f"    - {{fault: {one}}}\n" for one in faults)), duration_s=60)
    nemesis = unleashed(tmp_path, drawn, Misled(), by_wall_clock=by_wall_clock)
    names = [record.name for record in nemesis.records]
    assert any(name.startswith("restart of 2") for name in names) is by_wall_clock
    losses = [record for record in nemesis.records if record.kind == "power_loss" and record.proven_ns]
    assert (len(losses) > 1) is by_wall_clock


def test_every_kind_comes_up_however_short_the_run_is(tmp_path: Path) -> None:
    nemesis = unleashed(tmp_path, made(duration_s=0.01))
    assert {record.kind for record in nemesis.records} >= {"clock", "disk_full", "kill", "partition", "power_loss"}
    assert not nemesis.unproven()


def test_what_could_never_come_up_is_said_and_not_proven(tmp_path: Path) -> None:
    alone = cluster_view(3, {LEDGER: PartitionView(NodeId(0), 0, (NodeId(0),), tuple(map(NodeId, range(3))))})
    nemesis = unleashed(tmp_path, made(duration_s=0.01), ScriptedTarget(shown=alone))
    (unproven,) = [sentence for sentence in nemesis.unproven() if "(power_loss)" in sentence]
    assert unproven.partition(" was not proven: ")[2]


def test_a_cluster_that_promises_nothing_of_lossy_failures_is_spared_them() -> None:
    weak = plan(scenario.parse(TEXT), overrides={"settings.min.insync.replicas": "1"})
    assert [one.fault.kind for one in mix_of(weak).faults.values()].count("power_loss") == 0
    (why,) = mix_of(weak).left_out.values()
    assert why == (
        "chaos.faults[5]: 'power_loss' is not within budget 'promised': with min.insync.replicas=1 Kafka promises to "
        "survive no failure that takes from a disk."
    )
    assert len(weak.resolved()["scenario"]["chaos"]["faults"]) == 6
    for anyway in ({"chaos.budget": "any"}, {"chaos.at_once": "1"}):
        strong = plan(scenario.parse(TEXT), overrides={"settings.min.insync.replicas": "1", **anyway})
        assert not mix_of(strong).left_out


def test_a_mix_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'power_loss' is not within budget 'promised'.* Set chaos\.budget=any"):
        plan(
            scenario.parse(TEXT),
            overrides={
                "settings.min.insync.replicas": "1",
                "chaos.faults": "[{fault: power_loss, node: any}]",
            },
        )


QUICK = {
    "settings.broker.session.timeout.ms": "300",
    "settings.broker.heartbeat.interval.ms": "50",
    "settings.replica.lag.time.max.ms": "400",
    "settings.replica.fetch.wait.max.ms": "50",
    "settings.replica.socket.timeout.ms": "300",
    "workload.rate": "60",
    "workload.producers": "4",
    "workload.acks": "[all, all, 1, 0]",
    "chaos.for_s": "[0.1, 0.5]",
}


@cache
def rehearsed(seed: int, generation: str, **more: str) -> tuple[Outcome, set[Verdict], list[tuple[str, str]]]:
    drawn = plan(
        scenario.load("random-chaos"), "simulated", generation, seed, duration_s=3.0, overrides={**QUICK, **more}
    )
    run = rehearse(drawn)
    archive = run.archive
    tables = (archive.history, archive.tables.get("timeline", ()), archive.tables.get("replica_logs", ()))
    faults = archive.tables.get("faults", ())
    verdict = decided(run.manifest, tables, faults)
    return (
        verdict.outcome,
        {one.verdict for one in verdict.anomalies},
        [(row["fault"], str(row["injected_ns"])) for row in faults],
    )


@pytest.mark.parametrize(
    "generation",
    [
        "2.1",
        *(pytest.param(name, marks=pytest.mark.nightly("by day the oldest and the newest")) for name in ("2.8", "3.7")),
        "4.1",
    ],
)
def test_a_healthy_cluster_survives_what_it_promises_to_survive(generation: str) -> None:
    outcome, verdicts, _ = rehearsed(5, generation)
    assert outcome == Outcome.PASS
    assert verdicts <= {Verdict.WEAK, Verdict.DOCUMENTED}


def test_one_seed_does_the_same_twice_in_virtual_time() -> None:
    assert rehearsed(5, "4.1") == rehearsed.__wrapped__(5, "4.1")


def test_a_broken_cluster_does_not() -> None:
    outcome, _, _ = rehearsed(5, "4.1", **{"replication.bugs": "ack_on_append"})
    assert outcome == Outcome.VIOLATION
