"""How each partition ended: one row per partition, small enough to go everywhere."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE, Tables


def partitions(tables: Tables, all_records: DataFrame, leaders: DataFrame) -> DataFrame:
    """How every partition ended, and how much of it the final read saw.

    Args:
        tables: the tables.
        all_records: from :func:`spark_analysis.records.records`.
        leaders: from :func:`spark_analysis.leadership.leadership`.

    Returns:
        ``run, topic, partition, used, reached, complete, leader, unclean, terms``. ``used``: clients did something
        there. ``reached`` is one more than the highest offset that the final read delivered (0: none). ``complete``:
        the run has a final read, and it saw everything that the final leader had committed. The rest is from
        ``leaders``; ``unclean`` and ``terms`` are never null.
    """
    used = (f.col("sent").isNotNull() | f.col("read_row").isNotNull()).alias("used")
    seen = all_records.groupBy(*PLACE).agg(
        f.max(used).alias("used"), f.max(f.when(f.col("finally"), f.col("offset") + 1)).alias("reached")
    )
    final = (f.col("f") == "poll") & (f.col("type") == "ok") & f.col("final")
    runs_read = tables.history.where(final).groupBy("run").agg(f.lit(True).alias("was_read"))
    joined = seen.join(leaders, on=list(PLACE), how="full").join(f.broadcast(runs_read), on="run", how="left")
    reached = f.coalesce("reached", f.lit(0))
    watermark, start = f.col("leader.high_watermark"), f.coalesce("leader.log_start_offset", f.lit(0))
    complete = f.col("was_read").isNotNull() & ((reached >= watermark) | (watermark <= start))
    return joined.select(
        *PLACE,
        f.coalesce("used", f.lit(False)).alias("used"),
        reached.alias("reached"),
        f.coalesce(complete, f.lit(False)).alias("complete"),
        "leader",
        _or_empty("unclean", leaders),
        _or_empty("terms", leaders),
    )


def judged(offset: Column) -> Column:
    """Whether the final read would have delivered a record at ``offset`` (null: anywhere), had it been there.

    Needs the columns of :func:`partitions`. Records between the final leader's high watermark and its log end are not
    yet readable, so they are not judged.
    """
    watermark, log_end = f.col("leader.high_watermark"), f.coalesce("leader.log_end_offset", f.lit(0))
    unreadable = f.when(offset.isNull(), watermark < log_end).otherwise((offset >= watermark) & (offset < log_end))
    reached = f.coalesce(offset < f.col("reached"), f.lit(False))
    return reached | (f.col("complete") & ~unreadable)


def _or_empty(name: str, source: DataFrame) -> Column:
    return f.coalesce(name, f.array().cast(source.schema[name].dataType)).alias(name)
