"""Which share groups were given a record that they were done with, or one too often?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import findings

_RECORD = (*PLACE, "group", "offset", "value")


def lost_acknowledgements(tables: Tables) -> DataFrame:
    """``lost-acknowledgement`` and ``excess-delivery``, as ``checkers.lost_acknowledgement`` defines them."""
    history = tables.history
    polls = history.where((f.col("f") == "acquire") & (f.col("type") == "invoke"))
    limits = polls.groupBy("run", "op").agg(f.max("delivery_count").alias("limit"))
    given = _known(history.where((f.col("f") == "acquire") & (f.col("type") == "ok")))
    told = given.join(first_polls(history), on=["run", "process"], how="left").join(
        limits, on=["run", "op"], how="left"
    )
    return _again(history, told).unionByName(_beyond(told))


def first_polls(history: DataFrame) -> DataFrame:
    """``run, process, began``: the first poll of every share consumer: ``index, time_ns``."""
    polls = history.where((f.col("f") == "acquire") & (f.col("type") == "invoke"))
    return polls.groupBy("run", "process").agg(f.min(f.struct("index", "time_ns")).alias("began"))


def _known(rows: DataFrame) -> DataFrame:
    """Those that name a record."""
    return rows.where(" and ".join(f"`{name}` is not null" for name in ("topic", "group", "offset", "value")))


def _again(history: DataFrame, told: DataFrame) -> DataFrame:
    said = (f.col("f") == "acknowledge") & (f.col("type") == "ok") & f.col("acknowledgement").isin("accept", "reject")
    confirmed = _known(history.where(said)).select(*_RECORD, f.struct("index", "time_ns").alias("said"))
    pairs = told.where(f.col("began").isNotNull()).join(confirmed, on=list(_RECORD), how="inner")
    earlier = pairs.where(f.col("said.index") < f.col("began.index"))
    last = earlier.groupBy(*_RECORD, "index", "time_ns", "process", "began").agg(f.max("said").alias("said"))
    return findings(
        _first(last),
        "lost-acknowledgement",
        offset="offset",
        value="value",
        row="index",
        time_ns="time_ns",
        process="process",
        until="said.index",
        since_ns="said.time_ns",
        by_ns="began.time_ns",
    )


def _beyond(told: DataFrame) -> DataFrame:
    return findings(
        _first(told.where(f.col("delivery_count") > f.col("limit"))),
        "excess-delivery",
        offset="offset",
        value="value",
        row="index",
        time_ns="time_ns",
        process="process",
        until="delivery_count",
    )


def _first(rows: DataFrame) -> DataFrame:
    """Of the deliveries of each record the first."""
    at = f.row_number().over(Window.partitionBy(*_RECORD).orderBy("index"))
    return rows.withColumn("at", at).where(f.col("at") == 1)


QUESTIONS = (Question(lost_acknowledgements, about="share"),)
