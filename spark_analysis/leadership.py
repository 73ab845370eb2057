"""Who led each partition when, who leads it at the end, and which elections were unclean: one row per partition."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE


def leadership(timeline: DataFrame) -> DataFrame:
    """What the nodes' timelines say about the leaders of each partition.

    Returns:
        ``run, topic, partition, leader, unclean, terms``:

        * ``leader``: the final leader's ``{leader_epoch, time_ns, node, high_watermark, log_end_offset,
          log_start_offset}``: of the replicas that call themselves leader as collected at the end, the one of the
          highest epoch; null when there is none;
        * ``unclean``: an array of ``{time_ns, leader_epoch, taken, log_end, before, heard}``, the unclean elections and
          what they gave up, as ``checkers.forks`` defines it: ``before`` is an array of ``{leader_epoch, incarnation,
          sequence, last, lowest}``, ``last`` being what that incarnation said with that ``sequence``, its last in that
          epoch; ``heard``: every replica is in the election's epoch in the end, or in a later one;
        * ``terms``: an array of ``{leader_epoch, begin_ns, node, incarnation, end_ns, first_sequence, first_log_end,
          log_end, high_watermark, log_start, said_ns, last_ns, next_ns}``, ordered by its fields in this order. A term
          lasts from a node's first row in that role and epoch to its first row in another (``end_ns``, null: never);
          ``log_end``, ``high_watermark`` and ``log_start`` are its maxima, ``said_ns`` is when its last row was
          written; ``last_ns`` is when that incarnation of the node last wrote anything, ``next_ns`` when its next
          incarnation first did (null: never).
    """
    terms = _terms(timeline)
    known = _marks(timeline).join(_leader_terms(terms, timeline), on=list(PLACE), how="full")
    forked = known.join(_log_ends(terms), on=list(PLACE), how="left")
    return forked.withColumn("unclean", f.transform("unclean", _fork)).drop("ends", "heard")


def _fork(election: Column) -> Column:
    """What an unclean election gave up; needs ``terms``, ``ends`` and ``heard``."""
    offices = f.filter("terms", lambda term: term["leader_epoch"] >= election["leader_epoch"])
    winner = f.get(offices, f.lit(0))
    theirs = f.filter(
        "ends", lambda end: (end["node"] == winner["node"]) & (end["leader_epoch"] < winner["leader_epoch"])
    )
    names = ("leader_epoch", "incarnation", "sequence", "last", "lowest")
    before = f.transform(theirs, lambda end: f.struct(*[end[name].alias(name) for name in names]))
    return f.struct(
        election["time_ns"].alias("time_ns"),
        election["leader_epoch"].alias("leader_epoch"),
        winner["leader_epoch"].alias("taken"),
        winner["first_log_end"].alias("log_end"),
        before.alias("before"),
        (f.coalesce("heard", f.lit(-1)) >= election["leader_epoch"]).alias("heard"),
    )


def _log_ends(terms: DataFrame) -> DataFrame:
    """``ends``: where each replica's log ended in each leader epoch, by partition."""
    end = f.struct("node", "leader_epoch", "incarnation", "end.sequence", "end.last", "lowest")
    known = terms.where(f.col("leader_epoch").isNotNull() & f.col("end").isNotNull())
    return known.groupBy(*PLACE).agg(f.collect_list(end).alias("ends"))


def _marks(timeline: DataFrame) -> DataFrame:
    final = f.col("kind") == "final"
    unclean = (f.col("kind") == "election") & (f.get_json_object("detail", "$.clean") == "false")
    said = f.struct("leader_epoch", "time_ns", "node", "high_watermark", "log_end_offset", "log_start_offset")
    rows = timeline.where(f.col("topic").isNotNull() & (final | unclean))
    return rows.groupBy(*PLACE).agg(
        f.max(f.when(final & (f.col("role") == "leader"), said)).alias("leader"),
        f.min(f.when(final, f.coalesce("leader_epoch", f.lit(-1)))).alias("heard"),
        f.collect_list(f.when(unclean, f.struct("time_ns", "leader_epoch"))).alias("unclean"),
    )


def _leader_terms(terms: DataFrame, timeline: DataFrame) -> DataFrame:
    joined = terms.where(f.col("role") == "leader").join(
        f.broadcast(_lives(timeline)), on=["run", "node", "incarnation"], how="inner"
    )
    fields = (
        "leader_epoch", "begin_ns", "node", "incarnation", "end_ns", "first_sequence", "first_log_end", "log_end",
        "high_watermark", "log_start", "said_ns", "last_ns", "next_ns",
    )  # fmt: skip
    return joined.groupBy(*PLACE).agg(f.sort_array(f.collect_list(f.struct(*fields))).alias("terms"))


def _terms(timeline: DataFrame) -> DataFrame:
    states = timeline.where((f.col("kind") == "state") & f.col("topic").isNotNull())
    log_end, watermark = _or_zero("log_end_offset"), _or_zero("high_watermark")
    grouped = states.groupBy(*PLACE, "node", "incarnation", "role", "leader_epoch").agg(
        f.min("sequence").alias("first_sequence"),
        f.min("time_ns").alias("begin_ns"),
        f.max_by("time_ns", "sequence").alias("said_ns"),
        f.min_by(log_end, "sequence").alias("first_log_end"),
        f.max(log_end).alias("log_end"),
        f.max(watermark).alias("high_watermark"),
        f.max(_or_zero("log_start_offset")).alias("log_start"),
        f.min("log_end_offset").alias("lowest"),
        f.max(
            f.when(f.col("log_end_offset").isNotNull(), f.struct("sequence", f.col("log_end_offset").alias("last")))
        ).alias("end"),
    )
    following = Window.partitionBy(*PLACE, "node").orderBy("incarnation", "first_sequence")
    return grouped.withColumn("end_ns", f.lead("begin_ns").over(following))


def _lives(timeline: DataFrame) -> DataFrame:
    rows = timeline.where(f.col("kind") != "final")
    lives = rows.groupBy("run", "node", "incarnation").agg(
        f.min("time_ns").alias("first_ns"), f.max("time_ns").alias("last_ns")
    )
    following = Window.partitionBy("run", "node").orderBy("incarnation")
    return lives.select("run", "node", "incarnation", "last_ns", f.lead("first_ns").over(following).alias("next_ns"))


def led_during(term: Column) -> Column:
    """Whether the leader's term has an instant in common with the send from ``invoked_ns`` to ``acked_ns``."""
    return led_between(term, f.col("invoked_ns"), f.col("acked_ns"))


def led_between(term: Column, begin_ns: Column, end_ns: Column) -> Column:
    """Whether the leader's term has an instant in common with that time; where the timeline is ``sampled``, may have.

    There a term may have begun before anybody looked.
    """
    ended = term["end_ns"].isNotNull() & (term["end_ns"] < begin_ns)
    return (f.col("sampled") | (term["begin_ns"] <= end_ns)) & ~ended


def given_up(leader_epoch: Column, offset: Column, time_ns: Column) -> Column:
    """Whether one of the row's ``unclean`` elections gave up a record of ``leader_epoch`` at ``offset``.

    Where that epoch is null: whether one came at ``time_ns`` or later.
    """
    known = f.exists("unclean", lambda fork: _gave_up(fork, leader_epoch, offset))
    return f.when(leader_epoch.isNull(), f.exists("unclean", lambda fork: fork["time_ns"] >= time_ns)).otherwise(known)


def still_given_up(leader_epoch: Column, offset: Column) -> Column:
    """Whether one of the row's ``unclean`` elections gave up a record, and some replica has not heard of it."""
    return f.exists("unclean", lambda fork: ~fork["heard"] & _gave_up(fork, leader_epoch, offset))


def thrown_back(leader_epoch: Column, offset: Column, time_ns: Column) -> Column:
    """Whether one of the row's ``unclean`` elections until ``time_ns`` gave up a record (null epoch: may have)."""
    return f.exists(
        "unclean",
        lambda fork: (fork["time_ns"] <= time_ns) & (leader_epoch.isNull() | _gave_up(fork, leader_epoch, offset)),
    )


def cut_off(offset: Column, time_ns: Column) -> Column:
    """Whether one of the row's ``unclean`` elections at ``time_ns`` or later gave up everything from ``offset`` on."""
    return f.exists(
        "unclean",
        lambda fork: (fork["time_ns"] >= time_ns) & (fork["log_end"].isNull() | (fork["log_end"] <= offset)),
    )


def _gave_up(fork: Column, leader_epoch: Column, offset: Column) -> Column:
    open_ = offset.isNull() | fork["log_end"].isNull()
    lacking = (offset >= fork["log_end"]) | (offset < _had_before(fork, leader_epoch))
    return (fork["leader_epoch"] > leader_epoch) & (open_ | lacking)


def _had_before(fork: Column, leader_epoch: Column) -> Column:
    """Up to which offset (exclusive) the new leader had its log before it heard of ``leader_epoch``, and kept it."""
    earlier = f.array_max(f.filter(fork["before"], lambda end: end["leader_epoch"] < leader_epoch))
    since = f.filter(fork["before"], lambda end: end["leader_epoch"] >= leader_epoch)
    lowest = f.array_min(f.transform(since, lambda end: end["lowest"]))
    return f.least(f.coalesce(earlier["last"], f.lit(0)), lowest, fork["log_end"])


def _or_zero(column: str) -> Column:
    return f.coalesce(column, f.lit(0))
