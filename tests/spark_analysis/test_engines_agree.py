"""The differential test: many runs in one job, and the reference says the same of each."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from harness.checker import Outcome
from tests.checkers.evidence_cases import CASES
from tests.checkers.sampled_stories import last_page_cache, two_failovers
from tests.spark_analysis.differential import (
    Verdicts,
    disagreements,
    every_kind,
    random_runs,
    runs_by_kind,
    verdicts_on,
)

SEEDS = range(210, 460)

OFTEN = 3
"""In how many of these random runs each kind is found at the least."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Verdicts:
    """What both engines say of every case and of many random runs."""
    root = tmp_path_factory.mktemp("runs")
    cases = [case.story(case.name).write(root / case.name, **case.manifest) for case in CASES]
    looks = [told.kept(root / told.run) for told in (two_failovers(), last_page_cache())]
    return verdicts_on([*cases, *looks, *random_runs(SEEDS, root)], spark)


def test_both_engines_reach_the_same_verdict_on_every_run(verdicts: Verdicts) -> None:
    assert not list(disagreements(verdicts))


def test_the_random_runs_are_of_every_sort(verdicts: Verdicts) -> None:
    assert {verdict.outcome for verdict, _ in verdicts} == set(Outcome)
    random = [both for both in verdicts if both[0].run.startswith("run-")]
    found = runs_by_kind(random)
    assert {kind: found[kind] for kind in every_kind() if found[kind] < OFTEN} == {}
