"""Runs Spark jobs at the same time: Spark plans on one processor what it computes on all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_PATIENCE_S = 0.2


def in_parallel(spark: SparkSession, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """What ``tasks`` return, in their order.

    When one of them fails, or the caller is interrupted, the jobs of all are cancelled, and that is raised when all of
    them have ended.
    """
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 2), thread_name_prefix="spark")
    futures = [pool.submit(task) for task in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        while wait(futures, _PATIENCE_S).not_done:
            with suppress(Py4JError):  # a JVM that has gone cancels nothing, and then they fail by themselves
                spark.sparkContext.cancelAllJobs()
        raise
    finally:
        pool.shutdown(wait=False)
