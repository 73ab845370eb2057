"""Which values are at two offsets of their partition?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.findings import RESENT_NS
from spark_analysis.leadership import given_up
from spark_analysis.question import Question
from spark_analysis.tables import PLACE
from spark_analysis.views import Partitions, Records, findings, with_partitions


def duplicates(records: Records, partitions: Partitions) -> DataFrame:
    """``duplicate``, as ``checkers.duplicate`` defines it."""
    twice = records.unsettled.where(f.col("value").isNotNull() & (f.col("lowest") < f.col("highest")))
    found = f.col("seen_row").isNotNull() | f.col("in_final_log_intact")
    copies = with_partitions(twice, partitions).where(f.col("used") & found)  # a partition without sends is not judged
    gone = ~f.col("in_final_log_intact")
    values = copies.groupBy(*PLACE, "value").agg(
        f.min("lowest").alias("lowest"),
        f.max("highest").alias("highest"),
        f.min("seen_row").alias("row"),
        f.count(f.when(~(gone & _is_given_up()), 1)).alias("left"),
        f.count(f.when(f.col("in_final_log_intact"), 1)).alias("held"),
        f.max(f.when(gone & f.col("leader").isNotNull(), f.col("seen_ns"))).alias("gone_ns"),
        f.max("txn_op").alias("txn_op"),
        f.count("*").alias("copies"),
        f.count_distinct("author").alias("authors"),
        f.min("invoked_ns").alias("since_ns"),
        f.min("acked_ns").alias("by_ns"),
    )
    took_ns = f.col("by_ns") - f.col("since_ns")
    renumbered = f.col("txn_op").isNull() & (f.col("held") == f.col("copies")) & (f.col("authors") == f.col("held"))
    sent_twice = took_ns.isNull() | (took_ns >= RESENT_NS)
    return findings(
        values,
        "duplicate",
        offset="lowest",
        value="value",
        excuse=f.when(f.col("left") < 2, "unclean")
        .when(renumbered, "renumbered")
        .when(f.col("txn_op").isNull() & sent_twice, "unnumbered"),
        row="row",
        time_ns=f.when(f.col("held") < 2, f.col("gone_ns")),
        other_offset="highest",
        since_ns="since_ns",
        by_ns="by_ns",
    )


def _is_given_up() -> Column:
    """Whether an unclean election gave up the copy; in a sampled timeline, whether one may have."""
    epoch = f.col("sound_epoch")
    later = f.exists("unclean", lambda election: election["leader_epoch"] > epoch)
    unseen = f.coalesce(f.col("sampled") & later, f.lit(False))
    return unseen | given_up(epoch, f.col("offset"), f.col("seen_ns"))


QUESTIONS = (Question(duplicates, about="record"),)
