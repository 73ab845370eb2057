"""``summary.md``, and GitHub's annotations and summary: what they hold and leave out, and that names stay names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.nightly import github, summary
from harness.nightly.result import CellOutcome
from harness.nightly.standing import findings
from tests.harness.nightly.cells import cell, lossy

HOSTILE = "a|b\n<img src=x> [x](http://e.x) **b** `c` @octocat\n::error::x\x00"


def test_a_summary_tells_what_is_new_with_its_story_and_its_command() -> None:
    tonight = [cell(seed=8), lossy(), cell(seed=9, outcome=CellOutcome.SKIPPED, reason="No Docker engine.")]
    text = summary.markdown(tonight, findings([cell("2026-03-03"), *tonight]), ["Without Java."])
    assert text.startswith("# seawall, night 2026-03-04\n\n**1 violation, 1 skipped, 1 pass.** 3 cells")
    assert "Exit code 1.\n\nFindings: 1 new.\n\n> Without Java.\n" in text
    assert "3 lost-write in ledger/0. **new**, first seen 2026-03-04.\n* Three acknowledged" in text
    assert "```\nseawall run random-chaos --seed 7\n```\n\nReport: ` runs/7/report.html `\n" in text
    assert "| skipped | random-chaos on builtin 4.1, seed 9 |  | No Docker engine. |" in text


def test_what_was_not_seen_tonight_is_listed_and_what_was_fixed_only_once() -> None:
    nights = [[lossy("2026-03-01")], *([cell(f"2026-03-0{day}", seed=s) for s in range(3)] for day in (2, 3))]
    seen = [one for night in nights[:2] for one in night]
    assert "Findings: 1 fixed." in (text := summary.markdown(nights[1], findings(seen)))
    assert "| fixed | random-chaos on builtin 4.1 | 3 lost-write in ledger/0 | 2026-03-01 | 3 |" in text
    later = summary.markdown(nights[2], findings([*seen, *nights[2]]))
    assert "fixed" not in later


def test_names_make_no_markup() -> None:
    text = summary.markdown([lossy(scenario=HOSTILE, story=(HOSTILE,), reproduce="a ``` b", report="a`b")])
    assert not re.search(r"<img|(?<!\\)\[x|(?<!\\)\*\*b|http://|@octocat|^::", text, re.MULTILINE)
    assert len([line for line in text.splitlines() if line.startswith("| violation")]) == 1
    assert "\n````\na ``` b\n````\n" in text
    assert "Report: `` a`b ``" in text


def test_a_summary_is_cut_between_lines() -> None:
    many = [lossy(seed=seed, story=("é" * 900,)) for seed in range(2_000)]
    text = summary.markdown(many, most_bytes=20_000)
    assert len(text.encode()) <= 20_000
    assert text.endswith("\n\nThe rest is left out here; see `results.jsonl`.\n")
    assert len(summary.markdown(many).encode()) <= summary.MOST_BYTES


def test_annotations_are_commands_of_one_line_gravest_first() -> None:
    invalid = cell(seed=8, outcome=CellOutcome.INVALID, reason="No proof.")
    cells = [cell(), invalid, lossy(outcome=CellOutcome.DISAGREEMENT), lossy()]
    first, second, warning = github.commands(cells)
    assert first == (
        "::error title=random-chaos on builtin 4.1%2C seed 7::violation: 3 lost-write in ledger/0%0A"
        "Three acknowledged records of ledger/0 are gone.%0ABroker 2 truncated its log to offset 20.%0A"
        "seawall run random-chaos --seed 7"
    )
    assert "::disagreement: " in second
    assert warning.startswith("::warning title=random-chaos on builtin 4.1%2C seed 8::invalid: No proof.%0A")


def test_a_name_cannot_end_a_command_or_begin_another() -> None:
    [command] = github.commands([lossy(scenario=HOSTILE, story=(HOSTILE, "100%0A::error::y"))])
    assert len(command.splitlines()) == 1
    title, _, message = command.removeprefix("::error title=").partition("::")
    assert ":" not in title
    assert "," not in title
    assert "100%250A::error::y" in message


def test_annotations_stay_within_githubs_limits() -> None:
    cells = [lossy(seed=seed, scenario="s" * 400, story=("x" * 9_000,)) for seed in range(40)]
    cells += [cell(seed=seed, outcome=CellOutcome.SKIPPED, reason=f"Reason {seed}.") for seed in range(30)]
    told = list(github.commands(cells))
    assert len([one for one in told if one.startswith("::error")]) == 10
    assert len([one for one in told if one.startswith("::notice")]) == 1
    assert "::error title=31 more::31 violation: see the summary of this step." in told
    title, _, message = told[0].removeprefix("::error title=").partition("::")
    assert len(title) <= 255
    assert len(message.replace("%0A", "\n")) <= 4_096
    assert message.endswith("%0Aseawall run random-chaos --seed 0")


def test_the_summary_of_a_step_grows_to_what_github_keeps(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("x" * 1_000_000)
    environment = {"GITHUB_STEP_SUMMARY": str(path)}
    many = [lossy(seed=seed, story=("é" * 900,)) for seed in range(200)]
    github.append_summary(lambda most: summary.markdown(many, most_bytes=most), environment)
    assert 1_000_000 < path.stat().st_size <= 1 << 20
    github.append_summary(lambda most: "x" * 100_000, environment)
    assert path.stat().st_size <= 1 << 20
    github.append_summary(lambda most: "x", {})
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        github.append_summary(lambda most: "x", {"GITHUB_STEP_SUMMARY": str(tmp_path / "none" / "file")})
