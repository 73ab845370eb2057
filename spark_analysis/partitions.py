"""How each partition ended: one row per partition, small enough to go everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE, Tables
from spark_analysis.transaction_markers import next_marker


def partitions(
    done: DataFrame,
    log_words: DataFrame,
    leaders: DataFrame,
    final_reads: DataFrame,
    *,
    data_ends: DataFrame | None = None,
    sampled: Sequence[str] = (),
) -> DataFrame:
    """How every partition ended, and how much of it the final read saw.

    Args:
        done: what clients did, from :func:`spark_analysis.tally.tally`.
        log_words: what the replicas' logs hold, from :func:`spark_analysis.log_bitmaps.log_words`.
        leaders: from :func:`spark_analysis.leadership.leadership`.
        final_reads: from :func:`spark_analysis.final_reads.ended`.
        data_ends: from :func:`data_ends`; None: there are no transactions, so logs hold no markers.
        sampled: the runs whose timelines consist of samples of the brokers' states.

    Returns:
        ``run, topic, partition, used, sampled, reached, polled_end, exhausted, short, data_end, complete, leader,
        unclean, terms, deleted, log_starts, marked``. ``used``: clients did something there; ``sampled``: the run is
        one of those; ``marked``: transactions send there, so that markers take offsets. ``reached`` is one more than
        the highest offset that the final read delivered, ``polled_end`` than the highest that any poll did (0: none).
        ``exhausted``, ``short``, ``data_end``: see ``answer.PartitionEnd``. ``complete``: the run has a final
        read, and it saw everything that the final leader had committed. The rest is from ``leaders``; ``unclean``,
        ``terms``, ``deleted`` and ``log_starts`` are never null.
    """
    well_formed = done.where(~f.col("malformed"))
    sending, reading = f.col("f") == "send", (f.col("f") == "poll") & (f.col("type") != "invoke")
    clients = (
        well_formed.where(f.col("topic").isNotNull() & (sending | reading))
        .groupBy(*PLACE)
        .agg(
            f.lit(True).alias("used"),
            f.max(f.when(reading & f.col("final"), f.col("offset") + 1)).alias("reached"),
            f.max(f.when(reading, f.col("offset") + 1)).alias("polled_end"),
            f.max(sending & f.col("txn")).alias("marked"),
        )
    )
    logs = log_words.groupBy(*PLACE).agg(f.lit(True).alias("logged")).drop("logged")
    seen = clients.join(logs, on=list(PLACE), how="full")
    final = (f.col("f") == "poll") & (f.col("type") == "ok") & f.col("final")
    runs_read = well_formed.where(final).groupBy("run").agg(f.lit(True).alias("was_read"))
    joined = seen.join(leaders, on=list(PLACE), how="full").join(f.broadcast(runs_read), on="run", how="left")
    joined = joined.join(final_reads, on=list(PLACE), how="left")
    reached = f.coalesce("reached", f.lit(0))
    watermark, start = f.col("leader.high_watermark"), f.coalesce("leader.log_start_offset", f.lit(0))
    joined = (
        joined.withColumn("data_end", f.lit(None).cast("long"))
        if data_ends is None
        else joined.join(data_ends, on=list(PLACE), how="left")
    )
    read = (reached >= watermark) | f.coalesce(reached >= f.col("data_end"), f.lit(False))
    complete = f.col("was_read").isNotNull() & (read | (watermark <= start))
    return joined.select(
        *PLACE,
        f.coalesce("used", f.lit(False)).alias("used"),
        f.col("run").isin(*sampled).alias("sampled"),
        reached.alias("reached"),
        f.coalesce("polled_end", f.lit(0)).alias("polled_end"),
        f.coalesce(f.col("exhausted_at") == reached, f.lit(False)).alias("exhausted"),
        "short",
        "data_end",
        f.coalesce(complete, f.lit(False)).alias("complete"),
        "leader",
        _or_empty("unclean", leaders),
        _or_empty("terms", leaders),
        _or_empty("deleted", leaders),
        _or_empty("log_starts", leaders),
        f.coalesce("marked", f.lit(False)).alias("marked"),
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


def missing(offset: Column, *, read: Column) -> Column:
    """Whether a record that the final read did not deliver is known not to be there: see ``PartitionEnds.missing``.

    Needs the columns of :func:`partitions`. ``read``: whether a poll delivered the value before.
    """
    unasked = f.col("leader").isNull()
    passed = f.coalesce(offset < f.col("polled_end"), f.lit(False))
    return judged(offset) | (unasked & f.when(read, f.col("exhausted")).otherwise(passed))


def data_ends(tables: Tables, leaders: DataFrame) -> DataFrame:
    """``data_end``, by partition of runs with transactions; see ``answer.PartitionEnd``."""
    runs = tables.history.where("txn").select("run").distinct()
    ends = leaders.select(*PLACE, f.col("leader.node").alias("node"), f.col("leader.high_watermark").alias("bound"))
    bounds = f.broadcast(ends.join(runs, on="run", how="left_semi"))
    below = tables.replica_logs.join(bounds, on=[*PLACE, "node"], how="inner").where(f.col("offset") < f.col("bound"))
    # A record without a producer id, or outside of a transaction, counts by itself.
    producer = f.coalesce("producer_id", -1 - f.col("offset"))
    marker = next_marker(f.col("control"), *PLACE, producer)
    aborted = marker.eqNullSafe("abort") & f.coalesce("transactional", f.lit(True))
    below = below.withColumn("given", f.col("control").isNull() & ~aborted)
    known = below.groupBy(*PLACE, "bound").agg(
        f.count("*").alias("rows"),
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
        f.max(f.when(f.col("given"), f.col("offset") + 1)).alias("data"),
    )
    whole = (f.col("last") + 1 == f.col("bound")) & (f.col("rows") == f.col("last") - f.col("first") + 1)
    return known.where(whole).select(*PLACE, f.coalesce("data", f.lit(0)).alias("data_end"))


def _or_empty(name: str, source: DataFrame) -> Column:
    return f.coalesce(name, f.array().cast(source.schema[name].dataType)).alias(name)
