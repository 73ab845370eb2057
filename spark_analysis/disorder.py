"""Is the history whole and in order?"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.blocks import BLOCK, different, gaps, word_of, words

_NEIGHBOURS = 8
"""How many consecutive rows are compared at a time."""


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


def history_gaps(history: DataFrame) -> DataFrame:
    """Which rows are missing: ``run, first, end`` (exclusive), one row per gap in the index."""
    return gaps(words(history, ["run"], "index"), ["run"])


def disorder(history: DataFrame, *, blocks: bool) -> DataFrame:
    """What is out of order: ``run, name, number``, by the names of ``answer.COUNTS``."""
    repeated = pairs(words(history, ["run"], "index"), {"repeated_rows": f.sum("rows") - f.sum(different())})
    orders = (_back_in_time(history, blocks=blocks), _operations(history, blocks=blocks))
    return reduce(DataFrame.unionByName, [repeated, *orders])


def _back_in_time(history: DataFrame, *, blocks: bool) -> DataFrame:
    """Rows that are older than the row of the index before."""
    rows = history.select("run", "index", "time_ns")
    if not blocks:
        earlier = f.max("time_ns").over(Window.partitionBy("run").orderBy("index").rangeBetween(-1, -1))
        steps = rows.withColumn("earlier", earlier)
        return pairs(steps, {"rows_back_in_time": number_of(f.col("time_ns") < f.col("earlier"))})
    if not any(_goes_back(rows, beginning) for beginning in (0, _NEIGHBOURS // 2)):
        return pairs(rows.limit(0), {"rows_back_in_time": f.count("*")})
    # The last row of each block is also in the next one, so that every two neighbours meet.
    block = f.expr(f"index div {BLOCK}")
    last = rows.where(f.expr(f"index % {BLOCK} = {BLOCK} - 1"))
    both = rows.select("*", block.alias("block"), f.lit(True).alias("own")).unionByName(
        last.select("*", (block + 1).alias("block"), f.lit(False).alias("own"))
    )
    earlier = f.max("time_ns").over(Window.partitionBy("block", "run").orderBy("index").rangeBetween(-1, -1))
    steps = both.withColumn("earlier", earlier)
    return pairs(steps, {"rows_back_in_time": number_of(f.col("own") & (f.col("time_ns") < f.col("earlier")))})


def _goes_back(rows: DataFrame, beginning: int) -> bool:
    """Whether any of :data:`_NEIGHBOURS` consecutive rows, ``beginning`` before each multiple, is older than the last.

    A quick look, which sorts nothing; two of them, half a group apart, see every two neighbours.
    """
    number = f"(index + {beginning})"
    places = range(_NEIGHBOURS)
    times = [f.when(f.expr(f"{number} % {_NEIGHBOURS} = {place}"), f.col("time_ns")) for place in places]
    groups = rows.groupBy(f.expr(f"{number} div {_NEIGHBOURS}").alias("group"), "run").agg(
        *[f.max(time).alias(f"latest_{place}") for place, time in zip(places, times, strict=True)],
        *[f.min(time).alias(f"first_{place}") for place, time in zip(places, times, strict=True)],
    )
    back = [f.col(f"first_{place}") < f.col(f"latest_{place - 1}") for place in places[1:]]
    return not groups.where(reduce(or_, [f.coalesce(one, f.lit(False)) for one in back])).isEmpty()


def _operations(history: DataFrame, *, blocks: bool) -> DataFrame:
    """Completions of operations without an invocation of a lower index, and steps that begin or end twice."""
    counted = (f.col("f") == "send") | ((f.col("f") == "poll") & (f.col("type") == "invoke"))
    rows = history.select(
        *("run", "op"),
        f.when(f.col("type") == "invoke", f.col("index")).alias("invoked"),
        f.when((f.col("type") != "invoke") & (f.col("f") != "close"), f.col("index")).alias("completed"),
        f.when(counted, 2 * f.col("mop") + (f.col("type") == "invoke").cast("int")).alias("step"),
    )
    early, repeated = f.col("early"), f.sum("repeated")
    if not blocks:
        return pairs(_one_by_one(rows), {"early_completions": f.sum(early), "repeated_steps": repeated})
    operations = rows.groupBy("op", "run").agg(
        f.min("invoked").alias("begun"),
        f.min("completed").alias("first"),
        f.max("completed").alias("last"),
        f.count("completed").alias("completions"),
        f.count("step").alias("steps"),
        f.bit_or(f.expr("shiftleft(1L, step & 63)")).alias("bits"),
    )
    # Of hardly any operation some completions are early and others are not, and hardly any has as many steps as there
    # are bits, or one twice; only those are looked at once more.
    all_early = f.col("begun").isNull() | (f.col("last") <= f.col("begun"))
    some_early = ~all_early & (f.col("first") <= f.col("begun"))
    twice = f.col("steps") > different()
    number = f.sum(f.when(all_early, f.col("completions")).otherwise(0))
    word = word_of("op").alias("word")
    unclear = f.coalesce(some_early, f.lit(False)) | f.coalesce(twice, f.lit(False))
    suspects = operations.where(unclear).select("run", word).distinct()
    near = rows.withColumn("word", word).join(f.broadcast(suspects), on=["run", "word"], how="left_semi")
    others = f.sum(f.when(early < f.col("completions"), early).otherwise(0))
    clear = pairs(operations, {"early_completions": number})
    looked_at = pairs(_one_by_one(near), {"early_completions": others, "repeated_steps": repeated})
    return clear.unionByName(looked_at).groupBy("run", "name").agg(f.sum("number").alias("number"))


def _one_by_one(rows: DataFrame) -> DataFrame:
    """By operation how many completions it has (``completions``), how many are ``early``, and ``repeated`` steps."""
    operations = rows.groupBy("op", "run").agg(
        f.min("invoked").alias("begun"),
        f.collect_list("completed").alias("ends"),
        (f.count("step") - f.size(f.collect_set("step"))).alias("repeated"),
    )
    early = f.filter("ends", lambda end: f.coalesce(end <= f.col("begun"), f.lit(True)))
    return operations.select("run", f.size("ends").alias("completions"), f.size(early).alias("early"), "repeated")


def number_of(condition: Column) -> Column:
    """How many rows fulfil ``condition``."""
    return f.count(f.when(condition, 1))


def pairs(rows: DataFrame, numbers: dict[str, Column]) -> DataFrame:
    """``run, name, number`` for every name."""
    grouped = rows.groupBy("run").agg(*[number.alias(name) for name, number in numbers.items()])
    pairs = f.create_map(*[part for name in numbers for part in (f.lit(name), f.col(name))])
    return grouped.select("run", f.explode(pairs).alias("name", "number"))
