"""What did each cluster tell its client of leader epochs, high watermarks and log starts?"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.metadata_facts import METADATA_REFUSALS
from spark_analysis.tables import PLACE, Tables


def watermarks(metadata: DataFrame) -> DataFrame:
    """The answers that name a high watermark: rows of the timeline."""
    return metadata.where(f.col("leader_epoch").isNotNull() & f.col("high_watermark").isNotNull())


def highest(metadata: DataFrame) -> DataFrame:
    """``run, topic, partition, told``: the highest high watermark that the cluster told of each partition."""
    return watermarks(metadata).groupBy(*PLACE).agg(f.max("high_watermark").alias("told"))


def metadata_epochs(tables: Tables) -> DataFrame:
    """The fields of :class:`harness.metadata_facts.MetadataEpoch`."""
    return watermarks(tables.metadata).groupBy(*PLACE, "leader_epoch").agg(
        f.min("high_watermark").alias("lowest"),
        f.max("high_watermark").alias("highest"),
        f.min("time_ns").alias("first_ns"),
        f.max("time_ns").alias("last_ns"),
    )  # fmt: skip


def told_starts(tables: Tables) -> DataFrame:
    """The fields of :class:`harness.metadata_facts.ToldStart`."""
    told = tables.metadata.where(f.col("log_start_offset") > 0)
    highest = f.max(f.struct("log_start_offset", -f.col("sequence"), "time_ns")).alias("told")
    acknowledged = tables.history.where((f.col("f") == "send") & (f.col("type") == "ok"))
    lowest = acknowledged.groupBy(*PLACE).agg(f.min("offset").alias("acknowledged"))
    return told.groupBy(*PLACE).agg(highest).join(lowest, on=list(PLACE), how="left").select(
        *PLACE,
        f.col("told.log_start_offset").alias("log_start"),
        (-f.col("told.col2")).alias("row"),
        f.col("told.time_ns").alias("time_ns"),
        "acknowledged",
    )  # fmt: skip


def metadata_refusals(tables: Tables) -> DataFrame:
    """The fields of :class:`harness.metadata_facts.MetadataRefusal`."""
    refusals = [
        tables.metadata.select(
            "run", f.lit(asked).alias("asked"), f.get_json_object("detail", f"$.{key}").alias("refused")
        )
        for asked, key in METADATA_REFUSALS.items()
    ]
    said = reduce(DataFrame.unionByName, refusals).where(f.col("refused").isNotNull())
    return said.groupBy("run", "asked", "refused").agg(f.count("*").alias("samples"))
