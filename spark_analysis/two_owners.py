"""Which members were given a partition that another one of their group had?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.history.schema import REBALANCES
from spark_analysis.demands import Demands
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables, table_by_run
from spark_analysis.views import findings

_WHOSE = (*PLACE, "group")
_HOLD = ("index", "process", "time_ns", "generation", "assigned", "until", "lost")
_KEY = ("index", "process", "time_ns")


def two_owners(tables: Tables, demands: Demands) -> DataFrame:
    """``two-owners``, as ``checkers.two_owners`` defines it."""
    history = tables.history
    holds = _holds(history)
    later = _later(holds)
    exact = ~f.col("second.assigned") | f.col("run").isin(*demands.virtual)
    pairs = _in_one_generation(history, holds, exact).unionByName(_was_in(history, later))
    if demands.kept_ns:
        kept = table_by_run(history.sparkSession, "kept_ns", demands.kept_ns)
        pairs = pairs.unionByName(_was_kept(history, later, kept))
    order = f.struct(
        f.struct(*[f.col(f"second.{name}") for name in _KEY]).alias("second"),
        f.struct(*[f.col(f"first.{name}") for name in _KEY]).alias("first"),
        exact.alias("exact"),
    )
    found = pairs.groupBy(*_WHOSE, f.col("second.generation").alias("generation")).agg(f.min(order).alias("found"))
    subscribed = history.where(f.col("f") == "subscribe").groupBy("run", f.col("process").alias("owner"))
    named = found.withColumn("owner", f.col("found.first.process")).join(
        subscribed.agg(f.min("time_ns").alias("subscribed_ns")), on=["run", "owner"], how="left"
    )
    return findings(
        named,
        "two-owners",
        row="found.second.index",
        time_ns="found.second.time_ns",
        process="found.second.process",
        until="generation",
        since_ns=f.coalesce("subscribed_ns", "found.first.time_ns"),
        excuse=f.when(~f.col("found.exact"), "overtaken"),
    )


def _holds(history: DataFrame) -> DataFrame:
    """Who was given which partition in a group, and until which row it had it.

    Returns:
        ``run, topic, partition, group`` and what ``checkers.two_owners.Hold`` has; its row is the ``index``.
    """
    polls = history.where(_is_begun_poll()).groupBy("run", "process").agg(f.max("index").alias("polled"))
    moves = history.where(f.col("f").isin(*REBALANCES) & f.col("topic").isNotNull())
    order = Window.partitionBy(*PLACE, "process").orderBy("index")
    next_moves = {"moved": f.lead("index").over(order), "moves": f.lead("f").over(order)}
    ends = moves.withColumns(next_moves).join(polls, on=["run", "process"], how="left")
    known = (f.col("f") == "assigned") & f.col("group").isNotNull() & (f.col("generation") >= 0)
    return ends.where(known).select(
        *_WHOSE,
        *_HOLD[:4],
        _by_epochs().alias("assigned"),
        f.coalesce("moved", "polled", f.lit(0)).alias("until"),
        f.coalesce(f.col("moves") == "lost", f.lit(False)).alias("lost"),
    )


def _by_epochs() -> Column:
    return f.coalesce(f.col("group_protocol") == "consumer", f.lit(False))


def _is_begun_poll() -> Column:
    return (f.col("f") == "poll") & (f.col("type") == "invoke")


def _pairs(firsts: DataFrame, seconds: DataFrame, *on: str) -> DataFrame:
    """Each of ``firsts`` with each of ``seconds`` of another process."""
    both = firsts.select(*_WHOSE, *on, f.struct(*_HOLD).alias("first")).join(
        seconds.select(*_WHOSE, *on, f.struct(*_HOLD).alias("second")), on=[*_WHOSE, *on], how="inner"
    )
    return both.where(f.col("first.process") != f.col("second.process")).select(*_WHOSE, "first", "second")


def _meanwhile() -> Column:
    """The second was given the partition while the first had it."""
    return (f.col("first.index") < f.col("second.index")) & (f.col("second.index") < f.col("first.until"))


def _in_one_generation(history: DataFrame, holds: DataFrame, exact: Column) -> DataFrame:
    """The first was still there when the second subscribed; ``exact``: the rows name the epoch of the assignment."""
    share = [*_WHOSE, "generation"]
    shared = holds.groupBy(*share).agg(f.count_distinct("process").alias("owners")).where(f.col("owners") > 1)
    contested = holds.join(shared, on=share, how="left_semi")
    keys = [f.struct(*[f.col(f"{one}.{name}") for name in _KEY]) for one in ("first", "second")]
    pairs = _pairs(contested, contested, "generation").where((keys[0] < keys[1]) & (exact | _meanwhile()))
    concerned = history.join(f.broadcast(contested.select("run", "process")), on=["run", "process"], how="left_semi")
    lives = concerned.groupBy("run", "process").agg(f.min("index").alias("begin"), f.max("index").alias("end"))
    lasting = _beside(pairs, lives.drop("begin"), "first")
    return _beside(lasting, lives.drop("end"), "second").where(f.col("end") > f.col("begin")).drop("begin", "end")


def _beside(pairs: DataFrame, rows: DataFrame, whose: str) -> DataFrame:
    """``pairs`` with the ``rows`` about the process of one of their members."""
    return (
        pairs.withColumn("process", f.col(f"{whose}.process"))
        .join(rows, on=["run", "process"], how="inner")
        .drop("process")
    )


def _later(holds: DataFrame) -> DataFrame:
    """The second was given the partition in a later generation while the first had it."""
    before = Window.partitionBy(*_WHOSE).orderBy("index").rangeBetween(Window.unboundedPreceding, -1)
    contested = holds.withColumn("reach", f.max("until").over(before)).where(f.col("reach") > f.col("index"))
    return _pairs(holds, contested).where(_meanwhile() & (f.col("first.generation") < f.col("second.generation")))


def _was_in(history: DataFrame, later: DataFrame) -> DataFrame:
    """The first was in the generation of the second, or a later one, before it was rid of the partition."""
    by_epochs = _by_epochs() & (_is_begun_poll() | (f.col("f") == "revoked"))
    seen = history.where(f.col("generation").isNotNull() & ((f.col("f") == "assigned") | by_epochs)).select(
        "run", "process", f.col("index").alias("at"), f.col("generation").alias("of")
    )
    of, at = f.col("of"), f.col("at")
    meanwhile = (of >= f.col("second.generation")) & (at < f.col("first.until"))
    afterwards = (of == f.col("second.generation")) & f.col("first.assigned") & ~f.col("first.lost")
    proven = (at > f.col("first.index")) & (meanwhile | afterwards)
    return _beside(later, seen, "first").where(proven).select(*_WHOSE, "first", "second")


def _was_kept(history: DataFrame, later: DataFrame, kept: DataFrame) -> DataFrame:
    """The first had joined so short a time before that its coordinator cannot have removed it."""
    subscribes = (f.col("f") == "subscribe") & (f.col("type") == "invoke")
    gives_up = (f.col("f") == "revoked") & f.col("generation").isNotNull()
    polls = history.where(_is_begun_poll()).groupBy("run", "process", "op").agg(f.min("time_ns").alias("out_ns"))
    in_polls = history.where(gives_up | (f.col("f") == "lost")).join(polls, on=["run", "process", "op"], how="inner")
    outside = history.where(subscribes).withColumn("out_ns", f.col("time_ns")).unionByName(in_polls).select(
        "run", "process", "out_ns",
        f.col("index").alias("at"),
        f.when(f.col("f") == "revoked", f.col("generation")).alias("over"),
    )  # fmt: skip
    classic = later.where(~f.col("first.assigned") & ~f.col("second.assigned"))
    before = (f.col("at") < f.col("first.index")) & (
        f.col("over").isNull() | (f.col("over") < f.col("first.generation"))
    )
    soon = f.col("second.time_ns") - f.col("out_ns") < f.col("kept_ns")
    joined = _beside(classic, outside, "first").join(f.broadcast(kept), on="run", how="inner")
    return joined.where(before & soon).select(*_WHOSE, "first", "second")


QUESTIONS = (Question(two_owners, about="move"),)
