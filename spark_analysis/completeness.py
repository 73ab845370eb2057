"""Counts the rows of runs, and summarizes nodes' lives and replicas: is the evidence complete?"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.blocks import different, merged, word_of
from spark_analysis.disorder import number_of, pairs
from spark_analysis.hw_regression import accounted, acks_and_leaders
from spark_analysis.metadata import highest
from spark_analysis.records import ALL, NO_ACKS
from spark_analysis.tables import PLACE, Tables, united
from spark_analysis.views import Activity, LogWords, Partitions, Records, Scale


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


def replicas(tables: Tables, words: LogWords) -> DataFrame:
    """The replicas that have a ``final`` row or a log, with the fields of ``answer.ReplicaEnd``."""
    final = tables.timeline.where((f.col("kind") == "final") & f.col("topic").isNotNull())
    bounds = ("high_watermark", "log_end_offset", "log_start_offset")
    ends = final.groupBy(*PLACE, "node").agg(*[f.max(name).alias(name) for name in bounds])
    keys = [*PLACE, "node"]
    whole = merged(words.rows, keys)
    held = whole.groupBy(*keys).agg(
        f.sum("rows").alias("records"),
        f.sum(different()).alias("offsets"),
        f.min("low").alias("first"),
        f.max("high").alias("last"),
    )
    return ends.join(held, on=keys, how="full").fillna(0, ["records", "offsets"])


def counts(tables: Tables, activity: Activity, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    """How much there is of everything: ``run, name, number``, for the names of ``answer.COUNTS``."""
    parts = [_history_counts(activity.done), *_acks_below_watermarks(tables, activity, records, partitions, scale)]
    if activity.disorder is not None:
        parts.append(activity.disorder)
    if "record" in activity.uses:
        several = records.unsettled.where(f.col("first_step") < f.col("last_step")).select(*PLACE, "value").distinct()
        parts.append(pairs(several, {"resent_values": f.count("*")}))
        parts.append(_mismatched(tables, records))
    return united(parts)


def _mismatched(tables: Tables, records: Records) -> DataFrame:
    """The ends of sends whose partition or value differs from their invocations'; no such record is settled."""
    sends = tables.history.where(f.col("f") == "send")
    if records.settled is not None:
        named = sends.join(records.unsettled.select(*PLACE, "value").distinct(), on=[*PLACE, "value"], how="left_semi")
        sends = sends.join(named.select("run", "op").distinct(), on=["run", "op"], how="left_semi")
    invoked, what = f.col("type") == "invoke", f.struct("topic", "partition", "value")
    steps = sends.groupBy("run", "op", "mop").agg(
        f.collect_set(f.when(invoked, what)).alias("begun"),
        f.collect_list(f.when(~invoked, f.struct("index", what.alias("what")))).alias("ended"),
    )
    others = f.filter("ended", lambda end: ~f.array_contains("begun", end["what"]))
    found = steps.where(f.size("begun") > 0).select("run", f.explode(others).alias("end"))
    rows = found.select("run", f.col("end.index").alias("row"))
    return pairs(rows, {"mismatched_ends": f.count("*"), "mismatched_row": f.min("row")})


def _history_counts(done: DataFrame) -> DataFrame:
    f_, kind, final = f.col("f"), f.col("type"), f.col("final")
    send, poll, invoked, ok = f_ == "send", f_ == "poll", kind == "invoke", kind == "ok"
    read = poll & ok & f.col("topic").isNotNull()
    of = {
        "history_rows": f.lit(True),
        "close_rows": f_ == "close",
        "sends": send & invoked,
        "sends_ok": send & ok,
        "sends_fail": send & (kind == "fail"),
        "acks_all": send & (f.col("acks") == ALL),
        "acks_leader": send & (f.col("acks") == 1),
        "acks_none": send & (f.col("acks") == 0),
        "polls": poll & invoked,
        "subscriptions": (f_ == "subscribe") & invoked,
        "partitions_given": (f_ == "assigned") & (kind == "info"),
        "crashes": (f_ == "crash") & invoked,
        "programs": (f_ == "reached") & invoked,
        "outputs": (f_ == "output") & ok & final,
        "final_poll_rows": poll & ok & final,
        "polled_records": read & ~final,
        "final_records": read & final,
        "acked_all": send & ok & f.col("known") & (f.col("acks") == ALL),
        "acked_nowhere": send & ok & ~f.col("known") & (f.col("acks") != NO_ACKS) & ~f.col("txn"),
        "malformed_rows": f.col("malformed"),
    }
    numbers = {name: f.coalesce(f.sum(f.when(condition, f.col("rows"))), f.lit(0)) for name, condition in of.items()}
    last = f.max("index") - f.max(f.when(f_ == "close", f.col("index")))
    return pairs(done, {**numbers, "rows_after_close": f.coalesce(last, f.lit(0))})


def _acks_below_watermarks(
    tables: Tables, activity: Activity, records: Records, partitions: Partitions, scale: Scale
) -> Iterator[DataFrame]:
    ever = f.exists("terms", lambda term: term["high_watermark"] > f.col("offset"))
    numbers = {
        "acked_below_high_watermark": number_of(
            f.col("justified") | f.coalesce(f.col("told") > f.col("offset"), f.lit(False))
        ),
        "acked_unaccounted": number_of(~ever & ~accounted()),
    }
    parts = []
    if "record" in activity.uses:
        acks = acks_and_leaders(tables, records, partitions, scale)
        acks = acks.join(f.broadcast(highest(tables.metadata)), on=list(PLACE), how="left")
        if records.settled is not None:
            acks = acks.withColumn("word", word_of("offset"))
            acks = acks.join(records.settled.where("settled"), on=[*PLACE, "word"], how="left_anti")
        parts.append(pairs(acks, numbers))
    if records.settled is not None:
        below = records.settled.where("settled").groupBy("run")
        name, number = f.lit("acked_below_high_watermark").alias("name"), f.sum("acked").alias("number")
        parts.append(below.agg(name, number))
    yield united(parts).groupBy("run", "name").agg(f.sum("number").alias("number"))
