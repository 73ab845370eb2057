"""At which consecutive offsets are the findings of each kind?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.findings import RANGES_KEPT
from spark_analysis.tables import PLACE

_GROUP = (*PLACE, "kind", "excuse")


def finding_ranges(found: DataFrame) -> DataFrame:
    """The first ranges of each kind, partition and excuse: the fields of :class:`harness.findings.FindingRange`.

    ``found``: every finding, with the columns of ``harness.findings.COLUMNS``.
    """
    offsets = (
        found.where(f.col("offset").isNotNull())
        .groupBy(*_GROUP, "offset")
        .agg(f.count("*").alias("number"), f.min("value").alias("lowest"), f.max("value").alias("highest"))
    )
    rank = f.row_number().over(Window.partitionBy(*_GROUP).orderBy("offset"))
    ranges = (
        offsets.withColumn("range", f.col("offset") - rank)
        .groupBy(*_GROUP, "range")
        .agg(
            f.min("offset").alias("first"),
            (f.max("offset") + 1).alias("end"),
            f.sum("number").alias("number"),
            f.min("lowest").alias("lowest"),
            f.max("highest").alias("highest"),
        )
    )
    group = Window.partitionBy(*_GROUP)
    counted = ranges.withColumns(
        {
            "rank": f.row_number().over(group.orderBy("first")),
            "ranges": f.count("*").over(group),
            "placed": f.sum("number").over(group),
        }
    )
    return counted.where(f.col("rank") <= RANGES_KEPT).drop("rank", "range")
