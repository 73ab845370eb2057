"""Spark reads the files of this machine that it is asked to, whatever their names are."""

from __future__ import annotations

from pathlib import Path

from harness.checker import Outcome
from tests.checkers.story import Story
from tests.spark_analysis.differential import disagreements
from tests.spark_analysis.one_job import OneJob

NAMES = ["a run", "100%", "a%20b", "[a]", "{a,b}", "a*", "what?", "a#b", "a\\b", "a:b", "ü"]


def lossy(path: Path) -> Path:
    """A run in which a record is lost."""
    story = Story(path.name)
    story.send()
    story.send()
    story.finish()
    story.forget(*[row for row in story.final_rows() if row["offset"] == 0])
    return story.write(path)


def write_runs(root: Path) -> list[Path]:
    (root / "a").mkdir()  # what patterns would match
    return [lossy(root / name) for name in NAMES]


def test_a_run_directory_may_have_any_name(one_job: OneJob) -> None:
    verdicts = one_job.both(__name__)
    assert not list(disagreements(verdicts))
    assert {verdict.outcome for verdict, _ in verdicts} == {Outcome.VIOLATION}
