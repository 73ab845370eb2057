"""Which of several readers of a partition tells what is there in the end? See ``checkers.final_reads``."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.answer import QUIET_NS
from spark_analysis.tables import PLACE


def final_readers(told: DataFrame) -> DataFrame:
    """Every process of the final read, once for each of its partitions.

    Args:
        told: what clients did, from :func:`spark_analysis.tally.tally`, as far as it is well formed.

    Returns:
        ``run, topic, partition, process, first, reach, exhausted``: the fields of ``checkers.final_reads.FinalReader``.
    """
    rows = told.where(f.col("final") & (f.col("type") == "ok"))
    named = f.col("topic").isNotNull()
    empty = ~named & (f.col("f") == "poll")
    of_process = Window.partitionBy("run", "process")
    last = {name: f.max(f.when(which, f.col("last_ns"))) for name, which in (("given", named), ("empty", empty))}
    known = rows.withColumns({name: time_ns.over(of_process) for name, time_ns in last.items()}).where(named)
    came = f.max("offset").isNotNull() & f.max(f.col("empty") - f.col("given") >= QUIET_NS)
    return known.groupBy(*PLACE, "process").agg(
        f.min("first").alias("first"),
        f.coalesce(f.max("offset") + 1, f.lit(0)).alias("reach"),
        f.coalesce(came, f.lit(False)).alias("exhausted"),
    )


def superseding(told: DataFrame, leaders: DataFrame) -> DataFrame:
    """With which row the final read of each partition begins: ``run, topic, partition, since``."""
    ends = leaders.select(*PLACE, f.col("leader.high_watermark").alias("watermark"))
    known = final_readers(told).join(ends, on=list(PLACE), how="left")
    enough = f.least(f.max("reach").over(Window.partitionBy(*PLACE)), "watermark")
    ended = (f.col("reach") >= f.col("enough")) | f.col("exhausted")
    return known.withColumn("enough", enough).where(ended).groupBy(*PLACE).agg(f.max("first").alias("since"))


def superseded(history: DataFrame, begun: DataFrame) -> DataFrame:
    """``history``, in which of every partition only those rows are final that are in its final read.

    Args:
        history: the table.
        begun: from :func:`superseding`.
    """
    joined = history.join(f.broadcast(begun), on=list(PLACE), how="left")
    final = f.col("final") & (f.col("topic").isNull() | (f.col("index") >= f.coalesce("since", f.lit(0))))
    return joined.withColumn("final", final).select(*history.columns)
