"""Which acknowledged records did leaders append while their ISR was too small?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.demands import Demands
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables, table_by_run
from spark_analysis.views import Scale

_VERSION = (*PLACE, "node", "incarnation", "leader_epoch", "partition_epoch", "isr")


def acks_below_min_isr(tables: Tables, demands: Demands, scale: Scale) -> DataFrame | None:
    """The fields of :class:`harness.facts.AcksBelowMinIsr`, as ``checkers.reference.acks_below_min_isr`` defines them.

    ISRs that are small are few, so the acknowledgements are looked up among them. None: no run states how large an ISR
    has to be, or none was smaller.
    """
    if not demands.min_isr:
        return None
    wanted = table_by_run(tables.history.sparkSession, "min_isr", demands.min_isr)
    leads = (f.col("kind") == "state") & (f.col("role") == "leader") & f.col("topic").isNotNull()
    known = f.col("isr").isNotNull() & f.col("leader_epoch").isNotNull() & f.col("log_end_offset").isNotNull()
    led = tables.timeline.where(leads & known).join(f.broadcast(wanted), on="run", how="inner")
    fields, order = f.struct("sequence", "time_ns", "log_end_offset"), f.struct("time_ns", "sequence")
    thin = (
        led.where(f.size("isr") < f.col("min_isr"))
        .groupBy(*_VERSION)
        .agg(f.min_by(fields, order).alias("begun"), f.max_by(fields, order).alias("ended"))
    )
    if scale.large:
        thin = scale.hold(thin, few=True)
        if thin.isEmpty():
            return None
    acked = (f.col("f") == "send") & (f.col("type") == "ok") & (f.col("acks") == ALL) & f.col("offset").isNotNull()
    both = tables.history.where(acked).select(*PLACE, "offset", "value", "index", "time_ns")
    both = both.join(f.broadcast(thin), on=list(PLACE), how="inner")
    appended = (f.col("offset") >= f.col("begun.log_end_offset")) & (f.col("offset") < f.col("ended.log_end_offset"))
    held = tables.replica_logs.join(f.broadcast(thin), on=[*PLACE, "leader_epoch"], how="inner").where(appended)
    held = held.select(*PLACE, "leader_epoch", "offset", "value").distinct().withColumn("held", f.lit(True))
    candidates = both.where(appended).join(held, on=[*PLACE, "leader_epoch", "offset", "value"], how="left")
    candidates = candidates.withColumn("logged", f.coalesce("held", f.lit(False)))
    meanwhile = f.col("time_ns").between(f.col("begun.time_ns"), f.col("ended.time_ns"))
    grouped = candidates.where(f.col("logged") | meanwhile).groupBy(*_VERSION, "begun", "ended", "logged").agg(
        f.min_by(f.struct("offset", "value", "index", "time_ns"), f.struct("offset", "index")).alias("ack"),
        f.max("offset").alias("last"),
    )  # fmt: skip
    return grouped.select(
        *PLACE, "node", "incarnation", "leader_epoch",
        f.size("isr").alias("members"),
        "begun.sequence",
        f.col("begun.time_ns").alias("begin_ns"),
        f.col("ended.sequence").alias("end_sequence"),
        f.col("ended.time_ns").alias("end_ns"),
        f.col("ack.offset").alias("first"),
        "last", "ack.value",
        f.col("ack.index").alias("row"),
        f.col("ack.time_ns").alias("acked_ns"),
        "logged",
    )  # fmt: skip
