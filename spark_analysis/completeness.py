"""Is the history whole, and how much is there?"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables
from spark_analysis.unjustified_acks import accounted, acks_and_leaders
from spark_analysis.views import Views


def is_malformed() -> Column:
    """Whether a row of the history lacks what tells what it is about, as ``checkers.rows.is_malformed`` says."""
    lacking = f.col("topic").isNull() | f.col("partition").isNull()
    named = f.col("topic").isNotNull() | f.col("partition").isNotNull()
    unknown = f.col("offset").isNull()
    return (
        f.when(f.col("f") == "send", lacking | f.col("value").isNull() | f.col("acks").isNull())
        .when(f.col("f") == "commit", lacking | unknown)
        .when(f.col("f") == "poll", (named | ~unknown) & (lacking | unknown))
        .otherwise(named & lacking)
    )


def well_formed(history: DataFrame) -> DataFrame:
    """The rows that questions can be asked about."""
    return history.where(~is_malformed())


def history_gaps(history: DataFrame) -> DataFrame:
    """Which rows are missing: ``run, first, end`` (exclusive), one row per gap in the index."""
    before = f.lag("index", 1, -1).over(Window.partitionBy("run").orderBy("index"))
    steps = history.select("run", "index", before.alias("before"))
    return steps.where(f.col("index") > f.col("before") + 1).select(
        "run", (f.col("before") + 1).alias("first"), f.col("index").alias("end")
    )


def lives(timeline: DataFrame) -> DataFrame:
    """The incarnations of every node, with the fields of ``answer.NodeLife``."""
    final = f.col("kind") == "final"
    own = f.when(~final, f.col("sequence"))
    return timeline.groupBy("run", "node", "incarnation").agg(
        f.count(own).alias("rows"),
        f.count_distinct(own).alias("sequences"),
        f.coalesce(f.max(own) + 1, f.lit(0)).alias("expected"),
        f.min(f.when(final, f.col("sequence"))).alias("final_sequence"),
    )


def replicas(tables: Tables) -> DataFrame:
    """The replicas that have a ``final`` row or a log, with the fields of ``answer.ReplicaEnd``."""
    final = tables.timeline.where((f.col("kind") == "final") & f.col("topic").isNotNull())
    bounds = ("high_watermark", "log_end_offset", "log_start_offset")
    ends = final.groupBy(*PLACE, "node").agg(*[f.max(name).alias(name) for name in bounds])
    logs = tables.replica_logs.groupBy(*PLACE, "node").agg(
        f.count("*").alias("records"),
        f.count_distinct("offset").alias("offsets"),
        f.min("offset").alias("first"),
        f.max("offset").alias("last"),
    )
    return ends.join(logs, on=[*PLACE, "node"], how="full").fillna(0, ["records", "offsets"])


def counts(tables: Tables, views: Views) -> DataFrame:
    """How much there is of everything: ``run, name, number``, for the names of ``answer.COUNTS``."""
    parts = [_history_counts(tables.history), _order_counts(tables.history), _acks_below_watermarks(views)]
    return reduce(DataFrame.unionByName, parts)


def _history_counts(history: DataFrame) -> DataFrame:
    f_, kind, final = f.col("f"), f.col("type"), f.col("final")
    send, poll, invoked, ok = f_ == "send", f_ == "poll", kind == "invoke", kind == "ok"
    read = poll & ok & f.col("topic").isNotNull()
    known = f.col("offset").isNotNull()
    numbers = {
        "history_rows": f.count("*"),
        "close_rows": _count(f_ == "close"),
        "sends": _count(send & invoked),
        "sends_ok": _count(send & ok),
        "sends_fail": _count(send & (kind == "fail")),
        "polls": _count(poll & invoked),
        "final_poll_rows": _count(poll & ok & final),
        "polled_records": _count(read & ~final),
        "final_records": _count(read & final),
        "acked_all": _count(send & ok & known & (f.col("acks") == ALL)),
        "repeated_rows": f.count("*") - f.count_distinct("index"),
        "malformed_rows": _count(is_malformed()),
        "rows_after_close": f.coalesce(f.max("index") - f.max(f.when(f_ == "close", f.col("index"))), f.lit(0)),
    }
    return _pairs(history, numbers)


def _order_counts(history: DataFrame) -> DataFrame:
    earlier = f.max("time_ns").over(Window.partitionBy("run").orderBy("index").rangeBetween(-1, -1))
    begun = f.min(f.when(f.col("type") == "invoke", f.col("index"))).over(Window.partitionBy("run", "op"))
    completion = (f.col("type") != "invoke") & (f.col("f") != "close")
    steps = history.withColumn("earlier", earlier).withColumn("begun", begun)
    numbers = {
        "rows_back_in_time": _count(f.col("time_ns") < f.col("earlier")),
        "early_completions": _count(completion & ~f.coalesce(f.col("begun") < f.col("index"), f.lit(False))),
    }
    return _pairs(steps, numbers)


def _count(condition: Column) -> Column:
    return f.count(f.when(condition, 1))


def _acks_below_watermarks(views: Views) -> DataFrame:
    ever = f.exists("terms", lambda term: term["high_watermark"] > f.col("offset"))
    numbers = {
        "acked_below_high_watermark": _count(f.col("justified")),
        "acked_unaccounted": _count(~ever & ~accounted()),
    }
    return _pairs(acks_and_leaders(views), numbers)


def _pairs(rows: DataFrame, numbers: dict[str, Column]) -> DataFrame:
    """``run, name, number`` for every name."""
    grouped = rows.groupBy("run").agg(*[number.alias(name) for name, number in numbers.items()])
    pairs = f.create_map(*[part for name in numbers for part in (f.lit(name), f.col(name))])
    return grouped.select("run", f.explode(pairs).alias("name", "number"))
