"""The differential test: many runs in one job, and the reference says the same of each, also when all are large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from checkers import check
from harness.checker import Outcome, RunVerdict
from tests.checkers.dealing import rewrite
from tests.checkers.evidence_cases import CASES
from tests.checkers.sampled_stories import last_page_cache, two_failovers
from tests.checkers.story import Story
from tests.spark_analysis.differential import (
    CHUNKS,
    Verdicts,
    disagreements,
    every_kind,
    opened_once,
    random_runs,
    runs_by_kind,
    verdicts_in_blocks,
)

SEEDS = range(210, 460)

IN_BLOCKS = 40
"""How many of these random runs are judged in blocks, too."""

OFTEN = 3
"""In how many of these random runs each kind is found at the least."""

READ_BEFORE_SENT = "read-before-sent"


class Runs(NamedTuple):
    """Every case, two runs that were looked at by sampling, one in which a value is read before it is sent, and many
    random ones.
    """

    cases: list[Path]
    looks: list[Path]
    unwritten: Path
    random: list[Path]


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


@pytest.fixture(scope="module", autouse=True)
def looked_through() -> Iterator[None]:
    """See :func:`tests.spark_analysis.differential.opened_once`."""
    with opened_once():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("runs")
    cases = [case.story(case.name).write(root / case.name, **case.manifest) for case in CASES]
    looks = [told.kept(root / told.run) for told in (two_failovers(), last_page_cache())]
    return Runs(cases, looks, read_before_sent(root / READ_BEFORE_SENT), random_runs(SEEDS, root))


@pytest.fixture(scope="module")
def told(runs: Runs) -> Mapping[Path, RunVerdict]:
    """What the reference says of each run."""
    paths = [*runs.cases, *runs.looks, runs.unwritten, *runs.random]
    return dict(zip(paths, check(paths, engine="reference"), strict=True))


@pytest.fixture(scope="module")
def verdicts(told: Mapping[Path, RunVerdict], spark: SparkSession) -> Verdicts:
    """What both engines say of every case and of many random runs."""
    return list(zip(check(list(told), engine="spark", session=spark), told.values(), strict=True))


def test_both_engines_reach_the_same_verdict_on_every_run(verdicts: Verdicts) -> None:
    assert not list(disagreements(verdicts))


def test_the_random_runs_are_of_every_sort(verdicts: Verdicts) -> None:
    assert {verdict.outcome for verdict, _ in verdicts} == set(Outcome)
    random = [both for both in verdicts if both[0].run.startswith("run-")]
    found = runs_by_kind(random)
    assert {kind: found[kind] for kind in every_kind() if found[kind] < OFTEN} == {}


@pytest.mark.parametrize("half", range(len(CHUNKS)))
def test_runs_are_judged_the_same_in_blocks(
    half: int, runs: Runs, told: Mapping[Path, RunVerdict], spark: SparkSession
) -> None:
    """Whatever a chunk is: less than anything that belongs together for one half of them, everything for the other."""
    halves = len(CHUNKS)
    paths = [*runs.cases[half::halves], *runs.random[half:IN_BLOCKS:halves], runs.unwritten]
    verdicts = verdicts_in_blocks(paths, spark, [told[path] for path in paths], [CHUNKS[half]])
    assert not list(disagreements(verdicts))
    (unwritten,) = (verdict for verdict, _ in verdicts if verdict.run == READ_BEFORE_SENT)
    assert {anomaly.kind for anomaly in unwritten.anomalies} == {"unwritten-read"}
