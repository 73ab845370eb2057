from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.mutation.mutants import Mutant, compiled, mutants_of, sample, sample_again
from tests.mutation.page import CLASSIFIED, document
from tests.mutation.scope import MODULES

ROOT = Path(__file__).parents[2]


def mutant(module: str, function: str, before: str, after: str) -> Mutant:
    """The one mutant that is so described."""
    (found,) = [one for one in mutants_of(module) if (one.function, one.before, one.after) == (function, before, after)]
    return found


def assayed(question: dict[str, Any]) -> Any:
    """What a process of its own makes of mutants."""
    done = subprocess.run(
        [sys.executable, "-O", "-m", "tests.mutation.assay"],
        input=json.dumps(question), capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return json.loads(done.stdout)


def tried(one: Mutant, trials: Sequence[Sequence[Any]]) -> Any:
    return assayed({"mutant": one, "trials": trials})


def test_every_module_in_scope_has_mutants_and_every_mutant_compiles() -> None:
    for module in MODULES:
        for one in sample([module], 5, 0):
            assert compiled(one)


def test_a_seed_draws_the_same_mutants_each_time() -> None:
    assert sample(MODULES, 50, 3) == sample(MODULES, 50, 3) != sample(MODULES, 50, 4)


def test_a_sample_stays_when_the_code_changes_but_for_what_is_gone() -> None:
    before = [one.name for one in sample(MODULES, 50, 3)]
    again = [one.name for one in sample_again(MODULES, 50, 4, {*before[1:], "a mutant of code that is gone"})]
    assert len(again) == len(set(again)) == 50
    assert set(before[1:]) < set(again)


def test_no_two_mutants_have_one_name_in_one_sample() -> None:
    names = [one.name for one in sample(MODULES, 10_000, 0)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("before", "after", "operator"),
    [
        ("requested < 0", "requested <= 0", "comparison"),
        ("requested < 0 or requested > latest", "requested < 0 and requested > latest", "boolean operator"),
    ],
)
def test_comparisons_and_conditions_are_mutated(before: str, after: str, operator: str) -> None:
    found = mutant("harness/replication/epochs.py", "LeaderEpochCache.end_offset_for", before, after)
    assert found.operator == operator


def test_the_switches_of_designed_bugs_are_left_alone() -> None:
    mutants = [one for module in MODULES for one in mutants_of(module)]
    assert not [one for one in mutants if one.operator == "comparison" and ".bugs" in one.before]


def test_the_code_as_it_is_passes_and_reaches_statements() -> None:
    answer = assayed({"modules": ["harness/replication/leadership.py"], "most": 3})
    assert [one["result"][0] for one in answer] == ["pass"] * 3
    assert all(one["reached"] for one in answer)


def test_a_mutant_that_loses_acknowledged_records_is_detected() -> None:
    least = mutant(
        "harness/replication/isr.py", "InSyncReplicas.settled", "not self.in_flight", "+bool(self.in_flight)"
    )
    answer = tried(least, [["core", "mixed", "kill", seed] for seed in range(3)])
    assert answer["outcomes"].keys() >= {"violation"}


def test_a_mutant_that_raises_has_crashed() -> None:
    swapped = mutant(
        "harness/replication/controller.py", "Controller._change_isr",
        "with_isr(before, request.isr, self._rules_of(before))",
        "with_isr(request.isr, before, self._rules_of(before))",
    )  # fmt: skip
    answer = tried(swapped, [["core", "mixed", "kill", seed] for seed in range(3)])
    assert answer["outcomes"].keys() == {"crashed"}
    assert "AttributeError" in answer["why"]


def row(function: str, operator: str, before: str, after: str, **of_its_trials: Any) -> dict[str, Any]:
    """A mutant with what came of it, as ``score.py`` keeps it."""
    about = {"name": function, "module": "harness/broker/segment.py", "function": function, "operator": operator}
    return {**about, "before": before, "after": after, "why": "", "runs": 60, "differing": 0, **of_its_trials}


def test_the_page_says_once_what_is_said_of_several_mutants_and_counts_the_crashes_by_what_was_raised() -> None:
    rows = [
        row("a", "comparison", "x < limit", "x <= limit", **{"class": "survived"}),
        row("b", "statement deleted", "if x: [2 more]", "", **{"class": "survived", "runs": 8, "differing": 3}),
        row("c", "constant", "0", "1", **{"class": "unreached", "runs": 0}),
        row("d", "constant", "0", "1", **{"class": "crashed", "why": "KeyError: 7"}),
        row("e", "constant", "0", "1", **{"class": "crashed", "why": "KeyError: 8"}),
    ]
    written = document(rows, [], 1)
    undecided = "`broker/segment.py:a` `x < limit`: `<` → `<=`; `broker/segment.py:b` delete `if x: …` (3/8)"
    assert f"### Undecided\n\nNot judged yet.\n\n| mutant | because |\n|---|---|\n| {undecided} |  |" in written
    assert "No trial executes the statement of 1: `broker/segment.py` `c`." in written
    assert "| `KeyError` | 2 | `broker/segment.py` `d`, `e` |" in written


def test_each_judgement_of_the_page_is_that_of_the_file_of_judgements() -> None:
    sections = (
        (ROOT / "docs" / "mutation.md").read_text().partition("## Every mutant")[2].partition("## What crashed")[0]
    )
    told = [line.removesuffix(" |").rpartition(" | ")[2] for line in sections.splitlines() if line.startswith("| `")]
    known = {one["because"].removeprefix("It takes ") for one in yaml.safe_load(CLASSIFIED.read_text())}
    assert len(told) > 100
    assert [because for because in told if because not in known] == []
