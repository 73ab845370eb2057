"""A plan becomes the same cells on every machine; order and shards follow from the past alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from harness.errors import UsageError
from harness.nightly.capabilities import missing
from harness.nightly.cells import Cell, expand
from harness.nightly.order import Shard, estimated_s, of_shard, ordered, shard
from harness.nightly.past import Past
from harness.nightly.plan import NightPlan, parse
from harness.nightly.result import CellOutcome, CellResult
from harness.runner.expectation import expectations
from harness.scenario import load


def plan(*groups: dict[str, Any], **rest: Any) -> NightPlan:
    return parse(json.dumps({"cells": list(groups), **rest}), "plan.yaml")


def cells(*groups: dict[str, Any], night: str = "2026-11-27", **rest: Any) -> list[Cell]:
    return expand(plan(*groups, **rest), night)


def past(*rows: tuple[str, str, str, float]) -> Past:
    """Of (night, series, outcome, seconds)."""
    return Past(
        CellResult(
            night=night, cell=f"{series} {number}", series=series, kind="run", target="simulated", seconds=seconds,
            outcome=CellOutcome(outcome), exit_code=0, reproduce="", plan="",
        )
        for number, (night, series, outcome, seconds) in enumerate(rows)
    )  # fmt: skip


CHAOS = {"scenarios": ["random-chaos"], "targets": ["simulated"]}


def test_cells_are_the_product_of_what_an_entry_lists() -> None:
    found = cells(
        {
            **CHAOS,
            "targets": ["builtin", "simulated", "process"],
            "generations": ["0.10-0.11"],
            "releases": ["3.9.1", "4.1.0#quorum"] [:1],
            "settings": [{}, {"topic.partitions": 1}],
            "durations": ["5s", "10s"],
            "seeds": [1, 2],
        }
    )  # fmt: skip
    assert len(found) == (2 * 2 + 1) * 2 * 2 * 2
    assert len({one.cell for one in found}) == len(found)
    one = next(one for one in found if one.target == "process:3.9.1" and one.settings and one.seed == 2)
    assert one.cell == "run process:3.9.1 random-chaos topic.partitions=1 5s seed 2"
    assert one.series == "run process:3.9.1 random-chaos topic.partitions=1 5s"
    assert one.generation == "3.9.1"
    assert one.reproduce.startswith("seawall run random-chaos --seed 2 --target process:3.9.1 --duration-s 5 --set ")


def test_seeds_are_drawn_from_the_night_and_the_series_alone() -> None:
    drawn = {**CHAOS, "seeds": {"draw": 2}}
    assert cells(drawn) == cells(drawn)
    tonight, tomorrow = ([one.seed for one in cells(drawn, night=night)] for night in ("a", "b"))
    assert len({*tonight, *tomorrow}) == 4
    beside = cells({**CHAOS, "targets": ["builtin"]}, drawn)
    assert [one.seed for one in beside if one.target == "simulated"] == [
        one.seed for one in cells(drawn, night="2026-11-27")
    ]


def test_a_pattern_of_scenarios_leaves_out_the_generations_of_which_they_say_nothing() -> None:
    found = cells({"scenarios": ["sole-isr-member-dies-*"], "targets": ["simulated"], "generations": ["0.10-4.1"]})
    assert {one.scenario for one in found} == {"sole-isr-member-dies-offline", "sole-isr-member-dies-unclean"}
    assert all(set(expectations(load(name))) == generations for name, generations in _generations(found).items())
    assert not any(one.is_named for one in found)


def _generations(found: list[Cell]) -> dict[str, set[str]]:
    names = {one.scenario for one in found if one.scenario}
    return {name: {one.generation for one in found if one.scenario == name and one.generation} for name in names}


def test_the_same_cell_of_two_entries_runs_once() -> None:
    assert len(cells({**CHAOS, "seeds": [7]}, {**CHAOS, "seeds": [7, 8]})) == 2


@pytest.mark.parametrize(
    ("group", "named"),
    [
        ({**CHAOS, "scenarios": ["random-chais"]}, "did you mean 'random-chaos'?"),
        ({**CHAOS, "scenarios": ["nothing-*"]}, "no scenario matches 'nothing-*'"),
        ({**CHAOS, "targets": ["simulate"]}, "cells[0].targets"),
        ({**CHAOS, "targets": ["process"]}, "'process' names no release"),
        ({**CHAOS, "targets": ["process:0.8.1"]}, "0.8.1 is older"),
        ({**CHAOS, "releases": ["newest"]}, "'newest' is no version"),
        ({**CHAOS, "generations": ["0.12"]}, "cells[0].generations"),
        ({**CHAOS, "durations": ["20m"]}, "1200 s is not below the time limit"),
        ({"kind": "simulate", "settings": {"min.insync.replica": 2}}, "cells[0].settings"),
        ({"kind": "simulate", "minutes": 15}, "900 s is not below the time limit"),
    ],
)
def test_what_does_not_exist_is_a_mistake_of_the_plan(group: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as refused:
        cells(group)
    assert named in str(refused.value)


def test_two_commands_of_one_name_are_refused() -> None:
    command = {"kind": "command", "name": "same", "argv": ["true"]}
    with pytest.raises(UsageError, match="'same' is the name of"):
        cells(command, command)


class Entry(NamedTuple):
    kind: str
    target: str
    generation: str | None
    scenario: str | None
    seed: int | None
    settings: dict[str, str]
    duration_s: float | None


def test_the_seed_bank_adds_cells_and_marks_those_that_the_plan_has() -> None:
    bank = [
        Entry("run", "simulated", "4.1", "random-chaos", 7, {}, None),
        Entry("run", "simulated", "4.1", "random-chaos", 99, {"topic.partitions": "1"}, 5.0),
        Entry("simulate", "core", "4.1", None, 12, {"min.insync.replicas": "2"}, None),
    ]
    found = expand(plan({**CHAOS, "seeds": [7, 8]}), "n", bank)
    assert [(one.seed, one.bank) for one in found] == [(7, True), (8, False), (99, True), (12, True)]
    assert [one.seed for one in ordered(found, Past())] == [7, 99, 12, 8]
    assert found[3].argv[:6] == ("seawall", "simulate", "--seeds", "1", "--first-seed", "12")


# -------------------------------------------------------------------------------------------------------- capabilities


def lacking(plan: NightPlan, probe: Any = lambda name: None) -> dict[str, tuple[str, bool]]:
    found = missing(plan, expand(plan, "n"), probe)
    return {cell: (one.reason, one.is_failure) for cell, one in found.items()}


def test_a_cell_whose_capability_is_missing_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = lacking(
        plan(
            {**CHAOS, "targets": ["simulated", "process:3.9.1"], "seeds": [1]},
            {"kind": "command", "name": "gone", "argv": ["no-such-program"]},
            {"kind": "command", "name": "needy", "argv": ["true"], "needs": ["docker"]},
        ),
        lambda name: f"{name}: not here.",
    )
    assert found == {
        "run process:3.9.1 random-chaos seed 1": (
            "Kafka 3.9.1 is not on this machine. Fetch it with `seawall kafka fetch 3.9.1`.", False,
        ),
        "command gone": ("no-such-program is not installed here.", False),
        "command needy": ("docker: not here.", False),
    }  # fmt: skip


def test_what_is_required_fails_unless_it_may_be_skipped() -> None:
    needy = {"kind": "command", "argv": ["true"], "needs": ["docker"]}
    found = lacking(
        plan(
            {**needy, "name": "one"},
            {**needy, "name": "two"},
            require=["command *"],
            allow=[{"cells": "two", "skip": True, "because": "no engine there"}],
        ),
        lambda name: "no engine.",
    )
    assert found == {"command one": ("no engine.", True), "command two": ("no engine.", False)}


def test_what_no_target_takes_is_a_mistake_and_what_some_take_is_a_skip() -> None:
    real = {"targets": ["process:3.9.1"], "seeds": [1]}
    with pytest.raises(UsageError, match=r"cells\[0\].scenarios: "):
        lacking(plan({**real, "scenarios": ["log-start-written-down"]}))
    assert lacking(plan({**real, "scenarios": ["log-start-written-*"]}))  # only a pattern means it
    with pytest.raises(UsageError, match="did you mean 'rate'"):
        lacking(plan({**CHAOS, "settings": {"workload.ratte": 5}}))
    with pytest.raises(UsageError, match="'proces:\\*' matches no cell"):
        lacking(plan(CHAOS, require=["proces:*"]))


# --------------------------------------------------------------------------------------------------- order and shards

SERIES = [{**CHAOS, "settings": {"topic.partitions": number}, "seeds": [1, 2]} for number in (1, 2, 3, 4)]
FIRST, SECOND, THIRD, FOURTH = (f"run simulated 4.1 random-chaos topic.partitions={number}" for number in (1, 2, 3, 4))


def first_seeds(found: Sequence[Cell]) -> list[str]:
    return [one.series for one in found if one.turn == 0]


def test_failing_series_come_first_and_then_what_has_not_run_for_longest() -> None:
    known = past(
        ("1", FIRST, "pass", 5), ("1", SECOND, "pass", 5), ("2", THIRD, "violation", 5), ("2", FIRST, "pass", 5),
        ("2", SECOND, "skipped", 0),
    )  # fmt: skip
    found = ordered(cells(*SERIES), known)
    assert first_seeds(found) == [THIRD, FOURTH, SECOND, FIRST]
    assert [one.turn for one in found] == [0, 1, 0, 0, 0, 1, 1, 1]


def test_a_series_that_passed_since_is_not_failing() -> None:
    known = past(("1", FIRST, "violation", 5), ("2", FIRST, "pass", 5))
    assert not known.is_failing(FIRST)
    assert past(("1", FIRST, "violation", 5), ("1", FIRST, "pass", 5)).is_failing(FIRST)
    assert past(("1", FIRST, "violation", 5), ("2", FIRST, "not-run", 0)).is_failing(FIRST)


def test_weight_brings_a_series_forward() -> None:
    known = past(*[("1", series, "pass", 5.0) for series in (FIRST, SECOND, THIRD, FOURTH)])
    found = ordered(cells(*SERIES[:2], {**SERIES[2], "weight": 2}, SERIES[3]), known)
    assert first_seeds(found)[0] == THIRD


def test_shards_share_all_cells_and_are_balanced_by_past_durations() -> None:
    everything = cells(*SERIES)
    known = past(
        ("1", FIRST, "pass", 100), ("1", SECOND, "pass", 50), ("1", THIRD, "pass", 50), ("1", FOURTH, "pass", 10)
    )
    parts = [of_shard(ordered(everything, known), known, Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted(one.cell for part in parts for one in part) == sorted(one.cell for one in everything)
    loads = [sum(estimated_s(one, known) for one in part) for part in parts]
    assert max(loads) - min(loads) <= 60
    again = of_shard(ordered(list(reversed(everything)), known), known, Shard(2, 3))
    assert again == parts[1]


@pytest.mark.parametrize("written", ["0/3", "4/3", "2", "2/", "a/b", "-1/3", "2/5/6"])
def test_what_is_no_shard_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="is not NUMBER/SHARDS"):
        shard(written)
