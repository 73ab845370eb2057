"""Which acknowledged records does the final read not deliver at the offset of their acknowledgement?"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.leadership import given_up, led_during, may_be_deleted
from spark_analysis.partitions import missing
from spark_analysis.question import Question
from spark_analysis.records import ALL, is_hidden
from spark_analysis.tables import PLACE
from spark_analysis.views import Partitions, Records, findings, with_partitions


def lost_writes(records: Records, partitions: Partitions) -> DataFrame:
    """``lost-write``, as ``checkers.lost_write`` defines it."""
    survives = f.when(f.col("offset").isNull(), f.col("final_offset").isNotNull()).otherwise(f.col("finally"))
    gone = records.unsettled.where(f.col("ack_row").isNotNull() & ~survives)
    lost = with_partitions(gone, partitions).where(missing(f.col("offset"), read=f.col("value_read_row").isNotNull()))
    return findings(
        with_authors(lost),
        "lost-write",
        offset="offset",
        value="value",
        leader_epoch="known_epoch",
        excuse=excuse(hidden=True),
        row="ack_row",
        time_ns="acked_ns",
        process="process",
        acks="acks",
        node="author.node",
        other_offset="final_offset",
        other_value=f.when(f.col("offset").isNotNull(), f.col("final_value")),
        committed="committed",
        since_ns="invoked_ns",
        by_ns=f.when(f.col("instead_ns").isNotNull(), f.greatest("instead_ns", "acked_ns")),
    )


def with_authors(lost: DataFrame) -> DataFrame:
    """Records with the leaders that can have appended them, their epochs, and whether they had been committed.

    Returns:
        ``lost`` with ``able, author, known_epoch, own, committed``.
    """
    known = lost.withColumn("able", f.filter("terms", _could_append))
    authored = known.withColumn("author", f.when((f.size("able") == 1) & ~f.col("sampled"), f.col("able")[0]))
    epoch = f.when(f.col("offset").isNotNull(), f.coalesce("logged_epoch", "epoch", "author.leader_epoch"))
    whole = authored.withColumn("known_epoch", epoch).withColumn("own", f.filter("terms", _is_own))
    whole = whole.withColumn("committed", f.exists("own", _commits) & ~_is_another_s())
    return whole.withColumn("committed", f.coalesce("committed", f.lit(False)))


def lost_ranges(found: DataFrame, replica_logs: DataFrame, sampled: Sequence[str]) -> DataFrame:
    """Lost writes among findings, at consecutive offsets: the fields of :class:`harness.facts.LostRange`."""
    placed = found.where((f.col("kind") == "lost-write") & f.col("offset").isNotNull())
    # acks=all is written as -1 and is the most that a sender can wait for.
    least = f.coalesce(f.min(f.when(f.col("acks") >= 0, f.col("acks"))), f.lit(ALL))
    offsets = placed.groupBy(*PLACE, "leader_epoch", "offset").agg(
        f.min("time_ns").alias("first_ns"), f.max("time_ns").alias("last_ns"), least.alias("acks")
    )
    held = offsets.withColumn("nodes", f.array().cast("array<int>"))
    if sampled:
        nodes = f.when(f.col("leader_epoch").isNull(), f.col("nodes"))
        kept = _kept(placed.where(f.col("run").isin(*sampled)), replica_logs)
        held = offsets.join(f.broadcast(kept), on=[*PLACE, "offset"], how="left").withColumn("nodes", nodes)
    rank = f.row_number().over(Window.partitionBy(*PLACE, "leader_epoch").orderBy("offset"))
    ranges = held.withColumn("range", f.col("offset") - rank).groupBy(*PLACE, "leader_epoch", "range")
    return ranges.agg(
        f.min("offset").alias("first"),
        (f.max("offset") + 1).alias("end"),
        f.min("first_ns").alias("first_ack_ns"),
        f.max("last_ns").alias("last_ack_ns"),
        f.coalesce(f.min(f.when(f.col("acks") >= 0, f.col("acks"))), f.lit(ALL)).alias("acks"),
        f.array_sort(f.array_distinct(f.flatten(f.collect_list("nodes")))).alias("kept"),
    ).drop("range")


def _kept(lost: DataFrame, replica_logs: DataFrame) -> DataFrame:
    """``run, topic, partition, offset, nodes``: the logs that hold a lost record of unknown epoch, without an epoch."""
    nameless = lost.where(f.col("leader_epoch").isNull()).select(*PLACE, "offset", "value").distinct()
    bare = replica_logs.where(f.col("leader_epoch") < 0).select(*PLACE, "offset", "value", "node")
    found = bare.join(f.broadcast(nameless), on=[*PLACE, "offset", "value"], how="inner")
    return found.groupBy(*PLACE, "offset").agg(f.collect_set("node").alias("nodes"))


def _could_append(term: Column) -> Column:
    """Whether this leader led during the send and its log end, where that is known, passed the offset."""
    passed = (term["first_log_end"] <= f.col("offset")) & (f.col("offset") < term["log_end"])
    return led_during(term) & (f.col("sampled") & f.col("offset").isNotNull() | passed)


def _is_own(term: Column) -> Column:
    """Whether this term is of the record's epoch, and did not end before the record was sent."""
    ended = f.coalesce(term["end_ns"] < f.col("invoked_ns"), f.lit(False))
    return (term["leader_epoch"] == f.col("known_epoch")) & ~ended


def _lacks(term: Column) -> Column:
    """Whether this term began after the acknowledgement, with a log that ended before the record."""
    return (term["begin_ns"] > f.col("acked_ns")) & (term["first_log_end"] <= f.col("offset"))


def _commits(term: Column) -> Column:
    """Whether the high watermark of a leader that had the record passed it; needs ``own``."""
    gone_ns = f.array_min(f.transform(f.filter("own", _lacks), lambda one: one["begin_ns"]))
    return (term["high_watermark"] > f.col("offset")) & (gone_ns.isNull() | (term["begin_ns"] < gone_ns))


def _is_another_s() -> Column:
    """Whether another record has the offset in the epoch that this one has only by its presumed leader."""
    guessed = f.col("logged_epoch").isNull() & f.col("epoch").isNull()
    return guessed & f.coalesce(f.array_contains("other_epochs", f.col("known_epoch")), f.lit(False))


def excuse(*, hidden: bool) -> Column:
    """What excuses that a record is not where it was acknowledged; needs :func:`with_authors`.

    ``hidden``: it may be a marker that aborts it instead of another one.
    """
    delivered = f.col("polled") & f.col("offset").isNotNull()
    weak = (f.col("acks") != ALL) & ~f.col("committed") & ~delivered
    expired = may_be_deleted(f.coalesce("offset", "lowest"), f.col("invoked_ns"))
    unknown = f.col("known_epoch").isNull() & (f.size("able") > 0)
    of_any = f.exists("able", lambda term: given_up(term["leader_epoch"], f.col("offset"), f.col("invoked_ns")))
    gone = f.when(unknown, of_any).otherwise(given_up(f.col("known_epoch"), f.col("offset"), f.col("invoked_ns")))
    return f.when(expired, "retention").when(weak, "acks").when(gone | is_hidden() if hidden else gone, "unclean")


QUESTIONS = (Question(lost_writes, about="record"),)
