"""Which transactions are closed by the wrong marker, or by no marker?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.question import Question
from spark_analysis.records import FAILED, OK, is_proof
from spark_analysis.tables import PLACE, Tables
from spark_analysis.transaction_markers import transaction_ends
from spark_analysis.views import Partitions, Records, findings


def wrong_markers(tables: Tables, records: Records, partitions: Partitions) -> DataFrame:
    """``wrong-marker`` and ``open-transaction``, as ``checkers.wrong_marker`` defines them."""
    sends = records.unsettled.where(f.col("txn_op").isNotNull()).groupBy(*PLACE, "value", "txn_op")
    known = sends.agg(
        f.max("sent").alias("sent"),
        is_proof().alias("read"),
        f.min("invoked_ns").alias("invoked_ns"),
        f.max(f.struct("send_row", "sent_ns", "sender")).alias("send"),
    )
    whole = Window.partitionBy("run", "txn_op")
    known_committed = (f.col("sent") == OK) | ((f.col("sent") != FAILED) & f.col("read"))
    written = transaction_ends(tables.replica_logs, partitions.rows)
    both = known.withColumn("known_committed", f.max(known_committed).over(whole)).join(
        written, on=[*PLACE, "value"], how="inner"
    )
    failed = f.max(f.col("sent") == FAILED).over(whole)
    instead = f.col("instead_ns").isNotNull()
    own = f.max((f.col("closed") == "commit") & ~instead).over(whole)
    committed = f.col("known_committed") | f.coalesce(own, f.lit(False))
    ended = both.withColumn("ended", f.when(failed, "abort").when(committed, "commit"))
    wrong = f.when(f.col("closed").isNull(), "open-transaction").when(f.col("closed") != f.col("ended"), "wrong-marker")
    given_up = f.when(f.col("closed").isNull(), f.col("later")).otherwise(instead)
    excused = f.when(f.col("closed").isNotNull(), instead)  # an open one is named whether it is excused or not
    names = ("excused", "offset", "value", "logged", "closed", "closed_at", "given_up", "send", "invoked_ns")
    firsts = (
        ended.withColumns({"kind": wrong, "excused": excused, "given_up": given_up})
        .where(f.col("kind").isNotNull())
        .groupBy(*PLACE, "txn_op", "kind")
    )
    return _answers(firsts.agg(f.min(f.struct(*names)).alias("first")))


def _answers(firsts: DataFrame) -> DataFrame:
    unclosed = f.col("kind") == "open-transaction"
    return findings(
        firsts,
        f.col("kind"),
        offset="first.offset",
        value="first.value",
        leader_epoch="first.logged",
        excuse=f.when(f.col("first.given_up"), "unclean"),
        row="first.send.send_row",
        time_ns="first.send.sent_ns",
        process="first.send.sender",
        other_offset="first.closed_at",
        since_ns="first.invoked_ns",
        committed=f.when(~unclosed, f.col("first.closed") == "abort"),
    )


QUESTIONS: tuple[Question, ...] = ()
"""None of its own: :mod:`spark_analysis.torn_transaction` answers with these, too."""
