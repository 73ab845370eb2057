"""Which records has a user's program left out, processed twice or out of order, or made up?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.identity import KEYS
from spark_analysis.demands import Damage
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Scale, findings

_LANE = ("lane_topic", "lane_number")


def unprocessed(tables: Tables, damage: Damage, scale: Scale) -> DataFrame:
    """The four kinds that ``checkers.unprocessed`` defines."""
    history = tables.history
    puts = _puts(history)
    given = scale.hold(_given(history, tables.timeline))
    final = puts.where("final")
    found = [
        _left_out(given, puts),
        _twice(given, final),
        _out_of_order(given, final),
        _made_up(history, final, damage.swapped),
    ]
    return reduce(DataFrame.unionByName, found)


def _puts(history: DataFrame) -> DataFrame:
    """The records of the output: ``run, lane_topic, lane_number, at, value, final, row, time_ns, process``."""
    rows = history.where((f.col("f") == "output") & (f.col("type") == "ok"))
    return rows.select(
        "run",
        f.coalesce("topic", f.lit("")).alias("lane_topic"),
        f.coalesce("partition", "process").alias("lane_number"),
        f.coalesce("offset", f.lit(0)).alias("at"),
        "value", "final",
        f.col("index").alias("row"),
        "time_ns", "process",
    )  # fmt: skip


def _given(history: DataFrame, timeline: DataFrame) -> DataFrame:
    """The records of the input that were sent before the program was asked how far it had come.

    Returns:
        ``run, topic, partition, value, offset, copies, time_ns, since_ns, unclean, answer``. ``copies``: at how many
        offsets it is in the end, ``offset`` the lowest; ``unclean``: the run had an unclean election; ``answer``: the
        row that says how far the program had come.
    """
    reached = history.where((f.col("f") == "reached") & f.col("topic").isNotNull())
    answer = f.struct("index", f.coalesce("offset", f.lit(0)).alias("offset"), "process")
    asked = reached.groupBy(*PLACE).agg(
        f.min(f.when(f.col("type") == "invoke", f.col("index"))).alias("asked"),
        f.max(f.when(f.col("type") == "ok", answer)).alias("answer"),
    )
    sent = _sent(history).join(f.broadcast(asked), on=list(PLACE), how="inner").where(f.col("invoked") < f.col("asked"))
    is_read = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("final") & f.col("topic").isNotNull()
    read = history.where(is_read & f.col("value").isNotNull()).groupBy(*PLACE, "value").agg(
        f.min("offset").alias("offset"), f.count_distinct("offset").alias("copies")
    )  # fmt: skip
    unclean = (f.col("kind") == "election") & (f.get_json_object("detail", "$.clean") == "false")
    elected = timeline.where(unclean & f.col("topic").isNotNull()).select("run").distinct()
    known = sent.join(read, on=[*PLACE, "value"], how="left").withColumn("copies", f.coalesce("copies", f.lit(0)))
    return known.join(f.broadcast(elected.withColumn("unclean", f.lit(True))), on="run", how="left")


def _sent(history: DataFrame) -> DataFrame:
    """Every value that was sent: ``run, topic, partition, value, invoked, since_ns, time_ns``."""
    rows = history.where(f.col("f") == "send")
    acked = f.min(f.when(f.col("type") == "ok", f.col("time_ns")))
    return rows.groupBy(*PLACE, "value").agg(
        f.min("index").alias("invoked"),
        f.min("time_ns").alias("since_ns"),
        f.coalesce(acked, f.max("time_ns")).alias("time_ns"),
    )


def _left_out(given: DataFrame, puts: DataFrame) -> DataFrame:
    left = given.where(f.col("copies") > 0).join(puts.select("run", "value").distinct(), ["run", "value"], "left_anti")
    done = f.coalesce(f.col("offset") < f.col("answer.offset"), f.lit(False))
    return findings(
        left,
        "unprocessed",
        **_of_input(),
        excuse=f.when(~done, "unfinished").otherwise(_unclean()),
        row=f.when(done, f.col("answer.index")),
        process=f.when(done, f.col("answer.process")),
    )


def _twice(given: DataFrame, final: DataFrame) -> DataFrame:
    once = final.where(f.col("value").isNotNull()).groupBy("run", "value", *_LANE, "at").agg(
        f.min(f.struct("row", "process")).alias("first")
    )  # fmt: skip
    several = once.groupBy("run", "value").agg(f.sort_array(f.collect_list("first")).alias("puts"))
    second = several.where(f.size("puts") > 1).select("run", "value", f.get("puts", f.lit(1)).alias("second"))
    found = given.where(f.col("copies") < 2).join(second, on=["run", "value"], how="inner")
    return findings(
        found,
        "processed-twice",
        **_of_input(),
        excuse=_unclean(),
        row="second.row",
        process="second.process",
    )


def _out_of_order(given: DataFrame, final: DataFrame) -> DataFrame:
    first = final.groupBy("run", "value", *_LANE).agg(f.min(f.struct("at", "row", "process")).alias("put"))
    lanes = first.withColumn("lanes", f.count("*").over(Window.partitionBy("run", "value")))
    own = f.broadcast(given.where(f.col("copies") == 1).withColumnRenamed("offset", "own"))
    known = lanes.join(own, on=["run", "value"], how="inner").withColumn("key", f.col("value") % KEYS)
    before = Window.partitionBy(*PLACE, "key", *_LANE).orderBy("put.at", "put.row")
    furthest = f.max(f.struct("own", "value")).over(before.rowsBetween(Window.unboundedPreceding, -1))
    found = known.withColumn("furthest", furthest).where((f.col("own") < f.col("furthest.own")) & (f.col("lanes") == 1))
    return findings(
        found,
        "processed-out-of-order",
        **(_of_input() | {"offset": "own"}),
        excuse=_unclean(),
        row="put.row",
        process="put.process",
        other_offset="furthest.own",
        other_value="furthest.value",
    )


def _made_up(history: DataFrame, final: DataFrame, swapped: Mapping[str, Sequence[object]]) -> DataFrame:
    sent = history.where(f.col("f") == "send").select("run", "value").distinct()
    strange = final.join(sent, on=["run", "value"], how="left_anti")
    in_topic = f.col("lane_topic") != ""
    placed = strange.withColumns(
        {
            "topic": f.col("lane_topic"),
            "partition": f.when(in_topic, f.col("lane_number")).otherwise(-1),
            "offset": f.when(in_topic, f.col("at")),
        }
    )
    foreign = [run for run, places in swapped.items() if places]
    return findings(
        placed,
        "made-up-output",
        offset="offset",
        value="value",
        excuse=f.when(f.col("run").isin(*foreign), "damage") if foreign else f.lit(None),
        row="row",
        time_ns="time_ns",
        process="process",
        other_offset="at",
    )


def _of_input() -> dict[str, str | Column]:
    """The columns of a finding about a record of the input."""
    return {name: name for name in ("offset", "value", "time_ns", "since_ns")}


def _unclean() -> Column:
    return f.when(f.col("unclean"), "unclean")


QUESTIONS = (Question(unprocessed, about="program"),)
