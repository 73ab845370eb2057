"""Which commits of members were of a former generation or epoch?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.group_commits import commits
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import findings

_SCOPE = ("run", "group", "scope")
"""In what generations follow each other: a group, or in the consumer protocol a partition that it reads."""


def stale_commits(tables: Tables) -> DataFrame:
    """``stale-commit``, as ``checkers.stale_commit`` defines them."""
    history = tables.history
    known = history.where(f.col("topic").isNotNull() & f.col("group").isNotNull())
    given = known.where((f.col("f") == "assigned") & (f.col("generation") >= 0)).select(
        *PLACE, "group", "generation", "index", "process", "time_ns", _scope(f.col("group_protocol"))
    )
    subscribed = history.where(f.col("f") == "subscribe").groupBy("run", "process")
    times = subscribed.agg(f.min("time_ns").alias("subscribed_ns"))
    return _stale(history, given, times)


def _scope(protocol: Column) -> Column:
    place = f.concat_ws("/", "topic", f.col("partition").cast("string"))
    return f.when(protocol == "consumer", place).otherwise(f.lit("")).alias("scope")


def _stale(history: DataFrame, given: DataFrame, subscribed: DataFrame) -> DataFrame:
    own = given.groupBy(*_SCOPE, "generation").agg(f.min("index").alias("own"))
    told = given.select(*_SCOPE, f.col("index").alias("at"), "generation", "process", "time_ns")
    columns = (*PLACE, *_SCOPE[1:], "at", "end", "offset", "of")
    commit = _acknowledged(history).select(
        *columns[:5], f.col("begun").alias("at"), "end", "offset", f.col("generation").alias("of")
    )
    # In the consumer protocol a member keeps partitions from one epoch to the next.
    keeps = (f.col("scope") != "") & (f.col("generation") < f.col("of"))
    asked = (
        commit.join(own, on=list(_SCOPE), how="inner")
        .where(keeps | (f.col("generation") == f.col("of")))
        .groupBy(*columns)
        .agg(f.min("own").alias("own"))
    )
    events = asked.unionByName(told, allowMissingColumns=True)
    earlier = Window.partitionBy(*_SCOPE).orderBy("at").rangeBetween(Window.unboundedPreceding, -1)
    # Of several, the greatest is the first one of the latest generation.
    one = f.when(f.col("end").isNull(), f.struct("generation", (-f.col("at")).alias("back"), "process", "time_ns"))
    latest = events.withColumn("latest", f.max(one).over(earlier)).where(f.col("end").isNotNull())
    stale = latest.where((f.col("latest.generation") > f.col("of")) & (-f.col("latest.back") > f.col("own")))
    named = stale.withColumn("by", f.col("latest.process")).join(
        subscribed.withColumnRenamed("process", "by"), on=["run", "by"], how="left"
    )
    return findings(
        named,
        "stale-commit",
        offset="offset",
        row="end.index",
        time_ns="end.time_ns",
        process="end.process",
        until="latest.generation",
        since_ns=f.coalesce("subscribed_ns", "latest.time_ns"),
    )


def _acknowledged(history: DataFrame) -> DataFrame:
    """The commits of members that were acknowledged in the generation of their begin."""
    acked = (f.col("end.type") == "ok") & f.col("begin.group").isNotNull()
    same = (f.col("begin.generation") >= 0) & (f.col("begin.generation") == f.col("end.generation"))
    return (
        commits(history)
        .where(acked & same)
        .select(
            *PLACE,
            *[f.col(f"begin.{name}").alias(name) for name in ("group", "generation", "offset")],
            f.col("begin.index").alias("begun"),
            "end",
            _scope(f.col("begin.group_protocol")),
        )
    )


QUESTIONS = (Question(stale_commits, about="move"),)
