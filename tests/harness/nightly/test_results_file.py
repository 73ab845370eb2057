"""``results.jsonl``: what is written is read, and what a crash or an editor left is refused or left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ExitCode, InvalidRun
from harness.nightly import results_file
from harness.nightly.conclusion import ERRORS, FAILURES, GRAVEST_FIRST, PASSES, SKIPS, exit_code
from harness.nightly.result import CellOutcome
from tests.harness.nightly.cells import cell, lossy


def test_what_is_written_is_read(tmp_path: Path) -> None:
    results = [lossy(), cell(seed=8, settings={"min.insync.replicas": "2"}, bank=True)]
    results_file.write(tmp_path / "results.jsonl", results)
    assert results_file.read(tmp_path / "results.jsonl") == results
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_last_line_that_a_crash_tore_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results_file.write(path, [cell(), lossy()])
    path.write_text(path.read_text()[:-40])
    assert results_file.read(path) == [cell()]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"night": ', "line 1: it is no JSON"),
        (results_file.line(cell()).replace('"pass"', '"fine"'), "'fine' is refused"),
        (results_file.line(cell()).replace('"series"', '"serie"'), "did you mean 'series'?"),
        (results_file.line(cell()).replace('"schema_version":1', '"schema_version":2'), "schema_version: 2"),
        ("[1]", "line 1"),
    ],
)
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str, named: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{line}\n{results_file.line(cell())}\n")
    with pytest.raises(InvalidRun) as refused:
        results_file.read(path)
    assert named in refused.value.sentence


def test_what_is_no_directory_of_a_night_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="no directory of a night"):
        results_file.read(tmp_path / "results.jsonl")


def test_a_name_that_is_not_utf_8_is_written_all_the_same(tmp_path: Path) -> None:
    results_file.write(tmp_path / "results.jsonl", [cell(target="compose:\udcff.yml")])
    assert results_file.read(tmp_path / "results.jsonl")[0].target == "compose:?.yml"


def test_every_outcome_is_a_failure_an_error_a_skip_or_a_pass() -> None:
    assert sorted([*FAILURES, *ERRORS, *SKIPS, *PASSES]) == sorted(CellOutcome)
    assert sorted(GRAVEST_FIRST) == sorted(CellOutcome)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ("pass as-predicted skipped not-run", 0),
        ("pass violation error disagreement", 1),
        ("not-reproduced invalid", 1),
        ("disagreement invalid inconclusive", 70),
        ("error timeout", 70),
        ("invalid inconclusive environment", 3),
        ("inconclusive timeout", 2),
        ("timeout pass", 4),
        ("skipped not-run", 2),
    ],
)
def test_the_gravest_outcome_decides_the_exit_code(outcomes: str, code: int) -> None:
    assert exit_code(cell(outcome=CellOutcome(one)) for one in outcomes.split()) == ExitCode(code)
