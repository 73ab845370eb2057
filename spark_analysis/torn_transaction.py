"""Which transactions were visible too early, or not as a whole?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.leadership import gave_up_of, may_be_deleted
from spark_analysis.partitions import missing
from spark_analysis.question import Question
from spark_analysis.records import UNKNOWN, is_proof
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Partitions, Records, findings, with_partitions
from spark_analysis.wrong_marker import wrong_markers


def torn_transactions(tables: Tables, records: Records, partitions: Partitions) -> DataFrame:
    """``precommitted-read`` and ``torn-transaction``, as ``checkers.torn_transaction`` defines them.

    With them the kinds about markers; see :func:`spark_analysis.wrong_marker.unmarked_transactions`.
    """
    seen = _precommitted(tables.history).unionByName(_torn(records, partitions))
    return seen.unionByName(wrong_markers(tables, records, partitions))


def _precommitted(history: DataFrame) -> DataFrame:
    committed = f.coalesce("isolation", f.lit("read_committed")) != "read_uncommitted"
    reading = (f.col("f") == "poll") & (f.col("type") != "invoke") & committed
    known = f.struct(f.col("index").alias("row"), "offset", "leader_epoch", "time_ns", "process")
    own = history.where(f.col("txn") & f.col("value").isNotNull()).groupBy(*PLACE, "op", "value")
    both = own.agg(f.max(f.col("f") == "send").alias("sent"), f.min(f.when(reading, known)).alias("read"))
    columns = ("offset", "leader_epoch", "row", "time_ns", "process")
    return findings(
        both.where(f.col("sent") & f.col("read").isNotNull()),
        "precommitted-read",
        value="value",
        **{name: f"read.{name}" for name in columns},
    )


def _torn(records: Records, partitions: Partitions) -> DataFrame:
    mine = records.unsettled.where(f.col("txn_op").isNotNull() & (f.col("sent") == UNKNOWN))
    values = mine.groupBy(*PLACE, "value", "txn_op").agg(
        f.when(is_proof(), f.min("committed_row")).alias("seen"),
        f.max(f.col("aborted_ns").isNotNull()).alias("aborted"),
        f.min("invoked_ns").alias("since_ns"),
        f.max(f.col("value_committed_row").isNotNull() | f.col("final_offset").isNotNull()).alias("there"),
        f.max(f.col("value_read_row").isNotNull()).alias("given"),
        f.min(f.when(f.col("unended_row").isNotNull() | f.col("read_row").isNotNull(), f.col("offset"))).alias(
            "known_offset"
        ),
        f.max(f.struct("send_row", "sent_ns", "sender")).alias("send"),
    )
    sibling = f.min(f.when(f.col("seen").isNotNull(), f.struct("seen", "value")))
    whole = values.withColumn("sibling", sibling.over(Window.partitionBy("run", "txn_op")))
    torn = whole.where(f.col("sibling").isNotNull() & ~f.col("there"))
    gone = missing(f.lit(None).cast("bigint"), read=f.lit(True)) | missing(f.col("known_offset"), read=f.col("given"))
    return findings(
        with_partitions(torn, partitions).where(gone),
        "torn-transaction",
        offset="known_offset",
        value="value",
        excuse=_excuse(),
        row="send.send_row",
        time_ns="send.sent_ns",
        process="send.sender",
        other_value="sibling.value",
        since_ns="since_ns",
    )


def _excuse() -> Column:
    known_offset, since_ns = f.col("known_offset"), f.col("since_ns")
    deleted = may_be_deleted(known_offset, since_ns)
    given_up = f.when(gave_up_of(known_offset, since_ns), "unclean")
    return f.when(f.col("aborted"), "unclean").when(deleted, "retention").otherwise(given_up)


QUESTIONS = (Question(torn_transactions, about="txn"),)
