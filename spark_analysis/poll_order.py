"""Where was a consumer taken back, or past a record?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.records import reads
from spark_analysis.tables import PLACE
from spark_analysis.views import Views, findings, with_partitions


def unordered_polls(views: Views) -> DataFrame:
    """``nonmonotonic-poll`` and ``poll-skip``, as ``checkers.polls_are_ordered`` defines them."""
    before = f.lag("offset").over(Window.partitionBy(*PLACE, "process").orderBy("row"))
    steps = reads(views.tables.history).withColumn("before", before).where(f.col("offset") != f.col("before") + 1)
    return _back(views, steps).unionByName(_skips(views, steps))


def _back(views: Views, steps: DataFrame) -> DataFrame:
    back = with_partitions(steps.where(f.col("offset") <= f.col("before")), views)
    thrown = f.exists("unclean", lambda election: election["time_ns"] <= f.col("time_ns"))
    return findings(
        back,
        "nonmonotonic-poll",
        **{name: name for name in ("offset", "value", "leader_epoch", "row", "time_ns", "process")},
        excuse=f.when(thrown, "unclean"),
        other_offset="before",
    )


def _skips(views: Views, steps: DataFrame) -> DataFrame:
    gaps = steps.where(f.col("offset") > f.col("before") + 1).select(
        *PLACE, f.col("offset").alias("until"), "before", "row", "time_ns", "process"
    )
    between = (f.col("offset") > f.col("before")) & (f.col("offset") < f.col("until"))
    log = views.records.where("in_final_log").select(
        *PLACE, "offset", "value", f.col("logged_epoch").alias("leader_epoch")
    )
    held = log.join(f.broadcast(gaps), on=list(PLACE), how="inner").where(between)
    skips = held.groupBy(*PLACE, "process", "row", "time_ns", "before", "until").agg(
        f.min(f.struct("offset", "value", "leader_epoch")).alias("skipped")
    )
    return findings(
        skips,
        "poll-skip",
        **{name: name for name in ("row", "time_ns", "process", "until")},
        offset="skipped.offset",
        value="skipped.value",
        leader_epoch="skipped.leader_epoch",
        other_offset="before",
    )
