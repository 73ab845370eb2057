"""Which values are at two offsets of their partition?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE
from spark_analysis.views import Views, findings


def duplicates(views: Views) -> DataFrame:
    """``duplicate``, as ``checkers.no_duplicates`` defines it."""
    twice = views.records.where(f.col("value").isNotNull() & (f.col("lowest") < f.col("highest")))
    values = twice.groupBy(*PLACE, "value").agg(
        f.min("lowest").alias("lowest"), f.max("highest").alias("highest"), f.min("seen_row").alias("row")
    )
    return findings(values, "duplicate", offset="lowest", value="value", row="row", other_offset="highest")
