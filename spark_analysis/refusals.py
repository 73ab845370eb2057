"""Which sends were refused that were valid, or whose sequence followed what their producer had been acknowledged?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.facts import OUT_OF_SEQUENCE, UNDESERVED
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Scale

_PRODUCER = (*PLACE, "process")
_SAID = ("op", "mop", "index", "value", "time_ns")


def refusals(tables: Tables, scale: Scale) -> DataFrame | None:
    """The fields of :class:`harness.facts.Refusal`, as ``checkers.reference.refusals`` has them; None: there are none.

    Such errors are rare, so nothing else is planned before one is found.
    """
    sends = tables.history.where((f.col("f") == "send") & ~f.col("txn"))
    ended = f.col("type").isin("fail", "info") & f.col("error").isin(*UNDESERVED, *OUT_OF_SEQUENCE)
    refused = scale.hold(sends.where(ended).select(*_PRODUCER, "error", *_SAID), few=True)
    if refused.isEmpty():
        return None
    undeserved = _undeserved(refused.where(f.col("error").isin(*UNDESERVED)))
    followed_on = _unbroken(refused.where(f.col("error").isin(*OUT_OF_SEQUENCE)), sends, tables.replica_logs)
    return undeserved.unionByName(followed_on, allowMissingColumns=True)


def _undeserved(refused: DataFrame) -> DataFrame:
    first = f.min(f.struct(f.col("index").alias("row"), "value", "process", "time_ns")).alias("first")
    alike = refused.groupBy(*PLACE, "error").agg(first, f.count("*").alias("sends"))
    return alike.select(*PLACE, "error", "first.*", "sends")


def _unbroken(refused: DataFrame, sends: DataFrame, logs: DataFrame) -> DataFrame:
    here = refused.select(*_PRODUCER, f.struct("error", *_SAID).alias("refused"))
    both = sends.join(f.broadcast(here), on=list(_PRODUCER), how="inner")
    own = (f.col("op") == f.col("refused.op")) & (f.col("mop") == f.col("refused.mop"))
    before, invoked = ~own & (f.col("index") < f.col("refused.index")), f.col("type") == "invoke"
    stored = (f.col("type") == "ok") & (f.col("acks") == ALL) & f.col("offset").isNotNull()
    counted = both.groupBy(*_PRODUCER, "refused").agg(
        f.count(f.when(before & invoked, 1)).alias("begun"),
        f.count(f.when(before & ~invoked, 1)).alias("ended"),
        f.count(f.when(before & stored, 1)).alias("stored"),
        f.max(f.when(before & stored, f.struct("index", "offset", "value", "time_ns"))).alias("last"),
        f.min(f.when(own & invoked, f.col("time_ns"))).alias("invoked_ns"),
    )
    unbroken = counted.where("stored > 0 and stored = ended and stored = begun and invoked_ns is not null")
    wanted = unbroken.select("*", f.col("last.offset").alias("offset"), f.col("last.value").alias("value"))
    copies = logs.select(*PLACE, "offset", "value", "leader_epoch")
    held = copies.join(f.broadcast(wanted), on=[*PLACE, "offset", "value"], how="inner")
    alike = held.groupBy(*_PRODUCER, "refused", "last", "invoked_ns")
    acked = (f.col("last.offset").alias("offset"), f.col("last.time_ns").alias("acked_ns"))
    return alike.agg(f.max("leader_epoch").alias("leader_epoch")).select(
        *_PRODUCER, "refused.error", "refused.value", "refused.time_ns",
        f.col("refused.index").alias("row"), f.lit(1).cast("long").alias("sends"),
        f.struct("leader_epoch", *acked, "invoked_ns").alias("standing"),
    )  # fmt: skip
