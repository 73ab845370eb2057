"""For how long was a sampled broker not looked at?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.facts import UNWATCHED_NS
from harness.model import CONTROLLER_ID

_MS = 1_000_000


def unwatched(timeline: DataFrame) -> DataFrame:
    """The fields of :class:`harness.facts.Unwatched`; ``timeline``: of sampled runs."""
    live = (f.col("kind") == "final") & (f.get_json_object("detail", "$.source") == "live")
    looks = timeline.where((f.col("node") < CONTROLLER_ID) & ((f.col("kind") == "state") | live))
    unseen_ns = f.get_json_object("detail", "$.unseen_ms").cast("bigint") * _MS
    before = Window.partitionBy("run", "node", "incarnation").orderBy("time_ns")
    gap_ns = f.col("time_ns") - f.lag("time_ns").over(before)
    known = looks.withColumns({"gap_ns": f.coalesce(gap_ns, f.lit(0)), "unseen_ns": f.coalesce(unseen_ns, f.lit(0))})
    long = known.withColumn("longest_ns", f.greatest("gap_ns", "unseen_ns")).where(f.col("longest_ns") > UNWATCHED_NS)
    return long.select(
        "run", "node", "incarnation",
        (f.col("time_ns") - f.col("longest_ns")).alias("begin_ns"),
        f.col("time_ns").alias("end_ns"),
        (f.col("unseen_ns") > 0).alias("reported"),
    )  # fmt: skip
