"""Which readers of the final read show what a partition holds in the end? See ``checkers.views.final_reads``."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.findings import QUIET_NS
from spark_analysis.tables import PLACE


def final_readers(done: DataFrame, history: DataFrame | None) -> DataFrame:
    """Every process of the final read, once for each of its partitions.

    Args:
        done: what clients did, from :func:`spark_analysis.tally.tally`, as far as it is well formed.
        history: the table, as far as it is well formed; None: no poll of the final read was empty.

    Returns:
        ``run, topic, partition, process, first, last, reach, stalled, quiet, exhausted``: the fields of
        ``checkers.views.final_reads.FinalReader``.
    """
    final = done.where("final")
    named = (f.col("type") == "ok") & f.col("topic").isNotNull()
    broken = (f.col("f") == "poll") & f.col("type").isin("fail", "info")
    known = (
        final.where(named)
        .groupBy(*PLACE, "process")
        .agg(
            f.min("first").alias("first"),
            f.max("index").alias("last"),
            f.coalesce(f.max("offset") + 1, f.lit(0)).alias("reach"),
        )
    )
    quiet_ns = f.lit(None).cast("bigint")
    if history is not None:
        busy = final.where(named | broken).groupBy("run", "process").agg(f.max("last_ns").alias("busy_ns"))
        nothing = (f.col("f") == "poll") & (f.col("type") == "ok") & f.col("topic").isNull() & f.col("final")
        since = history.where(nothing).select("run", "process", "time_ns").join(busy, on=["run", "process"])
        polls = since.where(f.col("time_ns") > f.col("busy_ns")).groupBy("run", "process")
        span = (f.max("time_ns") - f.min("time_ns")).alias("span_ns")
        known, quiet_ns = known.join(polls.agg(span), on=["run", "process"], how="left"), f.col("span_ns")
    quiet = f.coalesce(quiet_ns >= QUIET_NS, f.lit(False))
    return known.select(
        *PLACE, "process", "first", "last", "reach",
        quiet_ns.isNotNull().alias("stalled"),
        quiet.alias("quiet"),
        (quiet & (f.col("reach") > 0)).alias("exhausted"),
    )  # fmt: skip


def ended(readers: DataFrame, leaders: DataFrame) -> DataFrame:
    """The readers that show what each partition holds in the end.

    Args:
        readers: from :func:`final_readers`.
        leaders: from :func:`spark_analysis.leadership.leadership`.

    Returns:
        ``run, topic, partition, since, exhausted_at, short``: the fields of ``checkers.views.final_reads.Ended``, but
        of ``exhausted_at`` only the furthest.
    """
    ends = leaders.select(*PLACE, f.col("leader.high_watermark").alias("watermark"))
    of_place = Window.partitionBy(*PLACE)
    known = readers.join(ends, on=list(PLACE), how="left").withColumn(
        "enough", f.least(f.max("reach").over(of_place), "watermark")
    )
    whole = (f.col("reach") >= f.col("enough")) | f.col("exhausted")
    placed = known.withColumns(
        {f"whole_{name}": f.max(f.when(whole, f.col(name))).over(of_place) for name in ("first", "last")}
    )
    late = (f.col("last") > f.col("whole_last")) & f.col("stalled") & ((f.col("reach") > 0) | f.col("quiet"))
    exhausted = f.col("exhausted") & (f.col("first") >= f.col("whole_first"))
    return placed.groupBy(*PLACE).agg(
        f.max("whole_first").alias("since"),
        f.max(f.when(exhausted, f.col("reach"))).alias("exhausted_at"),
        f.min(f.when(late, f.col("reach"))).alias("short"),
    )


def superseded(history: DataFrame, begun: DataFrame) -> DataFrame:
    """``history``, in which of every partition only those rows are final that are in its final read.

    Scans, and records of a program's output, stay what they are; see ``checkers.views.final_reads.is_superseded``.

    Args:
        history: the table.
        begun: from :func:`ended`.
    """
    since = f.broadcast(begun.select(*PLACE, "since"))
    joined = history.join(since, on=list(PLACE), how="left")
    stays = f.col("topic").isNull() | f.col("f").isin("scan", "output")
    final = f.col("final") & (stays | (f.col("index") >= f.coalesce("since", f.lit(0))))
    return joined.withColumn("final", final).select(*history.columns)
