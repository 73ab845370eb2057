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
    return _ranked(found, "excuse").where(f.col("rank") <= KEPT_PER_GROUP).drop("rank")


def deleted_together(found: DataFrame, partitions: DataFrame) -> DataFrame:
    """The last of the findings that one deletion may excuse; see ``checkers.reference.deleted_together``.

    Args:
        found: every finding, with the columns of ``harness.findings.COLUMNS``.
        partitions: from :func:`spark_analysis.partitions.partitions`.
    """
    starts = f.broadcast(partitions.select(*PLACE, "log_starts"))
    deleted = found.where(f.col("excuse") == "retention").join(starts, on=list(PLACE), how="left")
    before = f.size(f.filter("log_starts", lambda start: start <= f.col("offset")))
    numbered = deleted.withColumn("before", f.when(f.col("offset").isNotNull(), before)).drop("log_starts")
    return _ranked(numbered, "before").where(f.col("rank") == f.col("total")).drop("rank", "before")


def _ranked(found: DataFrame, *columns: str) -> DataFrame:
    """The findings with their ``rank`` among those of the same kind, partition and columns, and their totals."""
    group = Window.partitionBy(*PLACE, "kind", *columns)
    order = [f.col(name).asc_nulls_last() for name in _ORDER]
    of_groups = {
        "total": f.count("*"),
        "earliest_ns": f.min("time_ns"),
        "latest_ns": f.max("time_ns"),
        "earliest_since_ns": f.min("since_ns"),
        "latest_since_ns": f.max("since_ns"),
    }
    totals = {name: column.over(group) for name, column in of_groups.items()}
    return found.withColumn("rank", f.row_number().over(group.orderBy(*order))).withColumns(totals)
