"""Where did a high watermark fall, and when did two brokers lead one epoch?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.question import Question
from spark_analysis.tables import PLACE
from spark_analysis.unjustified_ack import unjustified_acks
from spark_analysis.views import Views, findings


def hw_regressions_within_terms(views: Views) -> DataFrame:
    """``hw-regression`` within a leader's term, as ``checkers.hw_regression`` defines it."""
    leading = views.tables.timeline.where((f.col("kind") == "state") & (f.col("role") == "leader"))
    term = Window.partitionBy(*PLACE, "node", "incarnation", "leader_epoch").orderBy("sequence")
    watermark = f.coalesce("high_watermark", f.lit(0))
    steps = leading.withColumn("watermark", watermark).withColumn("before", f.lag("watermark").over(term))
    return findings(
        steps.where(f.col("watermark") < f.col("before")),
        "hw-regression",
        offset="watermark",
        row="sequence",
        until="before",
        **{name: name for name in ("leader_epoch", "time_ns", "node", "incarnation")},
    )


def hw_regressions_between_terms(views: Views) -> DataFrame:
    """``hw-regression`` at the beginning of an epoch, as ``checkers.hw_regression`` defines it."""
    ranked = views.partitions.select(*PLACE, "terms", "unclean", f.posexplode("terms").alias("place", "term"))
    held = ranked.withColumn("held", _true_high_watermark(f.slice("terms", f.lit(1), f.col("place"))))
    short = held.where(f.col("term.first_log_end") < f.col("held"))
    epoch = f.col("term.leader_epoch")
    unclean = f.exists(
        "unclean", lambda election: (election["leader_epoch"] == epoch) | election["taken"].eqNullSafe(epoch)
    )
    return findings(
        short,
        "hw-regression",
        offset="term.first_log_end",
        leader_epoch="term.leader_epoch",
        excuse=f.when(unclean, "unclean"),
        row="term.first_sequence",
        time_ns="term.begin_ns",
        node="term.node",
        incarnation="term.incarnation",
        until="held",
    )


def _true_high_watermark(terms: Column) -> Column:
    """The true high watermark after ``terms``: every term may raise it; a shorter log lowers it, and is reported."""

    def after(held: Column, term: Column) -> Column:
        return f.greatest(f.least(held, term["first_log_end"]), term["high_watermark"])

    return f.aggregate(terms, f.lit(0).cast("long"), after)


def two_leaders(views: Views) -> DataFrame:
    """``two-leaders``, as ``checkers.hw_regression`` defines it."""
    leaders = views.partitions.select(*PLACE, f.explode("terms").alias("term")).groupBy(*PLACE, "term.leader_epoch")
    epochs = leaders.agg(
        f.min("term.node").alias("node"),
        f.max("term.node").alias("other_node"),
        f.max("term.begin_ns").alias("time_ns"),
    )
    return findings(
        epochs.where(f.col("node") < f.col("other_node")),
        "two-leaders",
        **{name: name for name in ("leader_epoch", "time_ns", "node", "other_node")},
    )


QUESTIONS = (
    Question(hw_regressions_within_terms),
    Question(hw_regressions_between_terms),
    Question(two_leaders),
    Question(unjustified_acks, about="record"),
)
