"""Which records were appended before one that they were sent after?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.leadership import cut_off
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE
from spark_analysis.views import Views, findings, with_partitions

_EARLIER = ("row", "time_ns", "offset", "value", "acks")


def unordered_sends(views: Views) -> DataFrame:
    """The three kinds that ``checkers.sends_are_ordered`` defines."""
    wrong = _late(views.records)
    if "txn" in views.uses:
        wrong = wrong.unionByName(_within_operations(views.tables.history))
    known = with_partitions(wrong, views)
    gone = cut_off(f.col("offset"), f.col("earlier.time_ns"))
    weak = (f.col("acks") != ALL) | (f.col("earlier.acks") != ALL)
    return findings(
        known,
        f.col("kind"),
        **{name: name for name in ("offset", "value", "row", "time_ns", "process", "acks")},
        excuse=f.when(weak, "acks").when(gone, "unclean"),
        other_offset="earlier.offset",
        other_value="earlier.value",
    )


def _late(records: DataFrame) -> DataFrame:
    """Of every acknowledged record the first acknowledgement of a higher offset, where that came before it was sent."""
    acked = records.where(f.col("ack_row").isNotNull() & f.col("offset").isNotNull()).select(
        *PLACE, "process", "offset", "value", "acks", "invoked_row",
        f.col("ack_row").alias("row"),
        f.col("acked_ns").alias("time_ns"),
    )  # fmt: skip
    here = f.struct(*_EARLIER)

    def first(*keys: str) -> Column:
        above = Window.partitionBy(*PLACE, *keys).orderBy(f.col("offset").desc())
        return f.min(here).over(above.rangeBetween(Window.unboundedPreceding, -1))

    both = acked.withColumn("anybody", first()).withColumn("own", first("process"))
    told = [f.coalesce(f.col(name)["row"] < f.col("invoked_row"), f.lit(False)) for name in ("own", "anybody")]
    kind = f.when(told[0], "nonmonotonic-send").when(told[1], "G0-realtime")
    return both.withColumn("kind", kind).where(f.col("kind").isNotNull()).select(
        *PLACE, "kind", "process", "offset", "value", "acks", "row", "time_ns",
        f.when(told[0], f.col("own")).otherwise(f.col("anybody")).alias("earlier"),
    )  # fmt: skip


def _within_operations(history: DataFrame) -> DataFrame:
    sent = (f.col("f") == "send") & (f.col("type") != "invoke") & f.col("txn") & f.col("offset").isNotNull()
    told = history.where(sent).withColumn("row", f.col("index"))
    before = f.lag(f.struct(*_EARLIER)).over(Window.partitionBy(*PLACE, "op").orderBy("mop"))
    back = told.withColumn("earlier", before).where(f.col("offset") < f.col("earlier.offset"))
    return back.select(
        *PLACE, f.lit("int-nonmonotonic-send").alias("kind"), "process", "offset", "value", "acks", "row", "time_ns",
        "earlier",
    )  # fmt: skip
