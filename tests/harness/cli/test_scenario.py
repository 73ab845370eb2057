"""What is predicted is held against what is observed, and the exit code says whether they agree."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from harness import scenario
from harness.errors import EnvironmentFault
from harness.runner import Plan, rehearsal
from harness.runner.matrix import Cell
from harness.runner.run_progress import Watch
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.releases import release
from harness.targets.kafka.source import KafkaSource
from harness.targets.kafka.source_kind import OneRelease
from tests.harness.cli.calling import Said, Seawall
from tests.harness.runner.test_known_differences import BROKEN_OFF, OTHERWISE

QUIET = """\
id: quiet
catalogue: A99/quiet
title: Nothing happens
source: a test
cluster: {brokers: 2}
topics: [{name: ledger, replication_factor: 2, replicas: [0, 1]}]
workload: {name: unique_sends, consumers: 1}
schedule: [{send: {per_partition: 2}}]
outcomes:
  "0.10-4.1": {outcome: [safe], final_logs: {ledger-0: {all: [m0..m1@0]}}}
"""
WRONG = QUIET.replace("[safe]", "[lost]").replace("id: quiet", "id: wrong").replace("A99/quiet", "A98")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that takes the place of the shipped scenarios, with one that is right."""
    monkeypatch.setattr(scenario, "_SHIPPED", tmp_path)
    (tmp_path / "quiet.yaml").write_text(QUIET)
    return tmp_path


def simulated(seawall: Seawall, *words: str) -> Said:
    return seawall("scenario", *words, "--target", "simulated")


def test_a_scenario_that_goes_as_predicted_passes_and_shows_the_logs(seawall: Seawall, shelf: Path) -> None:
    said = simulated(seawall, "run", "quiet", "--generation", "4.1")
    assert said.code == 0
    assert "A99/quiet on 4.1: predicted safe (S), observed safe." in said.out
    assert "ledger-0 on broker 1: m0@0 m1@0" in said.out


def test_what_is_set_is_held_against_the_prediction_of_the_generation_as_it_is(seawall: Seawall) -> None:
    said = simulated(seawall, "run", "A02", "--generation", "4.1", "--set", "replication.truncation=hw")
    assert said.code == 1
    assert "Played with replication.truncation=hw; the prediction is that of 4.1 as it is." in said.out
    assert "A02 on 4.1: predicted safe (S), observed lost, diverged." in said.out
    assert said.err.splitlines()[-1].endswith("--seed 0 --set replication.truncation=hw")


def test_what_is_set_and_makes_no_difference_passes(seawall: Seawall, shelf: Path) -> None:
    said = simulated(seawall, "run", "quiet", "--set", "settings.replica.lag.time.max.ms=20000")
    assert (said.code, "Played with settings." in said.out) == (0, True)


@pytest.mark.parametrize("name", ["quiet", "A99", "A99/quiet"])
def test_a_scenario_goes_by_its_name_and_by_its_entry(seawall: Seawall, shelf: Path, name: str) -> None:
    assert "A99/quiet on 0.10: " in simulated(seawall, "run", name).out


def test_every_variant_of_an_entry_is_run(seawall: Seawall, shelf: Path) -> None:
    (shelf / "other.yaml").write_text(QUIET.replace("id: quiet", "id: other").replace("A99/quiet", "A99/loud"))
    said = simulated(seawall, "run", "A99", "--generation", "2.0.1")
    assert [line.split(":")[0] for line in said.out.splitlines() if line.startswith("A")] == [
        "A99/loud on 2.0.1",
        "A99/quiet on 2.0.1",
    ]


def test_a_loss_that_does_not_happen_is_a_failed_reproduction(seawall: Seawall, shelf: Path) -> None:
    (shelf / "wrong.yaml").write_text(WRONG)
    said = simulated(seawall, "run", "wrong", "--generation", "0.10")
    assert said.code == 1
    assert "differs: predicted and not observed: lost." in said.out
    assert "differs: observed and not predicted: safe." in said.out
    assert said.last_line == "reproduce: seawall scenario run wrong --generation 0.10 --target simulated --seed 0"


def test_a_log_that_is_not_what_was_predicted_fails(seawall: Seawall, shelf: Path) -> None:
    (shelf / "quiet.yaml").write_text(QUIET.replace("m0..m1@0", "m0@0, m1@1"))
    said = simulated(seawall, "run", "quiet")
    assert said.code == 1
    assert "the log of ledger-0 on broker 0 is m0@0 m1@0, not m0@0 m1@1." in said.out


def break_off(shelf: Path) -> None:
    """Let the quiet scenario wait for a leader that it does not get."""
    step = "{send: {per_partition: 2}}, {until: {leader: 1, within_s: 1}}"
    (shelf / "quiet.yaml").write_text(QUIET.replace("{send: {per_partition: 2}}", step))


def test_a_schedule_that_does_not_come_true_proves_nothing(seawall: Seawall, shelf: Path) -> None:
    break_off(shelf)
    said = simulated(seawall, "run", "quiet")
    assert said.code == 3
    assert said.last_line == "reproduce: seawall scenario run quiet --generation 0.10 --target simulated --seed 0"
    assert "schedule[1].until: did not come true within 1 s: ledger-0: the leader is 0, not 1." in said.out
    assert "observed nothing that counts" in said.out


def test_the_matrix_passes_when_every_cell_does(seawall: Seawall, shelf: Path) -> None:
    said = simulated(seawall, "matrix")
    assert said.code == 0
    assert "8 of 8 cells are as predicted." in said.out


def test_a_wrong_prediction_fails_the_matrix_and_the_last_line_leads_to_it(seawall: Seawall, shelf: Path) -> None:
    (shelf / "wrong.yaml").write_text(WRONG)
    said = simulated(seawall, "matrix", "--generations", "2.0.0-2.1,4.1")
    assert said.code == 1
    assert "4 of 8 cells are as predicted." in said.out
    assert "S not L" in said.out
    assert said.last_line == "reproduce: seawall scenario run wrong --generation 2.0.0 --target simulated --seed 0"


def test_a_cell_that_proves_nothing_counts_less_than_one_that_differs(seawall: Seawall, shelf: Path) -> None:
    break_off(shelf)
    said = simulated(seawall, "matrix", "--generations", "4.1")
    assert said.code == 3
    assert "? not S" in said.out
    (shelf / "wrong.yaml").write_text(WRONG.replace("A98", "B01"))
    said = simulated(seawall, "matrix", "--generations", "4.1")
    assert said.code == 1
    assert "scenario run wrong" in said.last_line


@pytest.fixture
def proves_something_at_last(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets a first and a second try of the scenario ``quiet`` prove nothing; returns what is played, in its order."""
    obedient, tried = rehearsal.rehearse, []

    def rehearse(plan: Plan, say: Callable[[str], None], watch: Watch) -> rehearsal.Rehearsal:
        tried.append(plan.scenario.id)
        if plan.scenario.id == "quiet" and tried.count("quiet") <= 2:
            raise EnvironmentFault("the brokers have not all registered within 60 s.")
        return obedient(plan, say, watch)

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    return tried


@pytest.mark.parametrize(("tries", "code"), [(1, 3), (2, 3), (3, 0), (4, 0)])
def test_what_proves_nothing_is_played_again_when_all_have_been_as_often_as_is_asked(
    seawall: Seawall, shelf: Path, proves_something_at_last: list[str], tries: int, code: int
) -> None:
    (shelf / "right.yaml").write_text(QUIET.replace("id: quiet", "id: right").replace("A99/quiet", "A99/right"))
    said = simulated(seawall, "matrix", "--generations", "4.1", "--tries", str(tries))
    assert said.code == code
    assert proves_something_at_last == ["quiet", "right", *["quiet"] * min(tries - 1, 2)]
    assert said.err.count("again  A99/quiet  quiet  4.1: ") == min(tries - 1, 2)


def test_what_differs_is_not_played_again(seawall: Seawall, shelf: Path) -> None:
    (shelf / "wrong.yaml").write_text(WRONG)
    said = simulated(seawall, "matrix", "--generations", "4.1", "--tries", "3")
    assert said.code == 1
    assert "again" not in said.err


def test_a_cluster_that_does_not_obey_takes_its_own_cell_alone(
    seawall: Seawall, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf / "stubborn.yaml").write_text(QUIET.replace("id: quiet", "id: stubborn").replace("A99/quiet", "A97"))
    obedient = rehearsal.rehearse

    def rehearse(plan: Plan, say: Callable[[str], None], watch: Watch) -> rehearsal.Rehearsal:
        if plan.scenario.id == "stubborn":
            raise EnvironmentFault("the brokers have not all registered within 60 s.")
        return obedient(plan, say, watch)

    monkeypatch.setattr(rehearsal, "rehearse", rehearse)
    said = simulated(seawall, "matrix", "--generations", "4.1")
    assert said.code == 3
    assert "1/2  A97  stubborn  4.1: DIFFERS: the brokers have not all registered within 60 s." in said.err
    assert "1 of 2 cells are as predicted; 1 prove nothing." in said.out
    assert "scenario run stubborn" in said.last_line


@pytest.fixture
def comes_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cell], None]:
    """Lets every run of the matrix come to one cell."""

    def everything(cell: Cell) -> None:
        monkeypatch.setattr("harness.cli.matrix.played", lambda *_: (cell, None))

    return everything


A05 = ("matrix", "--only", "A05", "--generations", "2.0.1")


@pytest.mark.parametrize("cell", [OTHERWISE, BROKEN_OFF])
def test_a_release_that_differs_as_is_known_does_not_fail_the_matrix_and_the_reason_is_told(
    seawall: Seawall, comes_to: Callable[[Cell], None], cell: Cell
) -> None:
    comes_to(cell)
    said = simulated(seawall, *A05)
    assert said.code == 0
    assert f"differs as is known of 2.0.1: {cell.known}" in said.err
    assert cell.differences[0] in said.out
    assert f"differs as is known of 2.0.1: {cell.known}" in said.out
    assert "0 of 1 cells are as predicted; 1 differ as is known." in said.out
    assert "reproduce" not in said.err


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (replace(OTHERWISE, differences=(*OTHERWISE.differences, "unexpected vanished-read: it is gone.")), 1),
        (replace(BROKEN_OFF, differences=("schedule[3].send: 0 of 1 records were acknowledged (no error).",)), 3),
    ],
)
def test_a_release_that_differs_in_another_way_than_is_known_fails_the_matrix(
    seawall: Seawall, comes_to: Callable[[Cell], None], cell: Cell, code: int
) -> None:
    comes_to(cell)
    said = simulated(seawall, *A05)
    assert said.code == code
    assert f"DIFFERS: {cell.differences[0]}" in said.err
    assert said.last_line.startswith(f"reproduce: seawall scenario run {cell.origin}")


def test_a_release_that_is_known_to_differ_and_goes_as_predicted_does_not_fail_the_matrix_and_is_told(
    seawall: Seawall, comes_to: Callable[[Cell], None]
) -> None:
    comes_to(replace(OTHERWISE, differences=()))
    said = simulated(seawall, *A05)
    assert said.code == 0
    assert f"as predicted, although 2.0.1 is known to differ: {OTHERWISE.known}" in said.err
    assert f"as predicted, although 2.0.1 is known to differ: {OTHERWISE.known}" in said.out
    assert "1 of 1 cells are as predicted." in said.out


def test_a_matrix_without_a_cell_is_refused(seawall: Seawall, shelf: Path) -> None:
    (shelf / "quiet.yaml").write_text(QUIET.replace('"0.10-4.1"', '"2.0.0-2.1"'))
    said = simulated(seawall, "matrix", "--only", "A99", "--generations", "0.10")
    assert said.code == 64
    assert "there is nothing to run: --only A99 --generations 0.10 leave no cell." in said.complaint
    (shelf / "quiet.yaml").unlink()
    assert simulated(seawall, "matrix").code == 64


@pytest.mark.parametrize("name", ["quiet", "A99/quiet"])
def test_a_scenario_is_shown_as_it_is_written(seawall: Seawall, shelf: Path, name: str) -> None:
    said = seawall("scenario", "show", name)
    assert (said.code, said.out) == (0, QUIET)


def test_every_variant_of_an_entry_is_shown_and_a_file_too(seawall: Seawall, shelf: Path) -> None:
    loud = QUIET.replace("id: quiet", "id: other").replace("A99/quiet", "A99/loud")
    (shelf / "other.yaml").write_text(loud)
    assert seawall("scenario", "show", "A99").out == f"{loud}---\n{QUIET}"
    assert seawall("scenario", "show", str(shelf / "other.yaml")).out == loud
    assert seawall("scenario", "show", "A98").code == 64


@pytest.mark.nightly("plays hundreds of stories; by day a seed of the core is shrunk")
def test_the_seed_that_the_readme_shrinks_shows_something(seawall: Seawall) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    [words] = re.findall(r"^seawall (shrink [^#\n]+)", readme, re.MULTILINE)
    said = seawall(*words.split())
    assert said.code == 0
    assert "outcome: [lost" in said.out


def test_one_scenario_is_shrunk_by_any_of_its_names(seawall: Seawall, shelf: Path) -> None:
    assert "scenario 'quiet' does no harm" in seawall("shrink", "A99/quiet").complaint
    assert "scenario 'quiet' does no harm" in seawall("shrink", "A99").complaint
    (shelf / "other.yaml").write_text(QUIET.replace("id: quiet", "id: other").replace("A99/quiet", "A99/loud"))
    said = seawall("shrink", "A99")
    assert said.code == 64
    assert "'A99' means 2 scenarios, and only one can be shrunk. Name one of other, quiet." in said.complaint


def test_the_matrix_is_told_as_json_with_everything_in_it(seawall: Seawall, shelf: Path) -> None:
    (shelf / "wrong.yaml").write_text(WRONG)
    said = simulated(seawall, "matrix", "--generations", "4.1", "--json")
    told = json.loads(said.out)
    assert (said.code, told["agrees"]) == (1, False)
    assert [(cell["scenario"], cell["agrees"]) for cell in told["cells"]] == [("wrong", False), ("quiet", True)]
    assert told["cells"][1] == {
        "scenario": "quiet",
        "catalogue": "A99/quiet",
        "generation": "4.1",
        "release": None,
        "predicted": ["safe"],
        "observed": ["safe"],
        "agrees": True,
        "differences": [],
        "known": None,
        "final_logs": {"ledger-0": {"0": "m0@0 m1@0", "1": "m0@0 m1@0"}},
    }


def test_the_matrix_is_the_same_whoever_runs_it(seawall: Seawall, shelf: Path) -> None:
    alone = simulated(seawall, "matrix", "--json")
    together = simulated(seawall, "matrix", "--json", "--jobs", "2")
    assert alone.out == together.out


def test_a_matrix_of_some_scenarios_leaves_the_others_out(seawall: Seawall, shelf: Path) -> None:
    (shelf / "wrong.yaml").write_text(WRONG)
    assert simulated(seawall, "matrix", "--only", "A99", "--generations", "0.10").code == 0


def test_a_simulated_run_leaves_a_run_directory_only_where_one_is_asked_for(
    seawall: Seawall, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert simulated(seawall, "run", "quiet").code == 0
    assert set(tmp_path.rglob("*")) == before
    said = simulated(seawall, "run", "quiet", "--out", "kept")
    assert said.code == 0
    assert "A99/quiet on 0.10: predicted safe (S), observed safe." in said.out
    assert (tmp_path / "kept" / "latest" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("run", "quite"), "did you mean 'quiet'?"),
        (("run", "A97"), "no scenario goes by 'A97'; did you mean 'A99'?"),
        (("run", "./nowhere.yaml"), "nowhere.yaml"),
        (("matrix", "--only", "A97"), "'A97'"),
        (("matrix", "--generations", "5.0"), "--generations: generation '5.0' is not known"),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    seawall: Seawall, shelf: Path, words: tuple[str, ...], named: str
) -> None:
    said = simulated(seawall, *words)
    assert said.code == 64
    assert named in said.complaint


def test_a_generation_that_the_scenario_says_nothing_of_is_refused(seawall: Seawall, shelf: Path) -> None:
    (shelf / "quiet.yaml").write_text(QUIET.replace('"0.10-4.1"', '"2.0.0-2.1"'))
    said = simulated(seawall, "run", "quiet", "--generation", "4.1")
    assert said.code == 64
    assert "scenario 'quiet' says nothing of generation '4.1'. It is about 2.0.0, 2.0.1, 2.1." in said.complaint


def test_a_scenario_without_outcomes_is_for_seawall_run(seawall: Seawall, tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(QUIET[: QUIET.index("outcomes:")])
    said = simulated(seawall, "run", str(path))
    assert said.code == 64
    assert "Run it with `seawall run`." in said.complaint


def test_what_real_kafka_cannot_play_is_told_and_left_out(
    seawall: Seawall, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf / "quiet.yaml").write_text(QUIET + 'not_on_real_kafka: {"4.1": "It never happens there."}')
    there = Distribution(release("4.1.0"), shelf)
    monkeypatch.setattr("harness.targets.kinds.source_of", lambda _: OneRelease(cast("KafkaSource", there)))
    said = seawall("scenario", "matrix", "--target", "process:4.1.0")
    assert said.code == 64
    assert "left out: A99/quiet  quiet  4.1: It never happens there." in said.err
    assert "there is nothing to run" in said.err
