"""Where did a high watermark fall, who led one epoch together, and what came although no watermark had passed it?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.leadership import led_between, led_during
from spark_analysis.metadata import watermarks as told_watermarks
from spark_analysis.question import Question
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Partitions, Records, Scale, findings, with_partitions
from spark_analysis.watermark_history import had_passed, watermarks, with_passing


def hw_regressions_within_terms(tables: Tables) -> DataFrame:
    """``hw-regression`` within a leader's term, as ``checkers.hw_regression`` defines it."""
    leading = tables.timeline.where((f.col("kind") == "state") & (f.col("role") == "leader"))
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


def hw_regressions_between_terms(partitions: Partitions) -> DataFrame:
    """``hw-regression`` at the beginning of an epoch, as ``checkers.hw_regression`` defines it."""
    ranked = partitions.rows.select(*PLACE, "terms", "unclean", f.posexplode("terms").alias("place", "term"))
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


def hw_regressions_in_answers(tables: Tables) -> DataFrame:
    """``hw-regression`` in what clients were told, as ``checkers.hw_regression`` defines it."""
    told = Window.partitionBy(*PLACE).orderBy("leader_epoch", "sequence")
    before = {name: f.lag(name).over(told) for name in ("leader_epoch", "sequence", "high_watermark")}
    steps = told_watermarks(tables.metadata).withColumns({f"{name}_before": one for name, one in before.items()})
    same_epoch = f.col("leader_epoch") == f.col("leader_epoch_before")
    return findings(
        steps.where(f.col("high_watermark") < f.col("high_watermark_before")),
        "hw-regression",
        offset="high_watermark",
        excuse=f.when(~same_epoch, "elected"),
        row="sequence",
        other_offset="sequence_before",
        until="high_watermark_before",
        **{name: name for name in ("leader_epoch", "time_ns", "node", "incarnation")},
    )


def _true_high_watermark(terms: Column) -> Column:
    """The true high watermark after ``terms``: every term may raise it; a shorter log lowers it, and is reported."""

    def after(held: Column, term: Column) -> Column:
        return f.greatest(f.least(held, term["first_log_end"]), term["high_watermark"])

    return f.aggregate(terms, f.lit(0).cast("long"), after)


def two_leaders(partitions: Partitions) -> DataFrame:
    """``two-leaders``, as ``checkers.hw_regression`` defines it."""
    leaders = partitions.rows.select(*PLACE, f.explode("terms").alias("term")).groupBy(*PLACE, "term.leader_epoch")
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


def acks_and_leaders(tables: Tables, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    """Every send acknowledged with acks=all at a known offset, with the leaders of the time of the send.

    Returns:
        the columns of records and partitions; ``leaders``: the terms, empty when none is known; ``justified``: whether
        one of them ever had a high watermark above the record, and any leader by the time of the acknowledgement.
    """
    acked = f.col("ack_row").isNotNull() & (f.col("acks") == ALL) & f.col("offset").isNotNull()
    known = _passed(records.unsettled.where(acked), tables, partitions, scale).withColumn(
        "leaders", f.filter("terms", led_during)
    )
    above = f.exists("leaders", lambda term: term["high_watermark"] > f.col("offset"))
    return known.withColumn("justified", above & (f.col("sampled") | had_passed(f.col("acked_ns"))))


def _passed(records: DataFrame, tables: Tables, partitions: Partitions, scale: Scale) -> DataFrame:
    """With the columns of their partition, and since when a leader had committed them."""
    marks = watermarks(tables.timeline)
    return with_partitions(with_passing(records, marks, "offset", blocks=scale.large), partitions)


def unjustified_acks(tables: Tables, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    """``unjustified-ack`` and ``uncommitted-read``, as ``checkers.hw_regression`` defines them."""
    return _of_acks(tables, records, partitions, scale).unionByName(_of_reads(tables, records, partitions, scale))


def _of_acks(tables: Tables, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    ever = f.col("sampled") & f.exists("terms", lambda term: term["high_watermark"] > f.col("offset"))
    return findings(
        acks_and_leaders(tables, records, partitions, scale).where(~f.col("justified") & accounted() & ~ever),
        "unjustified-ack",
        offset="offset",
        value="value",
        leader_epoch=f.array_max(f.transform("leaders", lambda term: term["leader_epoch"])),
        row="ack_row",
        time_ns="acked_ns",
        process="process",
        acks="acks",
    )


def _of_reads(tables: Tables, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    """Of every record at an offset the first delivery, if no leader had committed it by then."""
    read, then = (
        _passed(records.unsettled.where(f.col("read_row").isNotNull()), tables, partitions, scale),
        f.col("read_ns"),
    )
    ever = f.exists("terms", lambda term: term["high_watermark"] > f.col("offset"))
    unfounded = read.where(~f.when(f.col("sampled"), ever).otherwise(had_passed(then)))
    led = unfounded.withColumn("leaders", f.filter("terms", lambda term: led_between(term, then, then)))
    known = (f.size("leaders") > 0) & f.forall("leaders", lambda term: _wrote_after(term, then))
    return findings(
        led.where(known),
        "uncommitted-read",
        offset="offset",
        value="value",
        leader_epoch=f.array_max(f.transform("leaders", lambda term: term["leader_epoch"])),
        row="read_row",
        time_ns="read_ns",
    )


def accounted() -> Column:
    """Whether every leader of the time of the send is known, and wrote a row after it."""
    return (f.size("leaders") > 0) & f.forall("leaders", _accounted)


def _accounted(term: Column) -> Column:
    """Whether this leader, had it given the acknowledgement, would have reported its high watermark."""
    anew = term["next_ns"].isNotNull() & (term["next_ns"] <= f.col("invoked_ns"))
    return _wrote_after(term, f.col("acked_ns")) | anew


def _wrote_after(term: Column, time_ns: Column) -> Column:
    """Whether a leader wrote a row after that time; where the timeline is ``sampled``: was seen to lead on."""
    return f.when(f.col("sampled"), term["last_row_ns"]).otherwise(term["last_ns"]) > time_ns


QUESTIONS = (
    Question(hw_regressions_within_terms),
    Question(hw_regressions_between_terms),
    Question(hw_regressions_in_answers),
    Question(two_leaders),
    Question(unjustified_acks, about="record"),
)
