"""Spark reads the files of this machine that it is asked to, whatever their names are."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from harness.checker import Outcome
from tests.checkers.story import Story
from tests.spark_analysis.differential import disagreements, verdicts_on

NAMES = ["a run", "100%", "a%20b", "[a]", "{a,b}", "a*", "what?", "a#b", "a\\b", "a:b", "ü"]


def lossy(path: Path) -> Path:
    """A run in which a record is lost."""
    story = Story(path.name)
    story.send()
    story.send()
    story.finish()
    story.forget(*[row for row in story.final_rows() if row["offset"] == 0])
    return story.write(path)


def test_a_run_directory_may_have_any_name(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "a").mkdir()  # what patterns would match
    runs = [lossy(tmp_path / name) for name in NAMES]
    verdicts = verdicts_on(runs, spark)
    assert not list(disagreements(verdicts))
    assert {verdict.outcome for verdict, _ in verdicts} == {Outcome.VIOLATION}
