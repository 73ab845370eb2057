"""When was no send to a partition acknowledged, and when was one again after the last fault was healed?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.facts import SILENCE_NS
from spark_analysis.demands import Damage
from spark_analysis.tables import PLACE, Tables, table_by_run
from spark_analysis.views import Scale


def silences(tables: Tables, scale: Scale) -> DataFrame:
    """The fields of :class:`harness.facts.Silence`.

    Two acknowledgements a second apart are never in the same second, so it is enough to know the first and the last of
    each second: what is sorted grows with the time that a run takes, not with its operations.
    """
    seconds = scale.digests.seconds() if scale.digests else _seconds(tables.history)
    earlier = Window.partitionBy(*PLACE).orderBy("second").rowsBetween(Window.unboundedPreceding, -1)
    begun = f.least(f.min("first_try").over(earlier), f.col("first_try"))
    known = seconds.withColumns(
        {"begin_ns": f.coalesce(f.max("last_ack").over(earlier), begun), "tried": f.max("last_try").over(earlier)}
    )
    tried = (f.col("tried") >= f.col("begin_ns")) | (f.col("first_try") < f.col("first_ack"))
    long = f.col("first_ack") - f.col("begin_ns") >= SILENCE_NS
    ended = known.where(long & tried).select(*PLACE, "begin_ns", f.col("first_ack").alias("end_ns"))
    return ended.union(_last(seconds))


def _last(seconds: DataFrame) -> DataFrame:
    """Those that no acknowledgement ends: they end with the last attempt, or its completion."""
    places = seconds.groupBy(*PLACE).agg(
        f.coalesce(f.max("last_ack"), f.min("first_try")).alias("begin_ns"),
        f.greatest(f.max("last_try"), f.max("last_end")).alias("end_ns"),
        f.max("last_try").alias("tried"),
    )
    long = f.col("end_ns") - f.col("begin_ns") >= SILENCE_NS
    return places.where(long & (f.col("tried") >= f.col("begin_ns"))).select(*PLACE, "begin_ns", "end_ns")


def _seconds(history: DataFrame) -> DataFrame:
    """By second, the first and last acknowledgement and attempt, and the last completion."""
    sends = history.where((f.col("f") == "send") & f.col("topic").isNotNull())
    acked = f.when(f.col("type") == "ok", f.col("time_ns"))
    invoked = f.when(f.col("type") == "invoke", f.col("time_ns"))
    second = f.expr(f"time_ns div {SILENCE_NS}").alias("second")
    return sends.groupBy(*PLACE, second).agg(
        f.min(acked).alias("first_ack"),
        f.max(acked).alias("last_ack"),
        f.min(invoked).alias("first_try"),
        f.max(invoked).alias("last_try"),
        f.max(f.when(f.col("type") != "invoke", f.col("time_ns"))).alias("last_end"),
    )


def first_acks(tables: Tables, damage: Damage, scale: Scale) -> DataFrame:
    """The fields of :class:`harness.facts.FirstAck`."""
    if scale.digests:
        return scale.digests.first_acks()
    acked = tables.history.where((f.col("f") == "send") & (f.col("type") == "ok") & f.col("topic").isNotNull())
    healed = table_by_run(tables.history.sparkSession, "healed_ns", damage.healed_ns)
    after = acked.join(f.broadcast(healed), on="run", how="inner").where(f.col("time_ns") >= f.col("healed_ns"))
    return after.groupBy(*PLACE).agg(f.min("time_ns").alias("time_ns"))
