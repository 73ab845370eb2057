"""Which answers to lookups by time lie behind a record that is as young, and had been delivered?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.leadership import deleted_to, may_have_lacked, thrown_back
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Partitions, findings, with_partitions


def unfounded_lookups(tables: Tables, partitions: Partitions) -> DataFrame:
    """``unfounded-lookup``, as ``checkers.unfounded_lookup`` defines it."""
    history = tables.history
    asked = f.broadcast(with_partitions(_lookups(history), partitions).where(f.col("leader").isNotNull()))
    polled = history.where((f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("timestamp_ms").isNotNull())
    # Each is compared with every lookup there: of all deliveries of a record the first counts.
    given = polled.groupBy(*PLACE, "offset", "value", "leader_epoch", "timestamp_ms").agg(f.min("index").alias("row"))
    is_before = f.col("answer").isNull() | (f.col("offset") < f.col("answer"))
    as_young = f.col("timestamp_ms") >= f.col("asked_ms")
    left_out = given.join(asked, on=list(PLACE), how="inner").where(
        is_before & as_young & (f.col("row") < f.col("begun"))
    )
    logged = tables.replica_logs.where(f.col("value").isNotNull() & (f.col("leader_epoch") >= 0)).select(
        *PLACE, "offset", "value", "node", f.col("leader_epoch").alias("epoch")
    )
    same = f.col("leader_epoch").isNull() | (f.col("leader_epoch") == f.col("epoch"))
    held = (
        left_out.join(logged, on=[*PLACE, "offset", "value"], how="inner")
        .where((f.col("node") == f.col("leader.node")) & same)
        .where(~may_have_lacked(f.col("epoch"), f.col("begun_ns"), f.col("answered_ns")))
    )
    lookup = (*PLACE, "at", "answered_ns", "consumer", "answer", "unclean", "deleted", "sampled")
    found = held.groupBy(*lookup).agg(f.min(f.struct("offset", "value", "epoch")).alias("record"))
    is_deleted = f.col("record.offset") < deleted_to(f.col("answered_ns"))
    known = f.when(~f.col("sampled"), f.col("record.offset"))
    is_given_up = thrown_back(f.col("record.epoch"), known, f.col("answered_ns"))
    return findings(
        found,
        "unfounded-lookup",
        offset="record.offset",
        value="record.value",
        leader_epoch="record.epoch",
        excuse=f.when(is_deleted, "retention").when(is_given_up, "unclean"),
        row="at",
        time_ns="answered_ns",
        process="consumer",
        other_offset="answer",
    )


def _lookups(history: DataFrame) -> DataFrame:
    """Those that were answered.

    Returns:
        ``run, topic, partition, begun, begun_ns, asked_ms, at, answered_ns, consumer, answer``.
    """
    own = history.where((f.col("f") == "offset_for_time") & f.col("topic").isNotNull())
    begun = own.where((f.col("type") == "invoke") & f.col("timestamp_ms").isNotNull()).select(
        "run",
        "op",
        f.col("index").alias("begun"),
        f.col("time_ns").alias("begun_ns"),
        f.col("timestamp_ms").alias("asked_ms"),
    )
    answered = own.where(f.col("type") == "ok").select(
        *PLACE, "op", f.col("index").alias("at"), f.col("time_ns").alias("answered_ns"),
        f.col("process").alias("consumer"), f.col("offset").alias("answer"),
    )  # fmt: skip
    return answered.join(begun, on=["run", "op"], how="inner").drop("op")


QUESTIONS = (Question(unfounded_lookups, about="lookup"),)
