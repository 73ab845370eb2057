"""Which members began before the offset that their group had committed?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.history.schema import REBALANCES
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import findings

_OWNED = (*PLACE, "process")
_WHOSE = (*PLACE, "group")


def group_repeats(tables: Tables) -> DataFrame:
    """``group-repeat``, as ``checkers.group_repeat`` defines it."""
    history = tables.history
    placed = history.where(f.col("topic").isNotNull())
    terms = _terms(placed)
    given = placed.where((f.col("f") == "poll") & (f.col("type") != "invoke")).select(
        *_OWNED, f.struct("index", "op", "offset", "value", "leader_epoch", "time_ns").alias("delivery")
    )
    row, op = f.col("delivery.index"), f.col("delivery.op")
    within = (row > f.col("since")) & (f.col("until").isNull() | (row < f.col("until")))
    first = (
        given.join(f.broadcast(terms), on=list(_OWNED), how="inner")
        .where(within & (f.col("new") | (op != f.col("during"))))
        .groupBy(*_OWNED, "group", "since", "since_ns")
        .agg(f.min("delivery").alias("first"))
    )
    is_answer = f.col("f") == "committed"
    counts = (is_answer & (f.col("type") == "ok")) | ((f.col("f") == "commit") & f.col("type").isin("ok", "info"))
    told = placed.where(counts & f.col("group").isNotNull()).select(
        *_WHOSE, f.col("index").alias("at"), f.col("offset").alias("committed"), is_answer.alias("answer")
    )
    answered = (
        first.join(told, on=list(_WHOSE), how="inner")
        .where((f.col("at") > f.col("since")) & (f.col("at") < f.col("first.index")))
        .groupBy(*_OWNED, "group", "first", "since_ns")
        .agg(
            f.min("committed").alias("least"),
            f.max(f.col("committed").isNull()).alias("none"),
            f.max("answer").alias("told"),
        )
        .where(f.col("told") & ~f.col("none") & (f.col("first.offset") < f.col("least")))
    )
    lost = (
        history.where((f.col("f") == "out_of_range") & f.col("group").isNotNull())
        .groupBy("run", "group")
        .agg(f.min("index").alias("lost"))
    )
    found = answered.join(f.broadcast(lost), on=["run", "group"], how="left").where(
        f.col("lost").isNull() | (f.col("first.index") < f.col("lost"))
    )
    return findings(
        found,
        "group-repeat",
        offset="first.offset",
        value="first.value",
        leader_epoch="first.leader_epoch",
        row="first.index",
        time_ns="first.time_ns",
        process="process",
        other_offset="least",
        since_ns="since_ns",
    )


def _terms(placed: DataFrame) -> DataFrame:
    """When a member that names its generation was given a partition, and until when it had it.

    Returns:
        ``run, topic, partition, process, group, since, since_ns, during, until, new``: ``until``: null: to its end;
        ``new``: it had never had the partition.
    """
    order = Window.partitionBy(*_OWNED).orderBy("index")
    moves = placed.where(f.col("f").isin(*REBALANCES)).select(
        *_OWNED, "group", "f", "generation",
        f.col("index").alias("since"),
        f.col("time_ns").alias("since_ns"),
        f.col("op").alias("during"),
        f.lead("index").over(order).alias("until"),
        (f.row_number().over(order) == 1).alias("new"),
    )  # fmt: skip
    known = f.col("group").isNotNull() & f.col("generation").isNotNull()
    return moves.where((f.col("f") == "assigned") & known).drop("f", "generation")


QUESTIONS = (Question(group_repeats, about="move"),)
