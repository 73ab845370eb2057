"""A plan is read strictly: what is wrong is named with its key, its value and its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.nightly.plan import RunGroup, SimulateGroup, load, parse
from harness.nightly.plan_values import seconds

ROOT = Path(__file__).parents[3]
PLAN = """\
budget: 1h
cells:
  - scenarios: [random-chaos]
    generations: ["0.10", "4.1"]
    seeds: {draw: 3}
    durations: 30s
  - kind: simulate
    count: 100
    settings: {min.insync.replicas: 2}
  - kind: command
    name: greeting
    argv: [echo, hello]
"""


def run_group(**changed: Any) -> RunGroup:
    plan = parse(json.dumps({"cells": [{"scenarios": ["random-chaos"], **changed}]}), "plan.yaml")
    [group] = plan.cells
    assert isinstance(group, RunGroup)
    return group


def test_a_plan_has_runs_simulations_and_commands() -> None:
    plan = parse(PLAN, "plan.yaml")
    assert [group.kind for group in plan.cells] == ["run", "simulate", "command"]
    assert plan.budget == 3600
    simulate = plan.cells[1]
    assert isinstance(simulate, SimulateGroup)
    assert simulate.settings == ({"min.insync.replicas": "2"},)


@pytest.mark.parametrize(
    ("right", "wrong", "line", "named"),
    [
        (
            "scenarios: [random-chaos]",
            "scenario: [random-chaos]",
            3,
            "unknown key 'scenario'; did you mean 'scenarios'",
        ),
        ('["0.10", "4.1"]', "[0.10]", 4, "generations[0]: YAML takes it for the number 0.1"),
        ("{draw: 3}", "{draw: 0}", 5, "{'draw': 0}"),
        ("{draw: 3}", "5..2", 5, "'5..2' is no range"),
        ("{draw: 3}", "{draw: many}", 5, "'many'"),
        ("{draw: 3}", "[-1]", 5, "seed -1"),
        ("durations: 30s", "durations: [30x]", 6, "'30x' is no duration"),
        ("kind: simulate", "kind: simulated", 7, "cells[1].kind: 'simulated' is not known"),
        ("count: 100", "count: lots", 8, "cells[1].count: 'lots'"),
        ("count: 100", "count: 100\n    minutes: 2", 7, "count and minutes exclude each other"),
        ("{min.insync.replicas: 2}", "2", 9, "cells[1].settings: 2 is no mapping"),
        ("[echo, hello]", "[]", 12, "cells[2].argv"),
        ("[echo, hello]", "[echo, '{seed}']", 10, "seeds and a {seed}"),
        ("budget: 1h", "budgte: 1h", 1, "did you mean 'budget'?"),
        ("budget: 1h", "budget: 1h\nbudget: 2h", 2, "'budget' is written twice"),
        ("budget: 1h", "allow: [{cells: x, because: why}]", 1, "it allows nothing"),
        ("name: greeting", "other: x", 11, "unknown key 'other'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(right: str, wrong: str, line: int, named: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(PLAN.replace(right, wrong), "plan.yaml")
    assert str(refused.value).startswith(f"plan.yaml, line {line}: ")
    assert named in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "- 1\n", "cells: []\n", "cells: 5\n", "cells: [5]\n", "budget: 1h\n", "cells: [\n"]
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"plan\.yaml"):
        parse(text, "plan.yaml")


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml cannot be read"):
        load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("15m", 900), ("1h30m", 5400), (7.5, 7.5), ("0.5h", 1800)])
def test_durations_have_units(text: object, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "5", "1d", 0, -3, True, None, "8d", 10**9])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds(text)


def test_settings_become_what_set_would_be_given() -> None:
    written = [
        {"workload.acks": ["all", 1, 0], "settings.unclean.leader.election.enable": True},
        {"topic.partitions": 1},
    ]
    assert run_group(settings=written).settings == (
        {"workload.acks": "[all,1,0]", "settings.unclean.leader.election.enable": "true"},
        {"topic.partitions": "1"},
    )
    with pytest.raises(UsageError, match="put it into quotes"):
        run_group(settings={"settings.log.message.format.version": 0.1})


def test_seeds_are_a_list_a_range_or_drawn() -> None:
    assert run_group(seeds=[3, 1, 3]).seeds.given == (3, 1)
    assert run_group(seeds="8..10").seeds.given == (8, 9, 10)
    assert run_group(seeds={"draw": 4}).seeds.draw == 4
