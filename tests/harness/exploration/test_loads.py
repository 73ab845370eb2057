"""Loads of groups and transactions in an exploration: who draws them, what they find, and that a seed is one story."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from checkers.verdicts.check import check
from checkers.verdicts.memory import decided
from harness.checker import Outcome, RunVerdict
from harness.cli import main
from harness.errors import ExitCode
from harness.exploration.depth import Run, run_of, write
from harness.exploration.explore import run_seed
from harness.exploration.loaded_simulation import CHECKERS, INCONCLUSIVE_LOAD, LoadedSimulation
from harness.exploration.loads import drawn
from harness.exploration.scenario_text import shrunk_document
from harness.exploration.shrink import Shrunk, shrink_seed
from harness.model import CORE, STACK
from harness.replication.knobs import GENERATIONS
from harness.runner import plan
from harness.scenario import Scenario
from harness.simulation.core.configuration import Setup, draw, drawn_for, setup
from harness.simulation.core.drawn_loads import LOADS, PLAIN, loads_of
from harness.simulation.core.planned import draw_all
from harness.simulation.trace import Trace
from harness.validation import validated
from tests.by_night import seeds

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def under(load: str, bug: str = "", generation: str = "4.1", **settings: str) -> Setup:
    switched = {"replication.bugs": bug} if bug else {}
    return setup(generation, {**SAFE, **switched, **settings, "load": load}, STACK)


# ------------------------------------------------------------------------------------------------------ what is drawn


def test_a_load_is_drawn_apart_so_that_seeds_without_one_are_what_they_were() -> None:
    for seed in range(200):
        found = drawn_for(seed, setup("4.1", {}, STACK))
        assert (found.load == PLAIN) == (found == draw(seed))


@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_every_load_that_a_generation_serves_comes_up_and_no_other(generation: str) -> None:
    drawn_loads = Counter(drawn_for(seed, setup(generation, {}, STACK)).load for seed in range(300))
    assert set(drawn_loads) == set(loads_of(GENERATIONS[generation]))
    assert 0.6 < drawn_loads[PLAIN] / 300 < 0.9


def test_the_bare_core_has_the_plain_load_alone() -> None:
    assert {drawn_for(seed, setup("4.1", {}, CORE)).load for seed in range(200)} == {PLAIN}


def test_a_knob_that_is_turned_leaves_the_load_as_it_was() -> None:
    usual, turned = setup("3.7", {}, STACK), setup("3.7", {"replication.consumer_protocol": "true"}, STACK)
    assert [drawn_for(seed, usual) for seed in range(200)] == [drawn_for(seed, turned) for seed in range(200)]


@pytest.mark.parametrize("load", LOADS[1:])
def test_a_load_is_a_scenario_that_can_be_planned_whatever_it_draws(load: str) -> None:
    varied = set()
    for seed in range(40):
        for generation in GENERATIONS:
            if load in loads_of(GENERATIONS[generation]):
                made = drawn(seed, load, 2 + seed % 3, GENERATIONS[generation])
                LoadedSimulation(seed, under(load, generation=generation))
                varied.add(str(made.workload))
    assert len(varied) > 20


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "load=groups"], "needs coordinators, and the bare core has none. Add --depth stack."),
        (["--set", "load=assigned", "--depth", "stack", "--generation", "3.7"], "generation 3.7 does not serve it"),
        (["--set", "load=grups", "--depth", "stack"], "did you mean 'groups'?"),
    ],
)
def test_a_load_that_cannot_be_had_is_refused(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "1", *words]) == ExitCode.USAGE
    assert says in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------------- what it finds

FOUND = [
    ("groups", "commit_forgotten", 0, {"lost-commit"}),
    ("groups", "commits_unfenced", 4, {"stale-commit"}),
    ("assigned", "partitions_given_before_release", 0, {"two-owners"}),
    ("transactions", "marker_lost", 0, {"aborted-read", "wrong-marker"}),
    ("transactions", "zombies_obeyed", 3, {"wrong-marker"}),
    ("pipelined", "sequence_unchecked", 0, {"duplicate", "repeated-sequence"}),
    ("pipelined", "sequence_expected_again", 4, {"unjustified-refusal"}),
    ("pipelined", "producers_forgotten", 5, {"sequence-gap"}),
    ("pipelined", "producer_epochs_unfenced", 4, {"zombie-append"}),
]


def violations(run: Run) -> set[tuple[str, str]]:
    return {(one.invariant, one.kind) for one in run.run().violations if one.verdict == "VIOLATION"}


@pytest.mark.parametrize(("load", "bug", "seed", "kinds"), FOUND, ids=[bug for _, bug, *_ in FOUND])
def test_a_bug_of_a_coordinator_is_found_and_a_sound_cluster_is_not_accused(
    load: str, bug: str, seed: int, kinds: set[str]
) -> None:
    assert {(CHECKERS, kind) for kind in kinds} <= violations(run_of(seed, under(load, bug)))
    assert violations(run_of(seed, under(load))) == set()


@seeds(day=1, night=10, first=40)
@pytest.mark.parametrize("load", LOADS[1:])
def test_the_newest_coordinators_keep_what_they_promise_whatever_happens(load: str, seeds: range) -> None:
    explored = [run_seed(seed, under(load)) for seed in seeds]
    assert [one for one in explored if one.violation is not None] == []
    assert any(INCONCLUSIVE_LOAD not in dict(one.excused) for one in explored)


def test_a_coordinator_that_answers_no_producer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.broker.broker.init_producer_id", lambda *arguments: None)
    assert violations(run_of(0, under("transactions"))) == {(CHECKERS, "stuck")}


def test_a_load_that_proves_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubtful(*evidence: Any) -> RunVerdict:
        return replace(decided(*evidence), outcome=Outcome.INCONCLUSIVE)

    monkeypatch.setattr("harness.exploration.loaded_simulation.decided", doubtful)
    assert dict(run_seed(0, under("transactions")).excused)[INCONCLUSIVE_LOAD] == 1


def test_the_witness_judges_the_plain_load_as_ever() -> None:
    chosen = under("groups", "ack_on_append", **{"faults": "kill:3,partition", "fault.count": "16"})
    found = {one for seed in range(4) for one in violations(run_of(seed, chosen))}
    assert any(invariant != CHECKERS for invariant, _ in found)


# ------------------------------------------------------------------------------------------- replay, evidence, shrink


@pytest.mark.parametrize("load", ["groups", "transactions"])
def test_the_same_seed_prints_the_same_lines(load: str) -> None:
    told: list[list[str]] = [[], []]
    for lines in told:
        run_of(7, under(load), trace=Trace(lines.append)).run()
    assert told[0] == told[1]
    assert len(told[0]) > 400


@pytest.mark.nightly("four processes; by day the lines of two runs in one process are compared")
@pytest.mark.parametrize("load", LOADS[1:])
def test_the_same_seed_prints_the_same_bytes_whatever_the_order_of_hashes(load: str) -> None:
    code = "import sys; from harness.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "replay", "7", "--depth", "stack", "--set", f"load={load}"]
    told = set()
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        told.add(subprocess.run(command, capture_output=True, env=environment, check=False).stdout)
    assert len(told) == 1
    assert len(told.pop().splitlines()) > 400


def test_what_is_left_of_a_run_is_a_run_directory_with_the_same_verdict(tmp_path: Path) -> None:
    run = run_of(0, under("assigned", "partitions_given_before_release"))
    found = run.run().violations
    write(run, tmp_path / "run", "4.1")
    (verdict,) = check([tmp_path / "run"], "reference")
    assert verdict.outcome is Outcome.VIOLATION
    assert {one.kind for one in verdict.anomalies} == {one.kind for one in found if one.invariant == CHECKERS}


def test_shrinking_keeps_a_load_that_it_takes() -> None:
    chosen = under("groups", "commit_forgotten", **{"fault.count": "0"})
    shrunk = shrink_seed(0, chosen)
    assert (shrunk.violation.kind, shrunk.configuration.load, shrunk.faults) == ("lost-commit", "groups", ())


@pytest.mark.parametrize("load", LOADS[1:])
def test_a_shrunk_load_is_written_as_the_workload_of_a_scenario(load: str) -> None:
    chosen = under(load, "commit_forgotten", faults="kill,pause", deletions="0")
    run = cast("LoadedSimulation", run_of(3, chosen))
    found = run_seed(0, under("groups", "commit_forgotten", **{"fault.count": "0"})).violation
    assert found is not None
    faults = tuple(one._replace(aim=0) for one in draw_all(3, run.configuration))
    shrunk = Shrunk(3, chosen, run.configuration, faults, found, 1, run)
    scenario = validated(Scenario, shrunk_document(shrunk, 1), "")
    made = plan(scenario, "simulated", "4.1")
    assert len(made.schedule.faults) == len(faults)
    assert scenario.workload.name == drawn(3, load, 3, chosen.knobs).workload["name"]
    waits_s = sum(step.wait_s or 0 for step in scenario.schedule or ())
    assert waits_s == pytest.approx(run.configuration.horizon_ms / 1000, abs=0.1)
