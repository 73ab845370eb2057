"""At which offsets do the replicas' logs disagree?"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.history.schema import ColumnType
from harness.payload import FOREIGN_VALUE
from spark_analysis.blocks import different, merged, word_of
from spark_analysis.demands import Damage, Demands
from spark_analysis.leadership import still_given_up
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables, table_of
from spark_analysis.views import LogWords, Partitions, Scale, findings, with_partitions

_NO_VALUE = -(2**63)
"""Stands for the value of a record that is not a workload's, so that it can be compared."""


def replica_divergence(
    tables: Tables, words: LogWords, partitions: Partitions, *, demands: Demands, damage: Damage, scale: Scale
) -> DataFrame | None:
    """``replica-divergence``, as ``checkers.replica_divergence`` defines it."""
    ranges = f.broadcast(_committed_ranges(tables.timeline, demands.at_rest))
    logs = tables.replica_logs
    if scale.large:
        suspects = scale.hold(_suspects(words.rows, ranges), few=True)
        if suspects.isEmpty():
            return None
        near = f.broadcast(suspects)
        logs = logs.withColumn("word", word_of("offset")).join(near, on=[*PLACE, "word"], how="left_semi")
    disagree = _disagreements(logs.withColumn("foreign", f.lit(False)), ranges).withColumn("damaged", f.lit(False))
    if damage.rotten or damage.swapped:
        rot = f.broadcast(_rot(tables, words, damage))
        own = _own(_sound(logs, rot), damage)
        still = _disagreements(own, _whole(ranges, rot)).select(*PLACE, "offset", f.lit(True).alias("is"))
        disagree = disagree.join(still, on=[*PLACE, "offset"], how="left").withColumn("damaged", f.col("is").isNull())
    given_up = f.when(still_given_up(f.col("oldest"), f.col("offset")), "unclean")
    return findings(
        with_partitions(disagree, partitions),
        "replica-divergence",
        offset="offset",
        value=_known("value"),
        leader_epoch="oldest",
        excuse=f.when(f.col("damaged"), "damage").otherwise(given_up),
        other_value=_known("other_value"),
    )


def _disagreements(logs: DataFrame, ranges: DataFrame) -> DataFrame:
    """The offsets at which replicas disagree: ``run, topic, partition, offset, oldest, value, other_value``."""
    offsets = _epochs(logs, ranges).groupBy(*PLACE, "offset").agg(
        f.sum("holders").alias("holders"),
        f.sum("asked").alias("asked"),
        f.max("bound").alias("bound"),
        f.max("own_differ").alias("own_differ"),
        f.count(f.when(f.col("holders") > 0, 1)).alias("own_epochs"),
        f.max("differ").alias("differ"),
        f.min("leader_epoch").alias("oldest"),
        f.min_by("low_value", "leader_epoch").alias("value"),
        f.max_by("high_value", "leader_epoch").alias("other_value"),
    )  # fmt: skip
    lacking = (f.col("holders") > 0) & (f.col("asked") < f.col("bound"))
    disagree = offsets.where(lacking | f.col("own_differ") | (f.col("own_epochs") > 1) | f.col("differ"))
    return disagree.select(*PLACE, "offset", "oldest", "value", "other_value")


def _rot(tables: Tables, words: LogWords, damage: Damage) -> DataFrame:
    """The logs that a fault has damaged unnoticed: ``rot``, of ``{node, since}``, per partition.

    ``since``: the lowest offset at which the log is damaged.
    """
    logs = tables.replica_logs
    named = [
        {"run": run, "topic": topic, "partition": partition, "node": node}
        for run, spoilt in damage.rotten.items()
        for topic, partition, node in spoilt
    ]
    types: dict[str, ColumnType] = {"run": "string", "topic": "string", "partition": "int32", "node": "int32"}
    spoilt = f.broadcast(table_of(logs.sparkSession, named, types))
    known = words.rows.where(f.col("damaged").isNotNull()).join(spoilt, on=[*PLACE, "node"], how="left_semi")
    least = known.groupBy(*PLACE, "node").agg(f.min("damaged").alias("since"))
    return least.groupBy(*PLACE).agg(f.collect_list(f.struct("node", "since")).alias("rot"))


def _sound(logs: DataFrame, rot: DataFrame) -> DataFrame:
    """``logs`` without what is damaged in those that are rotten."""
    rotten = f.exists("rot", lambda one: one["node"] == f.col("node"))
    known = logs.join(rot, on=list(PLACE), how="left")
    return known.where(f.col("intact") | ~f.coalesce(rotten, f.lit(False))).drop("rot")


def _own(logs: DataFrame, damage: Damage) -> DataFrame:
    """``logs`` with ``foreign``: the record is of another cluster, and a fault has put it into a log."""
    named = [
        {"run": run, "topic": topic, "partition": partition, "swapped": True}
        for run, places in damage.swapped.items()
        for topic, partition in places
    ]
    types: dict[str, ColumnType] = {"run": "string", "topic": "string", "partition": "int32", "swapped": "bool"}
    known = logs.join(f.broadcast(table_of(logs.sparkSession, named, types)), on=list(PLACE), how="left")
    foreign = f.col("swapped") & (f.col("value") >= FOREIGN_VALUE)
    return known.withColumn("foreign", f.coalesce(foreign, f.lit(False))).drop("swapped")


def _whole(ranges: DataFrame, rot: DataFrame) -> DataFrame:
    """``ranges`` in which no record may be missing from, behind the first damage of a rotten log."""

    def cut(one: Column) -> Column:
        since = f.array_min(f.transform(f.filter("rot", lambda x: x["node"] == one["node"]), lambda x: x["since"]))
        return one.withField("whole", f.least(one["whole"], since))

    known = ranges.join(rot, on=list(PLACE), how="left")
    return known.select(*PLACE, f.transform("ranges", cut).alias("ranges"))


def _epochs(logs: DataFrame, ranges: DataFrame) -> DataFrame:
    """What the replicas hold at each offset of each leader epoch; of what is ``foreign`` only the epoch counts.

    Returns:
        ``run, topic, partition, offset, leader_epoch, holders, asked, bound, own_differ, differ, low_value,
        high_value``. ``holders``: how many replicas that call the offset committed hold this epoch's record; ``asked``:
        how many of them are asked for it, ``bound``: how many are at all; ``differ``: whether two replicas hold
        different ones although one of them has an epoch, ``own_differ``: two of the holders do.
    """
    logs = logs.join(ranges, on=list(PLACE), how="left").repartition("offset", *PLACE)
    own = f.exists("ranges", lambda r: (r["node"] == f.col("node")) & _covers(r))
    known = logs.withColumns(
        {
            "own": f.coalesce(own, f.lit(False)),
            "value": f.when(~f.col("foreign"), f.coalesce("value", f.lit(_NO_VALUE))),
            "batch_crc": f.when(~f.col("foreign"), f.col("batch_crc")),
            "asked": f.coalesce(f.exists("ranges", lambda r: (r["node"] == f.col("node")) & _asks(r)), f.lit(False)),
            "bound": f.coalesce(f.size(f.filter("ranges", _asks)), f.lit(0)),
        }
    )
    return known.groupBy(*PLACE, "offset", "leader_epoch").agg(
        f.count(f.when(f.col("own"), 1)).alias("holders"),
        f.count(f.when(f.col("asked"), 1)).alias("asked"),
        f.max("bound").alias("bound"),
        f.coalesce(_vary(f.when(f.col("own"), f.col("value")), f.when(f.col("own"), f.col("batch_crc"))), f.lit(False))
        .alias("own_differ"),
        ((f.col("leader_epoch") >= 0) & f.coalesce(_vary(f.col("value"), f.col("batch_crc")), f.lit(False)))
        .alias("differ"),
        f.min("value").alias("low_value"),
        f.max("value").alias("high_value"),
    )  # fmt: skip


def _suspects(log_words: DataFrame, ranges: DataFrame) -> DataFrame:
    """The words of offsets at which a partition's replicas differ, or have an offset twice: a quick look.

    What they have is compared by 64 bits of hash.
    """
    known = merged(log_words, [*PLACE, "node"], contents=f.bit_xor("contents"))
    together = known.groupBy("word", *PLACE).agg(
        (f.min("bits") == f.max("bits")).alias("same_offsets"),
        ((f.min("contents") == f.max("contents")) & (f.max(f.col("rows") - different()) == 0)).alias("same_contents"),
        f.collect_set("node").alias("nodes"),
        f.min("low").alias("low"),
        f.max("high").alias("high"),
    )
    within = f.forall("ranges", lambda r: _excludes(r) | (_includes(r) & f.array_contains("nodes", r["node"])))
    joined = together.join(ranges, on=list(PLACE), how="left")
    plain = f.col("same_offsets") & f.col("same_contents") & f.coalesce(within, f.lit(True))
    return joined.where(~plain).select(*PLACE, "word")


def _excludes(committed: Column) -> Column:
    return (committed["log_start"] > f.col("high")) | (committed["end"] <= f.col("low"))


def _includes(committed: Column) -> Column:
    return (committed["log_start"] <= f.col("low")) & (f.col("high") < committed["end"])


def _vary(value: Column, crc: Column) -> Column:
    return (f.min(value) != f.max(value)) | (f.min(crc) != f.max(crc))


def _known(value: str) -> Column:
    return f.when(f.col(value) != _NO_VALUE, f.col(value))


def _covers(committed: Column) -> Column:
    return (committed["log_start"] <= f.col("offset")) & (f.col("offset") < committed["end"])


def _asks(committed: Column) -> Column:
    return (committed["log_start"] <= f.col("offset")) & (f.col("offset") < committed["whole"])


def _committed_ranges(timeline: DataFrame, at_rest: Sequence[str]) -> DataFrame:
    """The range that each replica must hold: ``ranges``, of ``{node, log_start, end, whole}``, per partition.

    It is committed up to ``end``; the replica should have all of it up to ``whole``, which is the same here.
    ``at_rest``: the runs in which it is the whole log, where the leader has the replica in its ISR.
    """
    final = timeline.where((f.col("kind") == "final") & f.col("topic").isNotNull())
    # A watermark that was written to disk shortly before a crash may be ahead of the log that survived it.
    end = f.least("high_watermark", "log_end_offset")
    up = f.col("run").isin(*at_rest) & ~f.col("role").eqNullSafe("offline")
    whole = f.when(up, f.col("log_end_offset")).alias("whole")
    bounds = f.struct("node", f.coalesce("log_start_offset", f.lit(0)).alias("log_start"), end.alias("end"), whole)
    leader = f.struct("leader_epoch", "time_ns", "node", "isr")
    grouped = final.groupBy(*PLACE).agg(
        f.collect_list(f.when(f.col("high_watermark").isNotNull(), bounds)).alias("ranges"),
        f.max(f.when(f.col("role") == "leader", leader)).alias("leader"),
    )
    return grouped.select(*PLACE, f.transform("ranges", _range).alias("ranges"))


def _range(bounds: Column) -> Column:
    in_sync = f.coalesce(f.array_contains("leader.isr", bounds["node"]), f.lit(False))
    end = f.coalesce(f.when(in_sync, bounds["whole"]), bounds["end"])
    return f.struct(
        bounds["node"].alias("node"), bounds["log_start"].alias("log_start"), end.alias("end"), end.alias("whole")
    )


QUESTIONS = (Question(replica_divergence),)
