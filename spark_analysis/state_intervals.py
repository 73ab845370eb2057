"""Reduces the timeline to intervals of rows of a node about a replica in which nothing but offsets changes."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE

_SAME = ("incarnation", "kind", "role", "leader", "leader_epoch", "partition_epoch", "isr")


def intervals(timeline: DataFrame) -> DataFrame:
    """The timeline in intervals, with the fields of :class:`harness.facts.StateInterval`."""
    rows = Window.partitionBy(*PLACE, "node").orderBy("incarnation", "sequence", "time_ns")
    before = f.lag(f.struct(*_SAME)).over(rows)
    watermark, log_end, log_start = map(_or_zero, ("high_watermark", "log_end_offset", "log_start_offset"))
    goes_on = (log_end >= f.lag(log_end).over(rows)) & (log_start == f.lag(log_start).over(rows))
    same = f.coalesce(before.eqNullSafe(f.struct(*_SAME)) & goes_on, f.lit(False))
    alike = (f.col("kind") == "state") & same
    rises = alike & (watermark > f.lag(watermark).over(rows))
    falls = alike & (watermark < f.lag(watermark).over(rows))
    bounds = combinations(("log_start_offset", "high_watermark", "log_end_offset"), 2)
    crosses = reduce(or_, [f.coalesce(f.col(low) > f.col(high), f.lit(False)) for low, high in bounds])
    steps = timeline.withColumns(
        {
            "begins": f.when(alike, 0).otherwise(1),
            "rises": f.when(rises, f.col("sequence")),
            "falls": f.when(falls, f.col("sequence")),
            "crosses": f.when((f.col("kind") == "state") & crosses, f.col("sequence")),
        }
    )
    numbered = steps.withColumn("number", f.sum("begins").over(rows))
    place = f.struct("incarnation", "sequence", "time_ns")
    first = f.struct(
        "incarnation", "sequence", "time_ns", "kind", "role", "leader", "leader_epoch", "partition_epoch", "isr",
        "detail", "high_watermark", "log_end_offset", "log_start_offset",
    )  # fmt: skip
    last = f.struct("sequence", "time_ns", "high_watermark", "log_end_offset")
    grouped = numbered.groupBy(*PLACE, "node", "number").agg(
        f.min_by(first, place).alias("first"),
        f.max_by(last, place).alias("last"),
        f.min("rises").alias("rose"),
        f.max("falls").alias("fell"),
        f.min("crosses").alias("crossed"),
    )
    return grouped.select(
        *PLACE, "node", "first.incarnation", "first.sequence", f.col("first.time_ns").alias("begin_ns"),
        "first.kind", "first.role", "first.leader", "first.leader_epoch", "first.partition_epoch", "first.isr",
        "first.detail",
        f.col("first.high_watermark").alias("first_high_watermark"),
        f.col("first.log_end_offset").alias("first_log_end"),
        "first.log_start_offset",
        f.col("last.sequence").alias("end_sequence"),
        f.col("last.time_ns").alias("end_ns"),
        "last.high_watermark", "last.log_end_offset", "rose", "fell", "crossed",
    )  # fmt: skip


def _or_zero(column: str) -> Column:
    return f.coalesce(column, f.lit(0))
