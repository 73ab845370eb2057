"""The lines of shell that this project gives to CI systems, run: what they call, what they keep, and how they end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.nightly import bank, history_file, results_file
from tests.ci.actions import Actions, read
from tests.ci.jobs import BROKEN, SOUND, Machine
from tests.ci.other_systems import GitLab, Jenkins
from tests.harness.nightly.cells import lossy
from tests.test_house import complaints


class Night(NamedTuple):
    """What a night in a CI system leaves.

    Attributes:
        kept: the directory that the next night finds.
        outputs: those of the merge, beside the shards'.
        red: the jobs that failed.
    """

    kept: Path
    outputs: Path
    red: list[str]


def workflow(machine: Machine) -> Night:
    actions = Actions(machine)
    outputs = actions.workflow("nightly-reusable.yml", {"prepare": "echo prepared >> prepared"})
    red = [name for name, result in actions.results.items() if result == "failure"]
    assert outputs["night"].endswith(".1")
    assert (outputs["exit-code"] == "0") == ("merge" not in red)
    [kept] = actions.caches.values()
    return Night(kept / "seawall-kept", actions.artifacts["seawall-nightly"] / "night", red)


def action(machine: Machine) -> Night:
    actions = Actions(machine)
    outputs = actions.action({})
    red = [name for name, result in actions.results.items() if result == "failure"]
    assert (outputs["exit-code"] == "0") == (not red)
    [kept] = actions.caches.values()
    return Night(kept / "seawall-kept", actions.artifacts["seawall-nightly"] / "night", red)


def gitlab(machine: Machine) -> Night:
    pipeline = GitLab(machine)
    pipeline.pipeline()
    [(merge, paths)] = pipeline.artifacts["seawall:merge"]
    assert "night" in paths
    return Night(pipeline.cache / "seawall-kept", merge / "night", pipeline.failed)


def jenkins(machine: Machine) -> Night:
    build = Jenkins(machine)
    merge = build.build()
    return Night(merge / "seawall-kept", merge / "night", [name for name, code in build.codes.items() if code])


KEEP = "nightly keep seawall-kept"
SYSTEMS = (workflow, action, gitlab, jenkins)
System = Callable[[Machine], Night]

ANOTHER_SYSTEM = pytest.mark.nightly("a dozen processes; by day a workflow has the same bank")
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)


@pytest.fixture
def recording(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.record()
    return machine


def words(asked: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each call but those of ``keep``: what comes before its options, and they."""
    for line in (one for one in asked if one != KEEP):
        before, *options = line.replace("--partial", "--partial yes").split(" --")
        yield before, {name: value for name, _, value in (one.partition(" ") for one in options)}


@every_system
def test_every_part_of_a_night_is_the_same_night_with_the_same_past(system: System, recording: Machine) -> None:
    night = system(recording)
    assert night.red == []
    *shards, merge = words(recording.asked)
    number = 1 if system is action else 2
    assert [line == KEEP for line in recording.asked] == [True, False] * (number + 1)
    assert [before for before, _ in shards] == ["nightly nightly.yaml"] * number
    assert [one["shard"] for _, one in shards] == [f"{part}/{number}" for part in range(1, number + 1)]
    assert [one["out"] for _, one in shards] == [f"shards/{part}" for part in range(1, number + 1)]
    [name] = {one["night"] for _, one in shards}
    assert name[:2] == "20"
    assert merge[0] == " ".join(["nightly merge", *(one["out"] for _, one in shards)])
    assert (merge[1]["out"], merge[1]["partial"]) == ("night", "yes")
    past = {(one["history"], one["bank"]) for _, one in [*shards, merge]}
    assert past == {("seawall-kept/history.jsonl", "seawall-kept/seeds.yaml")}
    assert {path.name for path in night.kept.iterdir()} >= {"history.jsonl", "seeds.yaml", "committed.yaml"}


@every_system
def test_the_command_line_takes_every_call(system: System, recording: Machine) -> None:
    system(recording)
    assert [complaints(line.split()) for line in recording.asked] == [[] for _ in recording.asked]


@every_system
def test_a_red_shard_does_not_keep_the_night_from_being_merged_and_kept(system: System, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.record(runs=1, merges=1)
    night = system(machine)
    assert any("merge" in name or name == "action" for name in night.red)
    assert len(night.red) == {"workflow": 2, "action": 1, "gitlab": 3, "jenkins": 3}[system.__name__]
    assert (night.outputs / "junit.xml").exists()
    assert "# found" in (night.kept / "seeds.yaml").read_text()


@every_system
def test_what_only_spark_finds_makes_the_night_red(system: System, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.record(merges=70)
    [red] = system(machine).red
    assert "merge" in red or red == "action"


def test_the_next_night_finds_what_the_last_one_left(recording: Machine) -> None:
    recording.record(merges=1)
    actions = Actions(recording)
    actions.workflow("nightly-reusable.yml", {})
    again = Actions(Machine(_subdirectory(recording, "again"), environment=recording.environment), run=2)
    again.caches = actions.caches
    (again._machine.scratch / "bin").symlink_to(recording.scratch / "bin")
    again.workflow("nightly-reusable.yml", {})
    first, second = (cache / "seawall-kept" for cache in again.caches.values())
    lines = [len((kept / "history.jsonl").read_text().splitlines()) for kept in (first, second)]
    assert lines == [1, 2]  # the recording script adds a line; the shards' own copies are not merged
    assert (second / "seeds.yaml").read_text().count("# found") == 2


@pytest.mark.parametrize("is_action", [True, False], ids=["action", "workflow"])
def test_a_night_does_not_take_what_another_keeps_whose_name_begins_alike(is_action: bool, recording: Machine) -> None:
    def play(actions: Actions, name: str) -> None:
        actions.action({"name": name}) if is_action else actions.workflow("nightly-reusable.yml", {"name": name})

    actions = Actions(recording)
    play(actions, "nightly-big")
    again = Actions(Machine(_subdirectory(recording, "again"), environment=recording.environment), run=2)
    again.caches = actions.caches
    (again._machine.scratch / "bin").symlink_to(recording.scratch / "bin")
    play(again, "nightly")
    lengths = [len((cache / "seawall-kept/history.jsonl").read_text().splitlines()) for cache in again.caches.values()]
    assert lengths[0] == lengths[1]


def _subdirectory(machine: Machine, name: str) -> Path:
    place = machine.scratch / name
    place.mkdir()
    return place


@pytest.mark.parametrize(
    "system",
    [workflow, *(pytest.param(one, marks=ANOTHER_SYSTEM) for one in (gitlab, jenkins))],
    ids=lambda system: system.__name__,
)
def test_a_bank_of_an_earlier_night_in_the_repository_loses_nothing_but_what_was_retired(
    system: System, tmp_path: Path
) -> None:
    first, second, old = bank.updated((), [lossy(seed=1), lossy("2026-03-05", seed=2), lossy(seed=3)])
    files = {
        "seeds.yaml": [first],
        "seawall-kept/committed.yaml": [old],
        "seawall-kept/seeds.yaml": [first, second, old],
    }
    machine = Machine(tmp_path, files={name: bank.rendered(tuple(entries)) for name, entries in files.items()})
    machine.record(keeps=str(Path(sys.executable).parent / "seawall"))
    kept = system(machine).kept
    assert bank.read(kept / "seeds.yaml") == (first, second)
    assert bank.read(kept / "committed.yaml") == (first,)


@pytest.mark.parametrize(
    ("given", "told"), [({"shards": 3}, 3), ({"jobs": 2, "budget": "90m", "plan": "other.yaml"}, 2)]
)
def test_inputs_reach_the_command_line(given: dict[str, object], told: int, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.record()
    Actions(machine).workflow("nightly-reusable.yml", given)
    *shards, _ = words(machine.asked)
    assert len(shards) == told
    for before, options in shards:
        assert before == f"nightly {given.get('plan', 'nightly.yaml')}"
        assert options["jobs"] == str(given.get("jobs", 1))
        assert options.get("budget") == given.get("budget")


def test_what_cannot_be_prepared_makes_a_shard_red_and_no_cell_runs(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.record(merges=3)
    actions = Actions(machine)
    outputs = actions.workflow("nightly-reusable.yml", {"prepare": "false\necho ignored"})
    assert actions.results == {"begin": "success", "shard": "failure", "merge": "failure"}
    assert outputs["exit-code"] == "3"
    assert [before for before, _ in words(machine.asked)] == ["nightly merge shards/*"]


# ------------------------------------------------------------------------------------------------ with seawall itself


def _broken(system: System, tmp_path: Path) -> None:
    night = system(Machine(tmp_path, plan=BROKEN))
    assert any("merge" in name or name == "action" for name in night.red)
    _has_every_output(night)
    [found] = bank.read(night.kept / "seeds.yaml")
    assert (found.scenario, found.seed) == ("kip-101-double-failover", 7)
    results = results_file.read(night.outputs / "results.jsonl")
    assert [one.outcome.value for one in results] == ["violation", "skipped"]
    assert (night.outputs / (results[0].report or "")).is_file()
    assert len(history_file.read(night.kept / "history.jsonl")) == 2


def _sound(system: System, tmp_path: Path) -> None:
    night = system(Machine(tmp_path, plan=SOUND))
    assert night.red == []
    _has_every_output(night)
    results = results_file.read(night.outputs / "results.jsonl")
    assert [one.outcome.value for one in results] == ["skipped", "pass"]


def _has_every_output(night: Night) -> None:
    names = {path.name for path in night.outputs.iterdir()}
    assert names >= {"results.jsonl", "junit.xml", "summary.md", "index.html"}


def test_a_lost_record_makes_a_workflow_red_and_is_in_everything_that_it_leaves(tmp_path: Path) -> None:
    _broken(workflow, tmp_path)


@pytest.mark.nightly("a night in each CI system takes a dozen processes")
@pytest.mark.parametrize("system", [action, gitlab, jenkins], ids=lambda system: system.__name__)
def test_a_lost_record_makes_every_system_red(system: System, tmp_path: Path) -> None:
    _broken(system, tmp_path)


@pytest.mark.nightly("a night in each CI system takes a dozen processes")
@every_system
def test_a_skipped_cell_leaves_every_system_green(system: System, tmp_path: Path) -> None:
    _sound(system, tmp_path)


def test_this_projects_own_night_fetches_the_releases_of_its_plan(tmp_path: Path) -> None:
    prepare = read(".github/workflows/nightly.yml")["jobs"]["night"]["with"]["prepare"]
    groups = [{"releases": ["4.3.0#quorum", "3.9.1"]}, {"targets": ["builtin", "process:4.1.0#combined"]}, {}]
    machine = Machine(tmp_path, plan=json.dumps({"cells": groups}))
    machine.record()
    assert machine.run(prepare, machine.repository, {}, ("bash", "-eo", "pipefail")) == 0
    assert machine.asked == [f"kafka fetch {release}" for release in ("3.9.1", "4.1.0", "4.3.0")]
