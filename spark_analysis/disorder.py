"""Is the history whole and in order?"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis import blocks
from spark_analysis.blocks import BLOCK, different, gaps, octets, out_of_order, words, words_of
from spark_analysis.holding import Hold


def is_malformed() -> Column:
    """Whether a row of the history lacks what tells what it is about, as ``checkers.rows.is_malformed`` says."""
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
    """The rows that questions can be asked about."""
    return history.where(~is_malformed())


class Order(NamedTuple):
    """What is missing from the history, and what is out of order in it.

    Attributes:
        gaps: which rows are missing: ``run, first, end`` (exclusive), one row per gap in the index.
        disorder: what is out of order: ``run, name, number``, by the names of ``answer.COUNTS``.
    """

    gaps: DataFrame
    disorder: DataFrame


def order_of(history: DataFrame) -> Order:
    """How whole and how well ordered histories are that are not large."""
    present = words(history, ["run"], "index")
    early = pairs(_one_by_one(_steps(history)), {name: f.sum(column) for name, column in _OF_OPERATIONS.items()})
    return Order(
        gaps(present, ["run"]), reduce(DataFrame.unionByName, [_repeated(present), _back_in_time(history), early])
    )


def order_of_large(history: DataFrame, hold: Hold) -> Order:
    """The same of large histories.

    Almost all of them are in order, which a quick look tells; only where it does not, somebody looks closely.
    """
    known = hold(octets(history, ["run"], "index", "time_ns"))
    present = words_of(known, ["run"])
    back = known.where(~f.col("rises")).select("run")
    astray = out_of_order(known, ["run"], "octet", f.col("least"), f.col("most"))
    doubtful = back.union(astray).union(known.where(f.col("rows") > different()).select("run")).distinct()
    suspects = history.select("run", "index", "time_ns").join(f.broadcast(doubtful), on="run", how="left_semi")
    parts = [_repeated(present), _early(history, hold)]
    if not doubtful.isEmpty():
        parts.append(_back_in_time(suspects))
    disorder = reduce(DataFrame.unionByName, parts)
    return Order(hold(gaps(present, ["run"]), few=True), hold(disorder, few=True))


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
"""By the name of a count, what :func:`_one_by_one` says of each operation."""


def _steps(history: DataFrame) -> DataFrame:
    """What tells whether operations are in order: by row, where it begins one, or completes one, and which step."""
    counted = (f.col("f") == "send") | ((f.col("f") == "poll") & (f.col("type") == "invoke"))
    return history.select(
        *("run", "op"),
        f.when(f.col("type") == "invoke", f.col("index")).alias("invoked"),
        f.when((f.col("type") != "invoke") & (f.col("f") != "close"), f.col("index")).alias("completed"),
        f.when(counted, 2 * f.col("mop").cast("long") + (f.col("type") == "invoke").cast("int")).alias("step"),
    )


def _early(history: DataFrame, hold: Hold) -> DataFrame:
    """Completions of operations without an invocation of a lower index, and steps that begin or end twice."""
    rows = _steps(history)
    places = range(1 << blocks.OCTET_SHIFT)
    wide = 64 // len(places)
    place = f.col("op").bitwiseAND(len(places) - 1)
    bit = place * wide + f.col("step").bitwiseAND(wide - 1)
    known = rows.groupBy(f.shiftright("op", blocks.OCTET_SHIFT).alias("octet"), "run").agg(
        *[f.min(f.when(place == one, f.col("invoked"))).alias(f"begun_{one}") for one in places],
        *[f.min(f.when(place == one, f.col("completed"))).alias(f"first_{one}") for one in places],
        f.count("step").alias("steps"),
        f.bit_or(f.call_function("shiftleft", f.lit(1).cast("long"), bit.cast("int"))).alias("bits"),
    )
    early = [
        f.coalesce(f.col(f"first_{one}") <= f.coalesce(f"begun_{one}", f"first_{one}"), f.lit(False)) for one in places
    ]
    # Hardly any operation has more steps than it has bits.
    unclear = reduce(or_, early) | f.coalesce(f.col("steps") > different(), f.lit(False))
    suspects = hold(known.where(unclear).select("run", "octet"), few=True)
    octet = f.shiftright("op", blocks.OCTET_SHIFT)
    near = rows.withColumn("octet", octet).join(suspects, on=["run", "octet"], how="left_semi")
    looked_at = rows.limit(0) if suspects.isEmpty() else near
    return pairs(_one_by_one(looked_at), {name: f.sum(column) for name, column in _OF_OPERATIONS.items()})


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
