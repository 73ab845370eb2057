"""Things done at the same time: all their results, or the first failure and nothing left running."""

from __future__ import annotations

from threading import Event

import pytest
from pyspark.sql import SparkSession

from spark_analysis.parallel_jobs import in_parallel


def test_results_come_in_the_order_of_the_tasks_whoever_is_done_first(spark: SparkSession) -> None:
    second_is_done = Event()

    def first() -> int:
        second_is_done.wait()
        return spark.range(3).count()

    def second() -> int:
        second_is_done.set()
        return spark.range(5).count()

    assert in_parallel(spark, [first, second]) == [3, 5]


def test_what_goes_on_when_another_task_fails_is_cancelled_before_anybody_hears_of_it(spark: SparkSession) -> None:
    ended = Event()

    def endless() -> None:
        try:
            spark.range(10**15).selectExpr("max(hash(id))").collect()
        finally:
            ended.set()

    def failing() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            assert not ended.is_set(), "it failed by itself"
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_parallel(spark, [failing, endless])
    assert ended.is_set()
