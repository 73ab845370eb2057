"""The differential test: many runs in one job, and the reference says the same of each, also when all are large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from checkers import check
from harness.checker import Outcome
from tests.checkers.all_cases import CASES
from tests.checkers.cases import Case
from tests.checkers.dealing import rewrite
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

SEEDS = range(210, 240)

IN_BLOCKS = 20
"""How many of these random runs are judged in blocks, too."""

MORE_JOBS = pytest.mark.nightly("one more job of Spark; by day test_blocks asks blocks alone, and runs are small ones")


def telling(cases: Iterable[Case], shown: Callable[[Case], set[str]]) -> list[Case]:
    """The first case to show each thing, and after it the next without an anomaly: its near miss, as a rule."""
    chosen, known, near_miss = [], set[str](), False
    for one in cases:
        new = shown(one) - known
        if new or (near_miss and not one.anomalies):
            chosen.append(one)
            known, near_miss = known | new, bool(new)
    return chosen


def kinds_and_outcome(case: Case) -> set[str]:
    """The kinds of its anomalies, and its outcome; what the verdict on a kind is, both engines have one code for."""
    return {kind for kind, *_ in case.anomalies} | {case.outcome.value}


MORE = (
    "a_group_may_commit_a_lower_offset_and_be_told_it",  # the near miss of a commit beyond the end, and before it
    "a_log_start_that_comes_back_hides_what_was_written_since",
    "each_deletion_has_a_time_of_its_own",
    "a_deletion_that_comes_too_soon_is_found_behind_many_others",
)
"""Cases in which the engines answer more than which kinds there are."""

CHOSEN = telling(CASES, kinds_and_outcome)
BY_DAY = [*CHOSEN, *(case for case in CASES if case.name in MORE and case not in CHOSEN)]
BY_NIGHT = [case for case in CASES if case not in BY_DAY]

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
    """The telling cases, two runs that were looked at by sampling, one in which a value is read before it is sent, and
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


class Part(NamedTuple):
    """Which runs are judged as large ones, and in which chunks."""

    chunk: int
    cases: Sequence[Case]
    seeds: range


@MORE_JOBS
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(Part(CHUNKS[0], BY_DAY, SEEDS[:IN_BLOCKS]), id="many chunks"),
        pytest.param(Part(CHUNKS[1], BY_DAY, SEEDS), id="one chunk"),
    ],
)
def test_runs_are_judged_the_same_in_blocks(
    part: Part, verdicts: Verdicts, one_job: OneJob, spark: SparkSession
) -> None:
    """Whatever a chunk is: less than anything that belongs together, or everything."""
    root = one_job.root(__name__)
    told = dict(zip(one_job.places(__name__), (reference for _, reference in verdicts), strict=True))
    paths = [root / name for name in (*(case.name for case in part.cases), *map(str, part.seeds), READ_BEFORE_SENT)]
    in_blocks = verdicts_in_blocks(paths, spark, [told[path] for path in paths], [part.chunk])
    assert not list(disagreements(in_blocks))
    (unwritten,) = (verdict for verdict, _ in in_blocks if verdict.run == READ_BEFORE_SENT)
    assert {anomaly.kind for anomaly in unwritten.anomalies} == {"unwritten-read"}


@pytest.mark.nightly("two more jobs of Spark; by day it judges a case of each kind and outcome, and its near miss")
def test_both_engines_reach_the_same_verdict_on_the_other_cases(tmp_path: Path, spark: SparkSession) -> None:
    verdicts = verdicts_on(written(BY_NIGHT, tmp_path / "night"), spark)
    assert not list(disagreements(verdicts))
    cases = [case for case in CASES if case not in BY_DAY]
    paths = written(cases, tmp_path / "blocks")
    told = check(paths, engine="reference")
    assert not list(disagreements(verdicts_in_blocks(paths, spark, told, [CHUNKS[0]])))
