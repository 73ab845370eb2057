"""Which marker closes a transaction's record in the final leader's log, and whether another one closed it before."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.leadership import gave_up_some
from spark_analysis.tables import PLACE


def transaction_ends(replica_logs: DataFrame, ends: DataFrame) -> DataFrame:
    """The final leaders' records that have a producer, as ``checkers.views.transaction_markers`` closes them.

    Args:
        replica_logs: the table.
        ends: from :func:`spark_analysis.partitions.partitions`.

    Returns:
        ``run, topic, partition, value, offset, logged`` (the leader epoch), ``closed`` (the marker's kind; null: none),
        ``closed_at`` (the marker's offset), ``instead_ns`` (since when that may have taken another one's place; null:
        it has not) and ``later``: an unclean election began a later epoch.
    """
    columns = ("node", "producer_id", "offset", "control", "value", f.col("leader_epoch").alias("logged"))
    logs = replica_logs.where(f.col("producer_id").isNotNull()).select(*PLACE, *columns)
    leaders = ends.select(*PLACE, f.col("leader.node").alias("node"))
    own = logs.join(f.broadcast(leaders), on=[*PLACE, "node"], how="inner")
    marker = next_marker(f.struct("offset", "control", f.col("logged").alias("epoch")), *PLACE, "producer_id")
    closed = own.withColumn("marker", marker).where(f.col("control").isNull() & f.col("value").isNotNull())
    # What is known of a partition is wide, and sorting would carry it along with every row.
    records = closed.join(f.broadcast(ends), on=list(PLACE), how="inner")
    later = f.exists("unclean", lambda election: election["leader_epoch"] > f.col("logged"))
    return records.select(
        *PLACE, "value", "offset", "logged",
        f.col("marker.control").alias("closed"),
        f.col("marker.offset").alias("closed_at"),
        _instead_ns().alias("instead_ns"),
        later.alias("later"),
    )  # fmt: skip


def next_marker(what: Column, *scope: Column | str) -> Column:
    """``what`` of the first marker behind a row, by ``offset`` within the ``scope``; null: none follows.

    Backwards, for a window of all that follows is read again for each row.
    """
    backwards = Window.partitionBy(*scope).orderBy(f.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    return f.last(f.when(f.col("control").isNotNull(), what), ignorenulls=True).over(backwards)


def replaced(closed: DataFrame) -> DataFrame:
    """The records that a marker closes in the place of another one.

    Returns:
        ``run, topic, partition, value, offset, aborted_ns, recommitted_ns``: since when it is an abort marker, and
        since when a commit marker; null: it is none.
    """
    kinds = {"aborted_ns": "abort", "recommitted_ns": "commit"}
    since = [f.min(f.when(f.col("closed") == kind, f.col("instead_ns"))).alias(name) for name, kind in kinds.items()]
    return closed.where(f.col("instead_ns").isNotNull()).groupBy(*PLACE, "value", "offset").agg(*since)


def _instead_ns() -> Column:
    def caused(election: Column) -> Column:
        between = (election["leader_epoch"] > f.col("logged")) & (election["leader_epoch"] <= f.col("marker.epoch"))
        return between & (f.col("sampled") | f.exists("terms", lambda term: _gave_up_behind(election, term)))

    return f.array_min(f.transform(f.filter("unclean", caused), lambda election: election["time_ns"]))


def _gave_up_behind(election: Column, term: Column) -> Column:
    return (term["leader_epoch"] >= f.col("logged")) & gave_up_some(election, term, f.col("offset") + 1)
