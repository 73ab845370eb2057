"""Random worlds: the newest protocol survives them, old ones do not, and the same seed is always the same story."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import faults
from harness.exploration.explore import run_seed
from harness.replication.knobs import GENERATIONS
from harness.replication.messages import RaiseLogStart, ReplicaEffect
from harness.replication.replica import Replica
from harness.replication.storage import Raising
from harness.simulation.core.configuration import Setup, draw, setup
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.core.drawn_kinds import DELETIONS, DISTURBANCES, DRAWN, FAULTS, effect_of
from harness.simulation.core.planned import draw_faults
from harness.simulation.trace import Trace
from harness.simulation.violations import Violation
from tests.by_night import seeds

ROOT = Path(__file__).parents[3]
SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def violations(chosen: Setup, seeds: Iterable[int]) -> dict[int, Violation]:
    return dict(found(chosen, seeds))


def found(chosen: Setup, seeds: Iterable[int]) -> Iterator[tuple[int, Violation]]:
    """The seeds with a violation, as soon as they are found."""
    explored = (run_seed(seed, chosen) for seed in seeds)
    return ((one.seed, one.violation) for one in explored if one.violation is not None)


def told(seed: int, chosen: Setup) -> list[str]:
    lines: list[str] = []
    CoreSimulation(seed, chosen, trace=Trace(lines.append)).run()
    return lines


@seeds(day=30, night=250)
def test_the_newest_protocol_keeps_what_it_promises_whatever_happens(seeds: range) -> None:
    assert violations(setup("4.1", SAFE), seeds) == {}


@seeds(day=4, night=40)
@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_without_any_fault_every_generation_converges_and_loses_nothing(generation: str, seeds: range) -> None:
    chosen = setup(generation, {"fault.count": "0", "loss": "0", "late": "0", "duplicate": "0"})
    assert violations(chosen, seeds) == {}


def test_the_oldest_protocol_loses_what_it_acknowledged() -> None:
    chosen = setup("0.10", {**SAFE, "faults": "kill,pause,partition"})
    assert any(violation.kind == "lost-write" for _, violation in found(chosen, range(96, 496)))


@seeds(day=20, night=1_000, first=62)
def test_a_power_loss_of_the_last_in_sync_replica_loses_records_without_eligible_leader_replicas(seeds: range) -> None:
    settings = {**SAFE, "faults": "kill,power_loss:3,partition", "flush.messages": "0", "flush.ms": "0"}
    assert any(violation.kind == "lost-write" for _, violation in found(setup("3.7", settings), seeds))
    assert violations(setup("4.1", settings), seeds) == {}


@seeds(day=15, night=150)
def test_the_newest_protocol_keeps_what_nobody_wanted_deleted(seeds: range) -> None:
    assert violations(setup("4.1", SAFE | {"deletions": "5"}), seeds) == {}


def test_deletions_are_drawn_apart_from_faults_and_make_logs_begin_later() -> None:
    seed, chosen = 7, setup("4.1", SAFE | {"deletions": "6"})
    world = CoreSimulation(seed, chosen)
    world.run()
    drawn = [fault for fault in world.faults if fault.kind not in DELETIONS]
    assert tuple(drawn) == draw_faults(seed, draw(seed, setup("4.1", SAFE | {"deletions": "0"}).pinned))
    assert {fault.kind for fault in world.in_force.happened} >= {"retention", "delete_records"}
    assert 0 < world.witness.committed.deleted <= world.witness.committed.end
    assert max(broker.disk.start for broker in world.brokers) == world.witness.committed.deleted


def test_a_core_that_deletes_what_is_not_committed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: Replica, offset: int, reason: str, token: object = None) -> list[ReplicaEffect]:
        self._storage = Raising(token)
        return [RaiseLogStart(min(offset, self.log_end_offset), reason)] if offset > self.log_start_offset else []

    monkeypatch.setattr(Replica, "_raise_log_start", careless)
    chosen = setup("4.1", SAFE | {"deletions": "6", "faults": "partition"})
    assert any(violation.invariant == "R8" for _, violation in found(chosen, range(60)))


def test_each_seed_draws_a_cluster_of_its_own_and_faults_of_its_own() -> None:
    drawn = [draw(seed) for seed in range(50)]
    assert len({one.nodes for one in drawn}) == 3
    assert len({one.replica_lag_time_max_ms for one in drawn}) == 4
    assert len({tuple(sorted(one.faults)) for one in drawn}) > 30
    assert len({draw_faults(seed, draw(seed)) for seed in range(50)}) > 45


def test_the_kinds_of_faults_are_drawn_in_the_order_in_which_every_known_seed_has_drawn_them() -> None:
    assert [one.name for one in DRAWN] == [
        "kill", "stop", "power_loss", "pause", "partition", "partition/between", "slow_links", "clock", "disk_full",
        "kill/controller", "pause/controller", "elect",
    ]  # fmt: skip


def test_every_drawn_fault_is_one_of_faults_and_the_page_says_what_each_does() -> None:
    page = (ROOT / "docs/simulation.md").read_text()
    for drawn in FAULTS.values():
        assert faults.KINDS[drawn.kind] is drawn.fault
    for one in (*DRAWN, *DELETIONS.values()):
        assert f"| `{one.name}` | {one.does} |" in page
    assert not faults.KINDS.keys() & (DISTURBANCES.keys() | DELETIONS.keys())


@pytest.mark.parametrize("kind", ["wipe_disk", "corrupt_log", "log_dir_failure"])
def test_the_simulator_has_no_effect_for_a_fault_that_it_cannot_draw(kind: str) -> None:
    with pytest.raises(ValueError, match="no effect"):
        effect_of(faults.KINDS[kind].traits)


def test_faults_and_disturbances_are_one_mix() -> None:
    for settings, expected in (
        ({"faults": "kill:2"}, {"kill"}),
        ({"disturbances": "elect"}, {"elect"}),
        ({"faults": "pause/controller", "disturbances": "elect"}, {"pause", "elect"}),
    ):
        pinned = setup("4.1", settings | {"fault.count": "30"}).pinned
        assert {one.kind for one in draw_faults(1, draw(1, pinned))} == expected


def test_what_is_pinned_is_not_drawn() -> None:
    pinned = setup("4.1", {"replication.factor": "4", "acks": "all", "faults": "kill:2,pause"}).pinned
    assert {(one.nodes, one.acks, tuple(one.faults)) for one in (draw(seed, pinned) for seed in range(20))} == {
        (4, (-1,), ("kill", "pause"))
    }


def test_a_fault_that_is_left_out_leaves_what_came_before_it_as_it_was() -> None:
    chosen = setup("3.7", SAFE)
    seed, configuration = 5, draw(5, setup("3.7", SAFE).pinned)
    faults = draw_faults(seed, configuration)
    stories = []
    for some in (faults, faults[:-1]):
        lines: list[str] = []
        CoreSimulation(seed, chosen, faults=some, trace=Trace(lines.append)).run()
        stories.append(lines)
    last_ms = faults[-1].at_ns / 1e6
    before = [[line for line in lines if float(line[:12]) < last_ms] for lines in stories]
    assert before[0] == before[1] != []


def test_the_same_seed_tells_the_same_story_twice() -> None:
    assert told(7, setup("2.8", {})) == told(7, setup("2.8", {}))


@pytest.mark.parametrize(
    "hash_seeds", [("0", "1"), pytest.param(("0", "42"), marks=pytest.mark.nightly("one more order of hashes"))]
)
def test_the_same_seed_tells_the_same_story_whatever_the_hash_seed(hash_seeds: tuple[str, str]) -> None:
    program = "import sys; from harness.cli import main; sys.exit(main(['replay', '3', '--generation', '0.11']))"
    stories = [
        subprocess.run(
            (sys.executable, "-c", program),
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=False,
        ).stdout
        for hash_seed in hash_seeds
    ]
    assert len(stories[0]) > 10_000
    assert stories[0] == stories[1]


def test_a_trace_has_a_line_for_every_transition_in_fixed_columns() -> None:
    lines = told(1, setup("4.1", {}))
    assert {line[12] for line in lines} == {" "}
    times = [float(line[:12]) for line in lines]
    assert times == sorted(times)
    for what in ("FetchReceived", "  AnswerFetch", "ProduceRequested", "  HighWatermarkAdvanced", "  Elected", "send"):
        assert any(line[18:].startswith(what) for line in lines), what
