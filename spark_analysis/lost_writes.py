"""Which acknowledged records does the final read not deliver where they were acknowledged?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.leadership import given_up, led_during
from spark_analysis.partitions import missing
from spark_analysis.records import ALL
from spark_analysis.views import Views, findings, with_partitions


def lost_writes(views: Views) -> DataFrame:
    """``lost-write``, as ``checkers.acked_writes_survive`` defines it."""
    survives = f.when(f.col("offset").isNull(), f.col("final_offset").isNotNull()).otherwise(f.col("finally"))
    gone = views.records.where(f.col("ack_row").isNotNull() & ~survives)
    lost = with_partitions(gone, views).where(missing(f.col("offset"), read=f.col("value_read_row").isNotNull()))
    known = lost.withColumn("able", f.filter("terms", _could_append))
    authored = known.withColumn("author", f.when(f.size("able") == 1, f.col("able")[0]))
    epoch = f.when(f.col("offset").isNotNull(), f.coalesce("logged_epoch", "epoch", "author.leader_epoch"))
    whole = authored.withColumn("known_epoch", epoch).withColumn("committed", f.exists("terms", _commits))
    return findings(
        whole.withColumn("committed", f.coalesce("committed", f.lit(False))),
        "lost-write",
        offset="offset",
        value="value",
        leader_epoch="known_epoch",
        excuse=_excuse(),
        row="ack_row",
        time_ns="acked_ns",
        process="process",
        acks="acks",
        node="author.node",
        other_offset="final_offset",
        other_value=f.when(f.col("offset").isNotNull(), f.col("final_value")),
        committed="committed",
    )


def _could_append(term: Column) -> Column:
    """Whether this leader led during the send and its log end passed the offset."""
    return led_during(term) & (term["first_log_end"] <= f.col("offset")) & (f.col("offset") < term["log_end"])


def _commits(term: Column) -> Column:
    """Whether this term is the record's own, and its high watermark passed the record."""
    return (term["leader_epoch"] == f.col("known_epoch")) & (term["high_watermark"] > f.col("offset"))


def _excuse() -> Column:
    delivered = f.col("polled") & f.col("offset").isNotNull()
    weak = (f.col("acks") != ALL) & ~f.col("committed") & ~delivered
    expired = f.col("offset") < f.col("leader.log_start_offset")
    return f.when(weak, "acks").when(expired, "retention").when(given_up(f.col("known_epoch"), "invoked_ns"), "unclean")
