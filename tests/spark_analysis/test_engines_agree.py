"""The differential test: many runs in one job, and the reference says the same of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers import check
from harness.checker import Outcome, RunVerdict, to_json
from tests.checkers.evidence_cases import CASES
from tests.checkers.randomness import MANIFESTS, random_story

SEEDS = range(300)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every case and many random runs."""
    root = tmp_path_factory.mktemp("runs")
    cases = [case.story(case.name).write(root / case.name, **case.manifest) for case in CASES]
    random = [random_story(seed).write(root / f"{seed}", **MANIFESTS[seed % len(MANIFESTS)]) for seed in SEEDS]
    return [*cases, *random]


@pytest.fixture(scope="module")
def verdicts(runs: list[Path], spark: SparkSession) -> list[tuple[RunVerdict, RunVerdict]]:
    return list(zip(check(runs, engine="spark", session=spark), check(runs, engine="reference"), strict=True))


def test_both_engines_reach_the_same_verdict_on_every_run(verdicts: list[tuple[RunVerdict, RunVerdict]]) -> None:
    for spark_says, reference_says in verdicts:
        mine, theirs = to_json(spark_says), to_json(reference_says)
        assert mine.pop("engine") != theirs.pop("engine")
        for part, said in mine.items():
            assert said == theirs[part], f"{spark_says.run}: {part}"


def test_the_random_runs_are_of_every_sort(verdicts: list[tuple[RunVerdict, RunVerdict]]) -> None:
    outcomes = {verdict.outcome for verdict, _ in verdicts}
    assert outcomes == set(Outcome)
    random = [verdict for verdict, _ in verdicts if verdict.run.startswith("run-")]
    kinds = {anomaly.kind for verdict in random for anomaly in verdict.anomalies}
    assert kinds == {kind for case in CASES for kind, _, _ in case.anomalies}
