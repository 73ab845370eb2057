"""Which records did a group pass without giving them to any of its members?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.group_commits import WHOSE, automatic, commits
from spark_analysis.leadership import deleted_to
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.transaction_markers import transaction_ends
from spark_analysis.views import Partitions, Scale, findings, with_partitions


def group_skips(tables: Tables, partitions: Partitions, scale: Scale) -> DataFrame | None:
    """``group-skip``, as ``checkers.group_skip`` defines it."""
    history = tables.history
    judged = with_partitions(_furthest(history), partitions).where(f.col("leader").isNotNull())
    passed = f.broadcast(judged.select(*WHOSE, f.col("commit.offset").alias("until"), "leader"))
    polled = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("topic").isNotNull()
    given = history.where(polled & f.col("group").isNotNull()).select(
        *WHOSE, "offset", "value", f.col("leader_epoch").alias("epoch")
    )
    held = (
        tables.replica_logs.where(f.col("value").isNotNull())
        .join(passed, on=list(PLACE), how="inner")
        .where((f.col("node") == f.col("leader.node")) & (f.col("offset") < f.col("until")))
        .select(*WHOSE, "offset", "value", "leader_epoch")
    )
    same = f.col("epoch").isNull() | (f.col("leader_epoch") < 0) | (f.col("epoch") == f.col("leader_epoch"))
    last = (
        held.join(given, on=[*WHOSE, "offset", "value"], how="inner")
        .where(same)
        .groupBy(*WHOSE)
        .agg(f.max("offset").alias("last"))
    )
    skipped = (
        held.join(f.broadcast(last), on=list(WHOSE), how="inner")
        .where(f.col("offset") < f.col("last"))
        .join(given.select(*WHOSE, "offset"), on=[*WHOSE, "offset"], how="left_anti")
        .groupBy(*WHOSE, "offset", "last")
        .agg(f.min(f.struct("value", "leader_epoch")).alias("record"))
        .withColumn("value", f.col("record.value"))
    )
    if scale.large:
        skipped = scale.hold(skipped, few=True)
        if skipped.isEmpty():
            return None
    readable = _readable(skipped, tables, partitions)
    found = readable.join(f.broadcast(judged.select(*WHOSE, "commit", "deleted")), on=list(WHOSE), how="inner")
    return findings(
        found,
        "group-skip",
        offset="offset",
        value="value",
        leader_epoch=f.when(f.col("record.leader_epoch") >= 0, f.col("record.leader_epoch")),
        excuse=f.when(f.col("offset") < deleted_to(f.col("commit.time_ns")), "retention"),
        row="commit.index",
        time_ns="commit.time_ns",
        process="commit.process",
        other_offset="last",
        until="commit.offset",
    )


def _readable(skipped: DataFrame, tables: Tables, partitions: Partitions) -> DataFrame:
    """``skipped`` without the records of transactions that a group may leave out."""
    named, placed = (f.broadcast(skipped.select(*PLACE, *more).distinct()) for more in (["value"], []))
    sent = tables.history.where(f.col("f") == "send").join(named, on=[*PLACE, "value"], how="left_semi")
    acked = f.max(f.col("type") == "ok").alias("acked")
    sends = sent.groupBy(*PLACE, "value").agg(f.max("txn").alias("txn"), acked).where("txn")
    logs = tables.replica_logs.join(placed, on=list(PLACE), how="left_semi")
    closed = transaction_ends(logs, partitions.rows.where(f.size("unclean") == 0)).where(f.col("closed") == "commit")
    committed = closed.select(*PLACE, "offset", "value", f.lit(True).alias("committed")).distinct()
    known = skipped.join(f.broadcast(sends), on=[*PLACE, "value"], how="left").join(
        f.broadcast(committed), on=[*PLACE, "offset", "value"], how="left"
    )
    return known.where(f.col("txn").isNull() | (f.col("acked") & f.coalesce("committed", f.lit(False))))


def _furthest(history: DataFrame) -> DataFrame:
    """By group and partition, the row that shows the highest commit; without those that others committed."""
    of_members = f.col("begin.generation").isNotNull()
    acked = f.when(
        of_members & (f.col("end.type") == "ok"),
        f.struct("end.offset", (-f.col("end.index")).alias("back"), "end.index", "end.time_ns", "end.process"),
    )
    known = commits(history).where(f.col("begin.group").isNotNull()).withColumn("group", f.col("begin.group"))
    others = ~of_members & (f.col("end.type") != "fail")
    told = (
        history.where((f.col("f") == "committed") & (f.col("type") == "ok") & f.col("offset").isNotNull())
        .join(automatic(history), on=list(WHOSE), how="left_semi")
        .withColumn("shown", f.struct("offset", (-f.col("index")).alias("back"), "index", "time_ns", "process"))
    )
    shown = known.select(*WHOSE, acked.alias("shown"), others.alias("others")).unionByName(
        told.select(*WHOSE, "shown", f.lit(False).alias("others"))
    )
    return (
        shown.groupBy(*WHOSE)
        .agg(f.max("shown").alias("commit"), f.max("others").alias("others"))
        .where(f.col("commit").isNotNull() & ~f.col("others"))
    )


QUESTIONS = (Question(group_skips, about="commit"),)
