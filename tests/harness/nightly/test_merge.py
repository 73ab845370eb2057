"""``seawall nightly merge``: shards become a night, Spark is asked once, and what does not fit is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from xmlschema import XMLSchema

import checkers
from harness.checker import RunVerdict
from harness.cli import main
from harness.errors import EnvironmentFault
from harness.nightly import bank, history_file, results_file
from harness.nightly.keeping import UNTIL_MERGED
from harness.nightly.result import CellOutcome, CellResult
from tests.checkers.story import Story
from tests.harness.nightly.cells import cell, lossy

Merge = Callable[..., tuple[int, str, str]]

_CHECK = checkers.check


@pytest.fixture
def merge(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Merge:
    """The command, in a directory of its own; anything but 0 to 4 and 70 is an error of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def call(*words: object) -> tuple[int, str, str]:
        code = main(["nightly", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def shard(directory: Path, results: Sequence[CellResult]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    results_file.write(directory / "results.jsonl", results)
    return directory


def test_shards_become_a_night_with_every_output(merge: Merge, tmp_path: Path) -> None:
    shard(tmp_path / "one", [lossy(shard="1/2"), cell(seed=8, shard="1/2")])
    shard(tmp_path / "two", [cell(seed=9, shard="2/2", outcome=CellOutcome.SKIPPED, reason="No Docker engine.")])
    code, out, _ = merge("merge", "one", "two", "--out", "night", "--history", "history.jsonl")
    assert code == 1
    assert out.startswith("1 violation, 1 skipped, 1 pass\nNo run has kept its tables, so that Spark was not asked.\n")
    names = {path.name for path in (tmp_path / "night").iterdir()}
    assert names == {"results.jsonl", "junit.xml", "summary.md", "index.html", "night-2026-03-04.html"}
    [first, *_] = results_file.read(tmp_path / "night" / "results.jsonl")
    assert (first.run, first.report) == ("../one/runs/7", "../one/runs/7/report.html")
    assert [one.seed for one in bank.read(tmp_path / "seeds.yaml")] == [7]
    assert len(history_file.read(tmp_path / "history.jsonl")) == 3


def test_shards_are_merged_into_a_directory_named_for_the_night(merge: Merge, tmp_path: Path) -> None:
    for number in (1, 2):
        shard(tmp_path / f"nights/2026-03-04-{number}-of-2", [cell(seed=number, shard=f"{number}/2")])
    assert merge("merge", *sorted((tmp_path / "nights").iterdir()))[0] == 0
    assert len(results_file.read(tmp_path / "nights/2026-03-04/results.jsonl")) == 2
    for number, name in ((1, "one"), (2, "two")):
        shard(tmp_path / name, [cell("../2026", seed=number)])
    code, _, err = merge("merge", "one", "two")
    assert (code, "--out DIR" in err) == (64, True)


def test_a_night_that_passed_before_is_told_from_a_new_failure(merge: Merge, tmp_path: Path) -> None:
    for day, results in ((3, [cell("2026-03-03")]), (4, [lossy("2026-03-04")]), (5, [lossy("2026-03-05", seed=3)])):
        shard(tmp_path / str(day), results)
        merge("merge", str(day), "--history", "history.jsonl")
    assert "**new**" in (tmp_path / "4/summary.md").read_text()
    assert 'name="standing" value="new"' in (tmp_path / "4/junit.xml").read_text()
    assert "**still failing**, first seen 2026-03-04" in (tmp_path / "5/summary.md").read_text()


@pytest.mark.parametrize(
    ("shards", "code", "named"),
    [
        (([cell()], [cell("2026-03-05")]), 64, "'2026-03-05'"),
        (([cell()], [cell(seed=8, plan="00" * 32)]), 64, "of the plan"),
        (([cell()], [cell()]), 64, "is in one and in two"),
        (([cell(shard="1/3")], [cell(seed=8, shard="3/3")]), 64, "shard 2/3 of the night is missing"),
        (([cell(shard="1/2")], [cell(seed=8, shard="2/3")]), 64, "shards of 2 and of 3"),
        (([], []), 3, "there is no cell"),
        (([cell(shard="1/2")], []), 0, ""),
    ],
)
def test_what_does_not_belong_together_is_refused(
    merge: Merge, tmp_path: Path, shards: Sequence[Sequence[CellResult]], code: int, named: str
) -> None:
    for name, results in zip(("one", "two"), shards, strict=True):
        shard(tmp_path / name, results)
    found, _, err = merge("merge", "one", "two", "--out", "night")
    assert (found, named in err) == (code, True)
    assert (tmp_path / "night").exists() == (code == 0)


def test_a_missing_shard_is_accepted_on_request_and_reported(merge: Merge, tmp_path: Path) -> None:
    shard(tmp_path / "one", [cell(shard="1/2")])
    assert merge("merge", "one", "--partial")[0] == 4
    suites = JUnitXml.fromfile(str(tmp_path / "one/junit.xml"))
    assert (suites.tests, suites.errors) == (2, 1)
    assert XMLSchema(Path(__file__).with_name("jenkins-junit.xsd")).is_valid(str(tmp_path / "one/junit.xml"))
    assert "Exit code 4." in (tmp_path / "one/summary.md").read_text()
    assert "> shard 2/2 of the night is missing" in (tmp_path / "one/summary.md").read_text()


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("merge", "nowhere"), 3, "nowhere/results.jsonl is missing"),
        (("merge", "a", "a"), 3, "a/results.jsonl is missing"),
        (("retire", "x"), 64, "has no entry 'x'"),
    ],
)
def test_a_wrong_command_is_one_sentence(merge: Merge, words: Sequence[str], code: int, named: str) -> None:
    found, _, err = merge(*words)
    assert (found, named in err, "Traceback" in err) == (code, True, False)


def test_the_directories_of_bank_and_history_are_made(merge: Merge, tmp_path: Path) -> None:
    shard(tmp_path / "one", [lossy()])
    assert merge("merge", "one", "--bank", "kept/seeds.yaml", "--history", "kept/past/history.jsonl")[0] == 1
    assert bank.read(tmp_path / "kept/seeds.yaml")
    assert history_file.read(tmp_path / "kept/past/history.jsonl")


def test_only_retire_removes_an_entry(merge: Merge, tmp_path: Path) -> None:
    shard(tmp_path / "one", [lossy()])
    merge("merge", "one")
    shard(tmp_path / "one", [cell(bank=True)])
    merge("merge", "one")
    [entry] = bank.read(tmp_path / "seeds.yaml")
    code, out, _ = merge("retire", entry.entry)
    assert (code, out) == (0, f"seeds.yaml: {entry.entry} is retired, 0 entries are left\n")
    assert bank.read(tmp_path / "seeds.yaml") == ()


def test_what_ci_keeps_follows_the_repository_and_a_second_call_changes_nothing(merge: Merge, tmp_path: Path) -> None:
    a, b, c = bank.updated((), [lossy(seed=seed) for seed in (1, 2, 3)])
    kept = tmp_path / "kept"
    assert merge("keep", "kept")[:2] == (0, "kept/seeds.yaml: 0 entries are kept\n")
    bank.write(kept / "seeds.yaml", (a, b, c))
    bank.write(kept / "committed.yaml", (a, b))
    bank.write(kept / "now.yaml", (b,))
    for _ in range(2):
        assert merge("keep", "kept")[:2] == (0, "kept/seeds.yaml: 2 entries are kept\n")
        assert [bank.read(kept / name) for name in ("seeds.yaml", "committed.yaml")] == [(b, c), (b,)]
    (kept / "now.yaml").write_text("entries: 3")
    code, _, err = merge("keep", "kept")
    assert (code, "kept/now.yaml" in err) == (64, True)
    assert bank.read(kept / "seeds.yaml") == (b, c)


# ------------------------------------------------------------------------------------------------- what Spark says


def recorded(directory: Path, seed: int, run: str = "", **told: Any) -> CellResult:
    """A cell whose run has kept its tables, and was judged by the reference engine."""
    story = Story(run or f"r{seed}")
    story.send()
    story.poll(1, [0])
    story.fault()
    story.finish().write(directory / "runs" / str(seed))
    _CHECK([directory / "runs" / str(seed)], "reference")
    return cell(seed=seed, run=f"runs/{seed}", **told)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for Spark: it agrees, but about a run of which the name says otherwise; the jobs that it was given."""
    jobs: list[list[str]] = []

    def check(asked: Sequence[Path | str], engine: str, master: str | None) -> list[RunVerdict]:
        places = [Path(str(place).removeprefix("file://")) for place in asked]
        jobs.append([place.name for place in places] + [engine, str(master)])
        verdicts = _CHECK(places, "reference")
        return [replace(one, counts={}) if one.run == "doubted" else one for one in verdicts]

    monkeypatch.setattr(checkers, "check", check)
    return jobs


def test_one_job_judges_every_run_that_has_its_tables(merge: Merge, tmp_path: Path, spark: list[list[str]]) -> None:
    kept = [recorded(tmp_path / "one", seed) for seed in (1, 2)]
    shard(tmp_path / "one", [*kept, cell(seed=3, run="runs/gone"), cell(seed=4)])
    code, out, err = merge("merge", "one", "--master", "spark://m:7077")
    assert (code, spark) == (0, [["1", "2", "spark", "spark://m:7077"]])
    assert "asking Spark about 2 of 4 cells" in err
    assert out.startswith("4 pass\nSpark was not asked about run|builtin|4.1|random-chaos|3, whose tables")


def test_what_passed_keeps_its_tables_until_the_engines_agree(
    merge: Merge, tmp_path: Path, spark: list[list[str]]
) -> None:
    outcomes = (CellOutcome.PASS, CellOutcome.VIOLATION, CellOutcome.PASS)
    told = [{"run": run, "outcome": outcome} for run, outcome in zip(("", "", "doubted"), outcomes, strict=True)]
    shard(tmp_path / "one", [recorded(tmp_path / "one", seed, **one) for seed, one in enumerate(told)])
    assert merge("merge", "one", "--keep", "failing")[0] == 1
    kept = [{path.name for path in (tmp_path / "one/runs" / str(seed)).iterdir()} for seed in range(3)]
    assert kept[0] == {"run.json", "verdict.json"}
    assert all(
        names >= UNTIL_MERGED - {"wire", "schedule_log.json", "findings.csv", "report.html"} for names in kept[1:]
    )


def test_a_master_that_was_named_and_does_not_answer_is_an_error(
    merge: Merge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*_: object) -> None:
        raise EnvironmentFault("Spark does not start on master spark://m:7.", "Start it.")

    monkeypatch.setattr(checkers, "check", check)
    shard(tmp_path / "one", [recorded(tmp_path / "one", 1)])
    assert merge("merge", "one")[0] == 0
    code, _, err = merge("merge", "one", "--master", "spark://m:7")
    assert (code, "Spark does not start on master spark://m:7." in err) == (4, True)


def test_a_copy_of_the_runs_is_judged_and_compared_with_the_verdicts_that_stayed(
    merge: Merge, tmp_path: Path, spark: list[list[str]]
) -> None:
    for number, (name, run) in enumerate((("one", ""), ("two", "doubted")), 1):
        shard(tmp_path / name, [recorded(tmp_path / name, number, run, shard=f"{number}/2")])
        shutil.copytree(tmp_path / name / "runs", tmp_path / "copy" / "runs", dirs_exist_ok=True)
        for table in (tmp_path / name).rglob("*.parquet"):
            table.unlink()
    code, out, _ = merge("merge", "one", "two", "--runs", f"{(tmp_path / 'copy').as_uri()}/", "--master", "spark://m:7")
    assert spark == [["1", "2", "spark", "spark://m:7"]]
    assert (code, out.startswith("1 disagreement, 1 pass\nSpark agrees about 1 of 2 runs.\n")) == (70, True)


def test_a_bank_that_is_gone_retires_nothing(merge: Merge, tmp_path: Path) -> None:
    shard(tmp_path / "one", [lossy()])
    merge("merge", "one", "--bank", "kept/committed.yaml")
    shutil.copy(tmp_path / "kept/committed.yaml", tmp_path / "kept/seeds.yaml")
    (tmp_path / "kept/now.yaml").touch()
    code, _, err = merge("keep", "kept")
    assert (code, "in the last night, and kept/now.yaml is empty" in err) == (64, True)
    assert len(bank.read(tmp_path / "kept/seeds.yaml")) == 1
    bank.write(tmp_path / "kept/now.yaml", ())
    assert merge("keep", "kept")[:2] == (0, "kept/seeds.yaml: 0 entries are kept\n")


def test_a_cell_that_spark_cannot_be_asked_about_is_named(merge: Merge, tmp_path: Path, spark: list[list[str]]) -> None:
    kept = [recorded(tmp_path / "one", seed, cell=f"cell {seed}") for seed in (1, 2, 3)]
    shutil.rmtree(tmp_path / "one/runs/2/timeline")
    (tmp_path / "one/runs/3/verdict.json").write_text("{}")
    shard(tmp_path / "one", kept)
    code, out, _ = merge("merge", "one")
    assert (code, spark) == (0, [["1", "spark", "None"]])
    assert "Spark was not asked about cell 2, cell 3, whose tables or verdicts are not there.\n" in out


def test_runs_of_shards_are_found_from_a_directory_that_is_not_there_yet(
    merge: Merge, tmp_path: Path, spark: list[list[str]]
) -> None:
    for number, name in ((1, "one"), (2, "two")):
        shard(tmp_path / name, [recorded(tmp_path / name, number, shard=f"{number}/2")])
    assert merge("merge", "one", "two")[0] == 0
    assert spark == [["1", "2", "spark", "None"]]


def test_a_verdict_that_differs_is_a_disagreement(merge: Merge, tmp_path: Path, spark: list[list[str]]) -> None:
    shard(tmp_path / "one", [recorded(tmp_path / "one", 1), recorded(tmp_path / "one", 2, "doubted")])
    code, out, _ = merge("merge", "one")
    assert code == 70
    assert out.startswith("1 disagreement, 1 pass\nSpark agrees about 1 of 2 runs.\n")
    found = results_file.read(tmp_path / "one/results.jsonl")[0]
    assert (found.seed, found.exit_code) == (2, 70)
    assert found.reason == (
        "Spark and the reference engine disagree about counts: one of them is wrong. It was pass before."
    )
    assert (tmp_path / "one/runs/2/report.html").exists()


def test_runs_of_one_name_are_asked_about_in_separate_jobs(
    merge: Merge, tmp_path: Path, spark: list[list[str]]
) -> None:
    results = [recorded(tmp_path / "one", seed, "same") for seed in (1, 2)]
    shard(tmp_path / "one", results)
    assert merge("merge", "one")[0] == 0
    assert [job[0] for job in spark] == ["1", "2"]


def test_without_java_the_references_verdicts_stay(
    merge: Merge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard(tmp_path / "one", [recorded(tmp_path / "one", 1)])

    def refuse(*_: object) -> None:
        raise EnvironmentFault("Spark needs Java 17 or newer.", "Install it.")

    monkeypatch.setattr(checkers, "check", refuse)
    code, out, _ = merge("merge", "one")
    told = "Spark needs Java 17 or newer. The verdicts are those of the reference engine alone."
    assert (code, told in out) == (0, True)
    assert told in (tmp_path / "one/summary.md").read_text()
    assert merge("merge", "one", "--engine", "reference")[1].startswith("1 pass\nsummary: ")


def test_github_is_told_where_it_listens(merge: Merge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    shard(tmp_path / "one", [lossy()])
    assert "\n::error title=random-chaos on builtin 4.1%2C seed 7::violation" in "\n" + merge("merge", "one")[1]
    assert (tmp_path / "step.md").read_text() == (tmp_path / "one/summary.md").read_text()


def test_the_history_is_bounded_and_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[CellResult] = []
    monkeypatch.setattr(history_file, "MOST_NIGHTS", 3)
    for day in range(1, 6):
        known = history_file.updated(known, [cell(f"2026-03-0{day}"), lossy(f"2026-03-0{day}", seed=8)])
    assert [one.night for one in known] == [f"2026-03-0{day}" for day in (3, 3, 4, 4, 5, 5)]
    assert {one.reproduce for one in known} == {"", lossy(seed=8).reproduce}
    assert not any(one.story for one in known)
    again = history_file.updated(known, [cell("2026-03-05", seed=99)])
    assert [one.seed for one in again if one.night == "2026-03-05"] == [99]
    monkeypatch.setattr(history_file, "MOST_CELLS", 3)
    assert {one.night for one in history_file.updated(known, [cell("2026-03-06")])} == {"2026-03-05", "2026-03-06"}
