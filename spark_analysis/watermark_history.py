"""When had the leaders of a partition first reported which high watermark?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.blocks import Earlier, with_earlier
from spark_analysis.tables import PLACE


def watermarks(timeline: DataFrame) -> DataFrame:
    """Every high watermark that a leader has reported: ``run, topic, partition, mark, reported_ns``."""
    leading = (f.col("kind") == "state") & (f.col("role") == "leader") & f.col("topic").isNotNull()
    marks = timeline.where(leading & f.col("high_watermark").isNotNull())
    return marks.select(*PLACE, f.col("high_watermark").alias("mark"), f.col("time_ns").alias("reported_ns"))


def with_passing(rows: DataFrame, marks: DataFrame, number: str, *, blocks: bool) -> DataFrame:
    """``rows`` with ``passed_ns``: when a leader had first reported a high watermark above them; null: never.

    Args:
        rows: has ``run, topic, partition``.
        marks: from :func:`watermarks`.
        number: the column of ``rows`` that holds an offset.
        blocks: whether there may be so many that they must be cut into blocks.
    """
    both = rows.withColumn("mark", f.col(number)).unionByName(marks, allowMissingColumns=True)
    earliest = {"passed_ns": Earlier(f.col("reported_ns"), "least")}
    known = with_earlier(both, PLACE, "mark", earliest, descending=True, blocks=blocks)
    return known.where(f.col("reported_ns").isNull()).drop("mark", "reported_ns")


def had_passed(by_ns: Column) -> Column:
    """Whether a leader had reported a high watermark above the row by then; needs ``passed_ns``."""
    return f.coalesce(f.col("passed_ns") <= by_ns, f.lit(False))
