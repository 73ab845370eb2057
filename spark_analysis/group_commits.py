"""The commits of consumer groups: one row per operation and partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE

WHOSE = (*PLACE, "group")
"""The columns of a partition that a group reads."""


def automatic(history: DataFrame) -> DataFrame:
    """``run, topic, partition, group, began_ns``: where clients commit by themselves, without rows of their commits.

    From ``began_ns`` on one may have committed there.
    """
    rows = history.where((f.col("f") == "auto_commit") & f.col("topic").isNotNull() & f.col("group").isNotNull())
    return f.broadcast(rows.groupBy(*WHOSE).agg(f.min("time_ns").alias("began_ns")))


def commits(history: DataFrame) -> DataFrame:
    """``run, topic, partition, op, begin, end``: the first and the last row of each commit, as structs.

    They are the same while its invocation is all that there is.
    """
    rows = history.where((f.col("f") == "commit") & f.col("topic").isNotNull())
    named = ("index", "type", "group", "generation", "offset", "time_ns", "process", "group_protocol")
    row = f.struct(f.col("type") != "invoke", *named)
    return rows.groupBy(*PLACE, "op").agg(f.min(row).alias("begin"), f.max(row).alias("end"))
