"""The differential test: many runs in one job, and the reference says the same of each, also when all are large."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.checker import Outcome
from tests.checkers.cases import Case
from tests.checkers.dealing import rewrite
from tests.checkers.evidence_cases import CASES
from tests.checkers.sampled_stories import last_page_cache, two_failovers
from tests.checkers.story import Story
from tests.spark_analysis.differential import (
    CHUNKS,
    Verdicts,
    disagreements,
    every_kind,
    random_runs,
    runs_by_kind,
    verdicts_in_blocks,
    verdicts_on,
)
from tests.spark_analysis.one_job import OneJob

SEEDS = range(210, 310)

IN_BLOCKS = 40
"""How many of these random runs are judged in blocks, too."""

BY_DAY, BY_NIGHT = CASES[1::2], CASES[::2]
PARTS = 2
MORE_JOBS = pytest.mark.nightly("one more job of Spark; by day it judges a quarter of the cases in blocks")

READ_BEFORE_SENT = "read-before-sent"


def read_before_sent(path: Path) -> Path:
    """A run in which a value is read before it is sent, and the file with the send begins first."""
    story = Story(READ_BEFORE_SENT)
    story.send()
    story.append(0, 1, [1, 2])
    story.poll(5, [0, 1])
    story.send(append=False, offset=1)
    story.finish().write(path)
    rewrite(path, "history", [[0, 1, *range(5, len(story.history))], [2, 3, 4]])
    return path


def written(cases: Iterable[Case], root: Path) -> list[Path]:
    """The run directories of cases."""
    return [case.story(case.name).write(root / case.name, **case.manifest) for case in cases]


def write_runs(root: Path) -> list[Path]:
    """Every other case, two runs that were looked at by sampling, one in which a value is read before it is sent, and
    many random ones.
    """
    cases = written(BY_DAY, root)
    looks = [told.kept(root / told.run) for told in (two_failovers(), last_page_cache())]
    return [*cases, *looks, read_before_sent(root / READ_BEFORE_SENT), *random_runs(SEEDS, root)]


@pytest.fixture(scope="module")
def verdicts(one_job: OneJob) -> Verdicts:
    """What both engines say of every case and of many random runs."""
    return one_job.both(__name__)


def test_both_engines_reach_the_same_verdict_on_every_run(verdicts: Verdicts) -> None:
    assert not list(disagreements(verdicts))


def test_the_runs_are_of_every_sort(verdicts: Verdicts) -> None:
    assert {verdict.outcome for verdict, _ in verdicts} == set(Outcome)
    found = runs_by_kind(verdicts)
    assert every_kind() - set(found) == set()


@pytest.mark.parametrize("part", [0, *(pytest.param(one, marks=MORE_JOBS) for one in range(1, PARTS))])
def test_runs_are_judged_the_same_in_blocks(
    part: int, verdicts: Verdicts, one_job: OneJob, spark: SparkSession
) -> None:
    """Whatever a chunk is: less than anything that belongs together for one half of them, everything for the other."""
    root = one_job.root(__name__)
    told = dict(zip(one_job.places(__name__), (reference for _, reference in verdicts), strict=True))
    names = [*[case.name for case in BY_DAY][part::PARTS], *map(str, SEEDS[part:IN_BLOCKS:PARTS]), READ_BEFORE_SENT]
    paths = [root / name for name in names]
    in_blocks = verdicts_in_blocks(paths, spark, [told[path] for path in paths], [CHUNKS[part % len(CHUNKS)]])
    assert not list(disagreements(in_blocks))
    (unwritten,) = (verdict for verdict, _ in in_blocks if verdict.run == READ_BEFORE_SENT)
    assert {anomaly.kind for anomaly in unwritten.anomalies} == {"unwritten-read"}


@pytest.mark.nightly("two more jobs of Spark")
def test_both_engines_reach_the_same_verdict_on_the_other_cases(tmp_path: Path, spark: SparkSession) -> None:
    paths = written(BY_NIGHT, tmp_path)
    verdicts = verdicts_on(paths, spark)
    assert not list(disagreements(verdicts))
    told = [reference for _, reference in verdicts]
    assert not list(disagreements(verdicts_in_blocks(paths, spark, told, [CHUNKS[0]])))
