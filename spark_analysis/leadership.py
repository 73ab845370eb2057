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
        * ``unclean``: an array of ``{time_ns, leader_epoch}``, the unclean elections;
        * ``terms``: an array of ``{leader_epoch, begin_ns, node, incarnation, end_ns, first_sequence, first_log_end,
          log_end, high_watermark, last_ns, next_ns}``, ordered by its fields in this order. A term lasts from a node's
          first row in that role and epoch to its first row in another (``end_ns``, null: never); ``log_end`` and
          ``high_watermark`` are its maxima; ``last_ns`` is when that incarnation of the node last wrote anything,
          ``next_ns`` when its next incarnation first did (null: never).
    """
    marks, terms = _marks(timeline), _leader_terms(timeline)
    return marks.join(terms, on=list(PLACE), how="full")


def _marks(timeline: DataFrame) -> DataFrame:
    final = (f.col("kind") == "final") & (f.col("role") == "leader")
    unclean = (f.col("kind") == "election") & (f.get_json_object("detail", "$.clean") == "false")
    said = f.struct("leader_epoch", "time_ns", "node", "high_watermark", "log_end_offset", "log_start_offset")
    rows = timeline.where(f.col("topic").isNotNull() & (final | unclean))
    return rows.groupBy(*PLACE).agg(
        f.max(f.when(final, said)).alias("leader"),
        f.collect_list(f.when(unclean, f.struct("time_ns", "leader_epoch"))).alias("unclean"),
    )


def _leader_terms(timeline: DataFrame) -> DataFrame:
    terms = _terms(timeline).where(f.col("role") == "leader")
    joined = terms.join(f.broadcast(_lives(timeline)), on=["run", "node", "incarnation"], how="inner")
    fields = (
        "leader_epoch", "begin_ns", "node", "incarnation", "end_ns", "first_sequence", "first_log_end", "log_end",
        "high_watermark", "last_ns", "next_ns",
    )  # fmt: skip
    return joined.groupBy(*PLACE).agg(f.sort_array(f.collect_list(f.struct(*fields))).alias("terms"))


def _terms(timeline: DataFrame) -> DataFrame:
    states = timeline.where((f.col("kind") == "state") & f.col("topic").isNotNull())
    log_end, watermark = _or_zero("log_end_offset"), _or_zero("high_watermark")
    grouped = states.groupBy(*PLACE, "node", "incarnation", "role", "leader_epoch").agg(
        f.min("sequence").alias("first_sequence"),
        f.min("time_ns").alias("begin_ns"),
        f.min_by(log_end, "sequence").alias("first_log_end"),
        f.max(log_end).alias("log_end"),
        f.max(watermark).alias("high_watermark"),
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
    ended = term["end_ns"].isNotNull() & (term["end_ns"] < f.col("invoked_ns"))
    return (term["begin_ns"] <= f.col("acked_ns")) & ~ended


def given_up(leader_epoch: Column, time_ns: str) -> Column:
    """Whether one of the row's ``unclean`` elections began a later epoch than the record's.

    Where that is null: whether one came at or after the column ``time_ns``.
    """
    later = f.exists("unclean", lambda election: election["leader_epoch"] > leader_epoch)
    since = f.exists("unclean", lambda election: election["time_ns"] >= f.col(time_ns))
    return f.when(leader_epoch.isNull(), since).otherwise(later)


def _or_zero(column: str) -> Column:
    return f.coalesce(column, f.lit(0))
