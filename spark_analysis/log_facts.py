"""What does each replica's log hold of each leader epoch, and of each producer?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE


def log_epochs(replica_logs: DataFrame) -> DataFrame:
    """The records of each leader epoch, with the fields of :class:`spark_analysis.facts.LogEpoch`."""
    return replica_logs.groupBy(*PLACE, "node", "leader_epoch").agg(
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
        f.count_distinct("offset").alias("offsets"),
        f.count_distinct(f.struct("offset", "value", "batch_base_offset", "batch_crc")).alias("contents"),
    )


def producer_logs(replica_logs: DataFrame) -> DataFrame:
    """Producers with whose records something is wrong: the fields of :class:`spark_analysis.facts.ProducerLog`."""
    numbered = replica_logs.where(f.col("producer_id").isNotNull() & f.col("sequence").isNotNull())
    epoch = f.coalesce("producer_epoch", f.lit(0)).alias("producer_epoch")
    grouped = numbered.groupBy(*PLACE, "node", "producer_id", epoch).agg(
        f.min("sequence").alias("first"),
        f.max("sequence").alias("last"),
        f.count("*").alias("records"),
        f.count_distinct("sequence").alias("sequences"),
        f.min("offset").alias("offset"),
        f.max("offset").alias("until"),
    )
    whose = Window.partitionBy(*PLACE, "node", "producer_id").orderBy("producer_epoch")
    older = f.max("until").over(whose.rowsBetween(Window.unboundedPreceding, -1))
    known = grouped.withColumn("older_until", f.when(older > f.col("offset"), older)).drop("until")
    width = f.col("last") - f.col("first") + 1
    irregular = (f.col("records") != width) | (f.col("sequences") != width)
    return known.where(irregular | f.col("older_until").isNotNull())
