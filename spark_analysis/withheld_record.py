"""Which records was a share group, which was not done with them, not given in the end?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.lost_acknowledgement import first_polls
from spark_analysis.question import Question
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import findings

_AT = (*PLACE, "group", "offset")


def withheld_records(tables: Tables) -> DataFrame:
    """``withheld-record``, as ``checkers.withheld_record`` defines it."""
    history = tables.history
    drains = _drains(history)
    there = _there(history).join(f.broadcast(drains), on=list(PLACE), how="inner")
    due = there.where(f.col("acked") < f.col("drain.row"))
    last = _given(history)
    lacking = due.join(_done(history), on=list(_AT), how="left_anti").join(last, on=list(_AT), how="left")
    named = lacking.withColumn("process", f.col("last.process"))
    known = named.join(first_polls(history), on=["run", "process"], how="left")
    withheld = known.where(f.col("last").isNull() | (f.col("last.index") <= f.col("drain.row")))
    never = f.col("last").isNull()
    return findings(
        withheld,
        "withheld-record",
        offset="offset",
        value="value",
        excuse=f.when(~f.col("drain.over"), "unfinished"),
        row=f.when(never, f.col("drain.row")).otherwise(f.col("last.index")),
        time_ns="drain.ended_ns",
        process="process",
        until=f.when(never, 0).otherwise(f.coalesce("last.delivery_count", f.lit(1))),
        since_ns=f.when(never, f.col("invoked_ns")).otherwise(f.coalesce("began.time_ns", "last.time_ns")),
    )


def _drains(history: DataFrame) -> DataFrame:
    """``run, topic, partition, group, drain``: the last drain of each group: ``row, ended_ns, over``."""
    rows = history.where((f.col("f") == "drain") & f.col("topic").isNotNull() & f.col("group").isNotNull())
    is_begin = f.col("type") == "invoke"
    row = f.struct("index", "time_ns", "type", "group")
    first, end = f.min(f.when(is_begin, row)).alias("first"), f.max(f.when(~is_begin, row)).alias("end")
    own = rows.groupBy(*PLACE, "op").agg(first, end)
    known = own.where(f.col("first").isNotNull()).withColumn("end", f.coalesce("end", "first"))
    drain = f.struct(
        f.col("first.index").alias("row"),
        f.col("end.time_ns").alias("ended_ns"),
        (f.col("end.type") == "ok").alias("over"),
    )
    return known.groupBy(*PLACE, f.col("first.group").alias("group")).agg(f.max(drain).alias("drain"))


def _there(history: DataFrame) -> DataFrame:
    """The acknowledged records that are there in the end: ``run, topic, partition, value, offset, acked, invoked_ns``.

    ``acked``: the row that first says so.
    """
    sends = history.where(f.col("f") == "send")
    begun = sends.groupBy(*PLACE, "value").agg(f.min("time_ns").alias("invoked_ns"), f.max("txn").alias("txn"))
    is_acked = (f.col("type") == "ok") & (f.col("acks") == ALL) & f.col("offset").isNotNull()
    acked = sends.where(is_acked).groupBy(*PLACE, "value", "offset").agg(f.min("index").alias("acked"))
    is_read = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("final") & f.col("topic").isNotNull()
    final = history.where(is_read & f.col("value").isNotNull()).select(*PLACE, "value", "offset")
    known = acked.join(begun.where(~f.col("txn")), on=[*PLACE, "value"], how="inner")
    return known.join(final, on=[*PLACE, "value", "offset"], how="left_semi")


def _done(history: DataFrame) -> DataFrame:
    """What groups are done with, or may be: ``run, topic, partition, group, offset``."""
    rows = history.where((f.col("f") == "acknowledge") & f.col("topic").isNotNull() & f.col("group").isNotNull())
    of_one = [*_AT, "op"]
    unsent = rows.where(f.col("type") == "fail").select(*of_one)
    said = rows.where(f.col("acknowledgement").isin("accept", "reject"))
    return said.join(unsent, on=of_one, how="left_anti").select(*_AT).distinct()


def _given(history: DataFrame) -> DataFrame:
    """``run, topic, partition, group, offset, last``: the last delivery of each record."""
    rows = history.where((f.col("f") == "acquire") & (f.col("type") == "ok") & f.col("topic").isNotNull())
    last = f.max(f.struct("index", "time_ns", "process", "delivery_count"))
    return rows.where(f.col("group").isNotNull()).groupBy(*_AT).agg(last.alias("last"))


QUESTIONS = (Question(withheld_records, about="share"),)
