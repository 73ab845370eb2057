"""Which replicas stood still in an ISR for too long?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.model import CONTROLLER_ID
from spark_analysis.lasting import SAME_ISR, lasting, leads
from spark_analysis.tables import PLACE

_SAME_LAG = (*SAME_ISR, "member", "since_ns", "reached")


def lags(timeline: DataFrame, allowed: DataFrame) -> DataFrame:
    """The fields of :class:`harness.facts.Lag`, as ``checkers.reference.lags`` defines them.

    Replicas without a row for so long are few, so the leaders' rows are looked up among them, and not sorted.

    Args:
        timeline: the table.
        allowed: ``run, lag_ns``: how long a lag may last, of the runs that state it.
    """
    states = timeline.where(
        f.col("topic").isNotNull() & (f.col("kind") != "final") & (f.col("node") != CONTROLLER_ID)
    ).join(f.broadcast(allowed), on="run", how="inner")
    leading = states.where(leads())
    counted = leading.withColumn("member", f.explode(f.array_distinct("isr"))).where(f.col("member") != f.col("node"))
    meanwhile = (f.col("time_ns") >= f.col("since_ns")) & f.coalesce(f.col("time_ns") < f.col("until_ns"), f.lit(True))
    both = counted.join(f.broadcast(_standstills(states)), on=[*PLACE, "member"], how="inner")
    lacking = both.where(meanwhile & (f.col("log_end_offset") > f.col("reached")))
    return lasting(lacking, _SAME_LAG, "log_end_offset").select(
        *PLACE, "node", "incarnation", "leader_epoch", "member", "first.sequence",
        f.col("first.time_ns").alias("begin_ns"),
        f.col("last.sequence").alias("end_sequence"),
        f.col("last.time_ns").alias("end_ns"),
        f.col("first.log_end_offset").alias("log_end"),
        "reached",
    )  # fmt: skip


def _standstills(states: DataFrame) -> DataFrame:
    """Rows of replicas after which they have none for so long: ``member, since_ns, until_ns, reached``."""
    rows = Window.partitionBy(*PLACE, "node").orderBy("time_ns", "incarnation", "sequence")
    followed = states.withColumn("until_ns", f.lead("time_ns").over(rows)).where(f.col("log_end_offset").isNotNull())
    long = f.coalesce(f.col("until_ns") - f.col("time_ns") >= f.col("lag_ns"), f.lit(True))
    return followed.where(long).select(
        *PLACE,
        f.col("node").alias("member"),
        f.col("time_ns").alias("since_ns"),
        "until_ns",
        f.col("log_end_offset").alias("reached"),
    )
