"""Which transactions are closed by the wrong marker, or by none?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.records import FAILED, OK
from spark_analysis.tables import PLACE
from spark_analysis.views import Views, findings, with_partitions


def unmarked_transactions(views: Views) -> DataFrame:
    """``wrong-marker`` and ``open-transaction``, as ``checkers.transactions_are_marked`` defines them."""
    sends = views.records.where(f.col("txn_op").isNotNull()).groupBy(*PLACE, "value", "txn_op")
    known = sends.agg(
        f.max("sent").alias("sent"),
        f.min("value_committed_row").alias("read"),
        f.max(f.struct("send_row", "sent_ns", "sender")).alias("send"),
    )
    whole = Window.partitionBy("run", "txn_op")
    told = (f.col("sent") == OK) | ((f.col("sent") != FAILED) & f.col("read").isNotNull())
    both = known.withColumn("told", f.max(told).over(whole)).join(_written(views), on=[*PLACE, "value"], how="inner")
    failed = f.max(f.col("sent") == FAILED).over(whole)
    committed = f.col("told") | f.coalesce(f.max(f.col("closed") == "commit").over(whole), f.lit(False))
    ended = both.withColumn("ended", f.when(failed, "abort").when(committed, "commit"))
    wrong = f.when(f.col("closed").isNull(), "open-transaction").when(f.col("closed") != f.col("ended"), "wrong-marker")
    first = f.min(f.struct("offset", "value", "logged", "closed", "later", "send")).alias("first")
    firsts = ended.withColumn("kind", wrong).where(f.col("kind").isNotNull()).groupBy(*PLACE, "txn_op", "kind")
    return _answers(firsts.agg(first))


def _answers(firsts: DataFrame) -> DataFrame:
    unclosed = f.col("kind") == "open-transaction"
    return findings(
        firsts,
        f.col("kind"),
        offset="first.offset",
        value="first.value",
        leader_epoch="first.logged",
        excuse=f.when(unclosed & f.col("first.later"), "unclean"),
        row="first.send.send_row",
        time_ns="first.send.sent_ns",
        process="first.send.sender",
        committed=f.when(~unclosed, f.col("first.closed") == "abort"),
    )


def _written(views: Views) -> DataFrame:
    """The records in the final leaders' logs that have a producer.

    Returns:
        ``run, topic, partition, value, offset, logged`` (the leader epoch), ``closed`` (by which marker) and ``later``:
        an unclean election began a later epoch.
    """
    logs = views.tables.replica_logs.where(f.col("producer_id").isNotNull()).withColumnRenamed("leader_epoch", "logged")
    own = with_partitions(logs, views).where(f.col("node") == f.col("leader.node"))
    following = Window.partitionBy(*PLACE, "producer_id").orderBy("offset").rangeBetween(1, Window.unboundedFollowing)
    marker = f.min(f.when(f.col("control").isNotNull(), f.struct("offset", "control"))).over(following)
    known = own.withColumn("closed", marker["control"]).where(f.col("control").isNull() & f.col("value").isNotNull())
    return known.select(*PLACE, "value", "offset", "logged", "closed", _later().alias("later"))


def _later() -> Column:
    return f.exists("unclean", lambda election: election["leader_epoch"] > f.col("logged"))
