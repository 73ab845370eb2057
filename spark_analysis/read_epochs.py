"""Which leader epochs did the final read, and the other polls, name, and from where to where?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE


def read_epochs(history: DataFrame) -> DataFrame:
    """The fields of :class:`spark_analysis.facts.ReadEpoch`."""
    given = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("topic").isNotNull()
    named = history.where(given & (f.col("leader_epoch") >= 0))
    return named.groupBy(*PLACE, "leader_epoch", "final").agg(
        f.min("offset").alias("first"), f.max("offset").alias("last"), f.min("time_ns").alias("begin_ns")
    )
