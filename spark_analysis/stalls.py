"""Which leaders' high watermarks stood still for too long?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.lasting import SAME_ISR, lasting, leads
from spark_analysis.tables import PLACE


def stalls(timeline: DataFrame, allowed: DataFrame) -> DataFrame:
    """The fields of :class:`harness.facts.Stall`, as ``checkers.reference.stalls`` defines them.

    Args:
        timeline: the table.
        allowed: ``run, lag_ns``: how long a laggard may stay in the ISR, of the runs that state it.
    """
    waits = f.col("topic").isNotNull() & leads() & (f.col("high_watermark") < f.col("log_end_offset"))
    waiting = timeline.where(waits).join(f.broadcast(allowed), on="run", how="inner")
    return lasting(waiting, (*SAME_ISR, "isr", "high_watermark"), "log_end_offset").select(
        *PLACE, "node", "incarnation", "leader_epoch", "isr", "first.sequence",
        f.col("first.time_ns").alias("begin_ns"),
        f.col("last.sequence").alias("end_sequence"),
        f.col("last.time_ns").alias("end_ns"),
        "high_watermark",
        f.col("first.log_end_offset").alias("log_end"),
    )  # fmt: skip
