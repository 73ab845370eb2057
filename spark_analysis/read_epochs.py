"""The leader epochs that polls returned, with the first and last offset of each, and those that their fetches named."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE, Tables


def read_epochs(tables: Tables) -> DataFrame:
    """The fields of :class:`harness.facts.ReadEpoch`."""
    named = tables.history.where(_given() & (f.col("leader_epoch") >= 0))
    return named.groupBy(*PLACE, "leader_epoch", "final").agg(
        f.min("offset").alias("first"), f.max("offset").alias("last"), f.min("time_ns").alias("begin_ns")
    )


def unfenced_reads(tables: Tables) -> DataFrame:
    """The fields of :class:`harness.facts.UnfencedRead`."""
    later = tables.history.where(_given() & (f.col("leader_epoch") > f.col("current_leader_epoch")))
    first = f.min_by(f.struct("leader_epoch", "offset", "index", "time_ns"), "index").alias("first")
    return later.groupBy(*PLACE, f.col("current_leader_epoch").alias("named")).agg(first).select(
        *PLACE, "named", "first.leader_epoch", "first.offset", f.col("first.index").alias("row"), "first.time_ns"
    )  # fmt: skip


def _given() -> Column:
    """Whether a row is a delivery of a record."""
    return (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("topic").isNotNull()
