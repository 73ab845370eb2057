"""Is the history complete and in order?"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.blocks import BLOCK, different, gaps, unpreceded, word_of, words
from spark_analysis.digests import Digests
from spark_analysis.result_cache import Hold


def is_malformed() -> Column:
    """Whether a row of the history lacks what identifies it, as ``checkers.views.row.is_malformed`` defines it."""
    lacking = f.col("topic").isNull() | f.col("partition").isNull()
    named = f.col("topic").isNotNull() | f.col("partition").isNotNull()
    unknown = f.col("offset").isNull()
    return (
        f.when(f.col("f") == "send", lacking | f.col("value").isNull() | f.col("acks").isNull())
        .when(f.col("f") == "commit", lacking | unknown)
        .when(f.col("f") == "poll", (named | ~unknown) & (lacking | unknown))
        .otherwise(named & lacking)
    )


def well_formed(history: DataFrame) -> DataFrame:
    """The rows that are not malformed."""
    return history.where(~is_malformed())


class Order(NamedTuple):
    """Gaps in the history, and rows out of order.

    Attributes:
        gaps: which rows are missing: ``run, first, end`` (exclusive), one row per gap in the index; None: there are
            none.
        disorder: what is out of order: ``run, name, number``, by the names of ``answer.COUNTS``; None: nothing is.
    """

    gaps: DataFrame | None
    disorder: DataFrame | None


def order_of(history: DataFrame) -> Order:
    """Gaps and disorder of histories that are not large."""
    present = words(history, ["run"], "index")
    early = pairs(_one_by_one(_steps(history)), {name: f.sum(column) for name, column in _OF_OPERATIONS.items()})
    return Order(
        gaps(present, ["run"]), reduce(DataFrame.unionByName, [_repeated(present), _back_in_time(history), early])
    )


def order_of_large(history: DataFrame, digests: Digests, hold: Hold) -> Order:
    """The same of large histories.

    Almost all are in order, which their intervals show; rows are read only where these do not show it.
    """
    doubtful = _doubtful(digests.order())
    orderly = ~f.col("run").isin(*doubtful)
    early = _suspected(history.where(orderly), digests.operations().where(orderly), hold)
    if not doubtful:
        return Order(None, early)
    close = order_of(history.where(~orderly))
    parts = [part for part in (early, close.disorder) if part is not None]
    return Order(close.gaps, hold(reduce(DataFrame.unionByName, parts), few=True))


def _doubtful(intervals: DataFrame) -> list[str]:
    """The runs whose history is not complete, or not in order."""
    before = Window.partitionBy("run").orderBy("first")
    expected = f.coalesce(f.lag("last").over(before) + 1, f.lit(0))
    older = f.coalesce(f.lag("end_ns").over(before) > f.col("begin_ns"), f.lit(False))
    wrong = intervals.select("run", (~f.col("steady") | (f.col("first") != expected) | older).alias("wrong"))
    return [row["run"] for row in wrong.where("wrong").select("run").distinct().collect()]


def _repeated(present: DataFrame) -> DataFrame:
    return pairs(present, {"repeated_rows": f.sum("rows") - f.sum(different())})


def _back_in_time(history: DataFrame) -> DataFrame:
    """Rows that are older than the row of the index before."""
    # The last row of each block is also in the next one, so that every two neighbours meet.
    block = f.expr(f"index div {BLOCK}")
    last = history.where(f.expr(f"index % {BLOCK} = {BLOCK} - 1"))
    names = ("run", "index", "time_ns")
    both = history.select(*names, block.alias("block"), f.lit(True).alias("own")).unionByName(
        last.select(*names, (block + 1).alias("block"), f.lit(False).alias("own"))
    )
    earlier = f.max("time_ns").over(Window.partitionBy("block", "run").orderBy("index").rangeBetween(-1, -1))
    steps = both.withColumn("earlier", earlier)
    return pairs(steps, {"rows_back_in_time": number_of(f.col("own") & (f.col("time_ns") < f.col("earlier")))})


_OF_OPERATIONS = {"early_completions": "early", "repeated_steps": "repeated"}
"""By the name of a count, the column of :func:`_one_by_one` with it."""


def _steps(history: DataFrame) -> DataFrame:
    """The columns that show whether operations are in order: by row, the step and which end it is."""
    counted = (f.col("f") == "send") | ((f.col("f") == "poll") & (f.col("type") == "invoke"))
    return history.select(
        *("run", "op"),
        f.when(f.col("type") == "invoke", f.col("index")).alias("invoked"),
        f.when((f.col("type") != "invoke") & (f.col("f") != "close"), f.col("index")).alias("completed"),
        f.when(counted, 2 * f.col("mop").cast("long") + (f.col("type") == "invoke").cast("int")).alias("step"),
    )


def _suspected(history: DataFrame, words: DataFrame, hold: Hold) -> DataFrame | None:
    """Completions of operations without an invocation of a lower index, and steps that begin or end twice."""
    seen = f.struct("first", "last", "begun", "others")
    known = words.groupBy("run", "word").agg(
        f.collect_list(seen).alias("chunks"),
        f.max("strange").alias("strange"),
        *[
            (f.sum(f.bit_count(name)) > f.bit_count(f.bit_or(name))).alias(f"{name}_twice")
            for name in ("begun", "ended")
        ],
    )
    unclear = f.col("strange") | f.col("begun_twice") | f.col("ended_twice") | unpreceded("chunks", "others", "begun")
    suspects = hold(known.where(unclear).select("run", "word"), few=True)
    if suspects.isEmpty():
        return None
    near = _steps(history).withColumn("word", word_of("op")).join(suspects, on=["run", "word"], how="left_semi")
    return hold(pairs(_one_by_one(near), {name: f.sum(column) for name, column in _OF_OPERATIONS.items()}), few=True)


def _one_by_one(rows: DataFrame) -> DataFrame:
    """By operation how many of its completions are ``early``, and how many steps are ``repeated``."""
    operations = rows.groupBy("op", "run").agg(
        f.min("invoked").alias("begun"),
        f.collect_list("completed").alias("ends"),
        (f.count("step") - f.size(f.collect_set("step"))).alias("repeated"),
    )
    early = f.filter("ends", lambda end: f.coalesce(end <= f.col("begun"), f.lit(True)))
    return operations.select("run", f.size(early).alias("early"), "repeated")


def number_of(condition: Column) -> Column:
    """How many rows fulfil ``condition``."""
    return f.count(f.when(condition, 1))


def pairs(rows: DataFrame, numbers: dict[str, Column]) -> DataFrame:
    """``run, name, number`` for every name."""
    grouped = rows.groupBy("run").agg(*[number.alias(name) for name, number in numbers.items()])
    pairs = f.create_map(*[part for name in numbers for part in (f.lit(name), f.col(name))])
    return grouped.select("run", f.explode(pairs).alias("name", "number"))
