"""Periods of at least ``replica.lag.time.max.ms`` in which a leader's rows follow each other without a gap."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.facts import LOOKS
from spark_analysis.tables import PLACE

SAME_ISR = (*PLACE, "node", "incarnation", "leader_epoch", "partition_epoch")
"""The columns in which a leader's rows of one version of its ISR are alike."""


def leads() -> Column:
    """Whether a row is a leader's and names its ISR."""
    names_isr = f.col("isr").isNotNull() & f.col("leader_epoch").isNotNull()
    return (f.col("kind") == "state") & (f.col("role") == "leader") & names_isr


def lasting(rows: DataFrame, same: Sequence[str], *kept: str) -> DataFrame:
    """The columns ``same`` of each such group, and its ``first`` and ``last`` row: ``sequence, time_ns``.

    Args:
        rows: of the timeline, with ``lag_ns``: how long a group lasts at least; its rows are a
            :data:`~harness.facts.LOOKS`-th of that apart at most.
        same: the columns in which the rows of a group are alike.
        kept: the columns that ``first`` has besides.
    """
    order = Window.partitionBy(*same).orderBy("time_ns", "sequence")
    pause_ns = f.col("time_ns") - f.lag("time_ns").over(order)
    begins = f.coalesce(pause_ns * LOOKS > f.col("lag_ns"), f.lit(True))
    numbered = rows.withColumn("begins", begins.cast("int")).withColumn("number", f.sum("begins").over(order))
    age = f.struct("time_ns", "sequence")
    grouped = numbered.groupBy(*same, "number").agg(
        f.min_by(f.struct("sequence", "time_ns", *kept), age).alias("first"),
        f.max_by(f.struct("sequence", "time_ns"), age).alias("last"),
        f.first("lag_ns").alias("lag_ns"),
    )
    return grouped.where(f.col("last.time_ns") - f.col("first.time_ns") >= f.col("lag_ns"))
