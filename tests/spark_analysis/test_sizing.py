from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_analysis import sizing
from spark_analysis.files import SMALL
from tests.spark_analysis.differential import disagreements, random_runs, verdicts_on


@pytest.mark.nightly("one more job of Spark; by day runs are judged as small ones")
def test_what_is_neither_small_nor_large_gets_the_same_verdicts(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "SMALL", -1)
    assert not [*disagreements(verdicts_on(random_runs(range(1000, 1015), tmp_path), spark))]


def test_hundreds_of_small_runs_are_small() -> None:
    files = [6_000] * 4 * 500
    assert sum(files) > SMALL
    assert sizing.content(files) <= SMALL


def test_few_rows_of_what_is_not_small_stay_where_they_are(spark: SparkSession) -> None:
    rows = spark.range(0, 10, 1, 3)
    assert sizing.gathered(rows).rdd.getNumPartitions() == 3
    with sizing.laid_out(spark, SMALL, large=False):
        assert sizing.gathered(rows).rdd.getNumPartitions() == 1
