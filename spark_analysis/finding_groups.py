"""The first findings of each group, with the totals of the group."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.findings import KEPT_PER_GROUP
from spark_analysis.tables import PLACE

_ORDER = ("offset", "value", "leader_epoch", "row", "node", "incarnation", "other_node")


def first_of_groups(found: DataFrame) -> DataFrame:
    """The first findings of each kind, partition and excuse: the fields of :class:`harness.findings.Finding`.

    ``found``: every finding, with the columns of ``harness.findings.COLUMNS``.
    """
    return _first(found, KEPT_PER_GROUP, "excuse")


def deleted_together(found: DataFrame, partitions: DataFrame) -> DataFrame:
    """Of the findings that a deletion may excuse the first of each deletion, see ``checkers.deleted_together``.

    Args:
        found: every finding, with the columns of ``harness.findings.COLUMNS``.
        partitions: from :func:`spark_analysis.partitions.partitions`.
    """
    starts = f.broadcast(partitions.select(*PLACE, "log_starts"))
    deleted = found.where(f.col("excuse") == "retention").join(starts, on=list(PLACE), how="left")
    before = f.size(f.filter("log_starts", lambda start: start <= f.col("offset")))
    numbered = deleted.withColumn("before", f.when(f.col("offset").isNotNull(), before)).drop("log_starts")
    return _first(numbered, 1, "before").drop("before")


def _first(found: DataFrame, number: int, *columns: str) -> DataFrame:
    """The first findings of each kind, partition, and value of more columns, with the totals of those."""
    group = Window.partitionBy(*PLACE, "kind", *columns)
    order = [f.col(name).asc_nulls_last() for name in _ORDER]
    ranked = found.withColumn("rank", f.row_number().over(group.orderBy(*order)))
    of_groups = {
        "total": f.count("*"),
        "earliest_ns": f.min("time_ns"),
        "latest_ns": f.max("time_ns"),
        "earliest_since_ns": f.min("since_ns"),
        "latest_since_ns": f.max("since_ns"),
    }
    counted = ranked.withColumns({name: column.over(group) for name, column in of_groups.items()})
    return counted.where(f.col("rank") <= number).drop("rank")
