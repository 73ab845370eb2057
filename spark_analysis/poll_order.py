"""Where did a consumer go back, or skip a record?"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.history.schema import REBALANCES
from spark_analysis.blocks import Earlier, with_earlier
from spark_analysis.leadership import cut_off, deleted_to, gave_up_some, thrown_back
from spark_analysis.question import Question
from spark_analysis.records import is_hidden, is_uncommitted, reads
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Activity, Partitions, Records, Scale, findings, with_partitions

_READER = ["process", *PLACE]


def poll_order(
    tables: Tables, activity: Activity, records: Records, partitions: Partitions, scale: Scale
) -> DataFrame | None:
    """The four kinds that ``checkers.poll_order`` defines."""
    read = reads(tables.history)
    if scale.digests:
        doubtful = scale.hold(_doubtful(scale.digests.polls()), few=True)
        if doubtful.isEmpty():
            return None
        read = read.join(f.broadcast(doubtful), on=_READER, how="left_semi")
    steps = _steps(read, blocks=scale.large).where(f.col("offset") != f.col("before.offset") + 1)
    if scale.large:
        steps = scale.hold(steps)
        if steps.isEmpty():
            return None
    wrong = _wrong(steps, records, partitions, scale)
    if "txn" in activity.uses:
        polls = tables.history.where(f.col("f") == "poll")
        begun = polls.groupBy("run", "process").agg(f.min("time_ns").alias("begun_ns"))
        wrong = wrong.join(begun, on=["run", "process"], how="left")
    else:
        wrong = wrong.withColumn("begun_ns", f.lit(None).cast("bigint"))
    still = wrong.withColumn("grouped", f.lit(False))
    return _answers(_unmoved(wrong, tables.history) if "move" in activity.uses else still, partitions)


def _answers(steps: DataFrame, partitions: Partitions) -> DataFrame:
    skip = f.col("skipped").isNotNull()
    kind = f.concat(
        f.when(f.col("within"), "int-").otherwise(""), f.when(skip, "poll-skip").otherwise("nonmonotonic-poll")
    )
    # A sampled timeline does not show where the winner's log ended.
    position = f.when(~f.col("sampled"), f.col("before.offset"))
    thrown = thrown_back(f.col("before.leader_epoch"), position, f.col("time_ns")) | _stood_behind()
    return findings(
        with_partitions(steps, partitions),
        kind,
        **{name: name for name in ("row", "time_ns", "process")},
        offset=f.coalesce("skipped.offset", "offset"),
        value=f.when(skip, f.col("skipped.value")).otherwise(f.col("value")),
        leader_epoch=f.when(skip, f.col("skipped.epoch")).otherwise(f.col("leader_epoch")),
        excuse=f.when(f.col("grouped"), "group")
        .when(skip & f.col("gone"), "retention")
        .when(thrown | (skip & _passed_over()), "unclean"),
        other_offset="before.offset",
        until=f.when(skip, f.col("offset")),
        since_ns=f.when(skip, f.col("before.time_ns")),
    )


def _stood_behind() -> Column:
    """Whether the consumer may have passed, without being given them, markers that an unclean election gave up."""
    last, following = f.col("before"), f.col("following")

    def held(election: Column) -> Column:
        older = f.coalesce(following["epoch"] < election["leader_epoch"], f.lit(True))
        return f.coalesce((following["offset"] < election["log_end"]) & older, f.lit(False))

    def wrote(election: Column, term: Column) -> Column:
        led = term["end_ns"].isNull() | (term["end_ns"] >= f.col("begun_ns"))
        return led & (term["leader_epoch"] >= last["leader_epoch"]) & gave_up_some(election, term, last["offset"] + 1)

    def threw(election: Column) -> Column:
        lacking = f.exists("terms", lambda term: wrote(election, term))
        return (election["time_ns"] <= f.col("time_ns")) & ~held(election) & lacking

    return f.col("marked") & f.exists("unclean", threw)


def _passed_over() -> Column:
    """Whether the leader then lacked the record, or it has been given up and what was at its offset is unknown."""
    epoch = f.col("skipped.epoch")
    passed = f.when(~f.col("sampled"), f.col("skipped.offset"))  # else the winner's log end is unknown
    lacking = epoch.isNotNull() & thrown_back(epoch, passed, f.col("time_ns"))
    unknown = f.col("skipped.epoch").isNull() | f.col("leader_epoch").isNull()
    hidden = f.coalesce(f.col("skipped.hidden_ns") <= f.col("time_ns"), f.lit(False))
    return lacking | hidden | (unknown & cut_off(f.col("skipped.offset"), f.col("time_ns")))


def _doubtful(intervals: DataFrame) -> DataFrame:
    """The processes that were not given every offset of a partition once and in order: a quick look."""
    before = Window.partitionBy(*_READER).orderBy("first_row")
    follows = (f.col("first") == f.lag("last").over(before) + 1) & (f.col("first_row") > f.lag("last_row").over(before))
    wrong = intervals.select(*_READER, (~f.col("steady") | ~f.coalesce(follows, f.lit(True))).alias("wrong"))
    return wrong.where("wrong").select(*_READER).distinct()


def _steps(read: DataFrame, *, blocks: bool) -> DataFrame:
    """Every delivery that has one before it, in the same operation (``within``) or in the last that ended ``ok``."""
    here = f.struct("offset", "row", "op", "leader_epoch", "time_ns")
    wanted = {"previous": Earlier(here, "last"), "position": Earlier(f.when(f.col("type") == "ok", here), "last")}
    known = with_earlier(read, ["process", *PLACE], "row", wanted, blocks=blocks)
    within = f.coalesce(f.col("previous.op") == f.col("op"), f.lit(False))
    placed = known.withColumn("within", within).withColumn(
        "before", f.when(within, f.col("previous")).otherwise(f.col("position"))
    )
    return placed.where(f.col("before").isNotNull())


def _wrong(steps: DataFrame, records: Records, partitions: Partitions, scale: Scale) -> DataFrame:
    """The steps back, and the gaps in which the partition holds a record.

    ``skipped``: the first of them in a gap that had not been deleted; ``gone``: all had been, or those that had not
    were not there yet. ``following``: the first record that the partition holds behind the consumer's position.
    """
    asked = with_partitions(steps, partitions).select(
        *steps.columns,
        f.col("before.offset").alias("begun"),
        f.greatest(f.col("before.offset"), deleted_to(f.col("time_ns")) - 1).alias("undeleted"),
    )
    places = asked.select(*PLACE, f.explode(f.array("begun", "undeleted")).alias("offset"))
    stored = with_partitions(records.all().where(f.col("offset").isNotNull()), partitions)
    hidden_ns = f.when(is_hidden(), f.col("aborted_ns"))
    fields = f.struct("offset", "value", f.col("logged_epoch").alias("epoch"), hidden_ns.alias("hidden_ns"))
    held = f.when(_is_held(), fields)
    placed = stored.select(*PLACE, "offset", held.alias("held")).unionByName(places, allowMissingColumns=True)
    beyond = {"skipped": Earlier(f.col("held"), "least")}
    following = with_earlier(placed, PLACE, "offset", beyond, descending=True, blocks=scale.large)
    known = (
        following.where(f.col("skipped").isNotNull()).groupBy(*PLACE, "offset").agg(f.first("skipped").alias("skipped"))
    )
    for name in ("begun", "undeleted"):
        beyond_it = known.select(*PLACE, f.col("offset").alias(name), f.col("skipped").alias(f"from_{name}"))
        asked = asked.join(beyond_it, on=[*PLACE, name], how="left")
    kept, skipped = (f.when(_was_there(f.col(name)), f.col(name)) for name in ("from_undeleted", "from_begun"))
    found = asked.withColumns({"skipped": f.coalesce(kept, skipped), "gone": kept.isNull()})
    back = f.col("offset") <= f.col("before.offset")
    return found.where(back | f.col("skipped").isNotNull()).select(
        *steps.columns, "skipped", "gone", f.col("from_begun").alias("following")
    )


def _was_there(record: Column) -> Column:
    """Whether a record lies in the gap, and is not newer than what was given before it and after it.

    A step back has no gap.
    """
    newest = f.greatest("before.leader_epoch", "leader_epoch")
    newer = f.col("leader_epoch").isNotNull() & (record["epoch"] > newest)
    return (record["offset"] < f.col("offset")) & ~f.coalesce(newer, f.lit(False))


def _is_held() -> Column:
    """Whether a consumer may not skip the record."""
    before = f.coalesce(f.col("offset") < f.col("leader.log_start_offset"), f.lit(False)) & ~f.col("marked")
    seen = f.col("seen_row").isNotNull() & (f.col("leader").isNull() | before)
    return (seen | (f.col("leader").isNotNull() & f.col("in_final_log"))) & ~is_uncommitted()


def _unmoved(steps: DataFrame, history: DataFrame) -> DataFrame:
    """The steps during which the partition was neither assigned nor revoked.

    ``grouped``: between two operations, and their process was in a group by then, which has no rebalance rows.
    """
    assigning = f.col("f").isin("assign", "subscribe") & f.col("type").isin("ok", "info")
    place = f.when(f.col("topic").isNotNull(), f.struct("topic", "partition"))
    assigned = (
        history.where(assigning)
        .groupBy("run", "process", "op", "f")
        .agg(f.min("index").alias("at"), f.collect_set(place).alias("named"))
    )
    rebalanced = history.where(f.col("f").isin(*REBALANCES) & f.col("topic").isNotNull()).select(
        *PLACE, "process", f.col("op").alias("during"), f.col("index").alias("at")
    )
    joined = assigned.where(f.col("f") == "subscribe").groupBy("run", "process").agg(f.min("at").alias("joined"))
    left = steps.alias("step").join(assigned.alias("move"), how="left_anti", on=_reassigned())
    kept = left.alias("step").join(rebalanced.alias("move"), how="left_anti", on=_rebalanced())
    unnamed = joined.join(rebalanced.select("run").distinct(), on="run", how="left_anti")
    known = kept.join(f.broadcast(unnamed), on=["run", "process"], how="left")
    return known.withColumn("grouped", ~f.col("within") & f.coalesce(f.col("joined") < f.col("row"), f.lit(False)))


def _reassigned() -> Column:
    same = (f.col("step.run") == f.col("move.run")) & (f.col("step.process") == f.col("move.process"))
    here = f.struct(f.col("step.topic"), f.col("step.partition"))
    return same & _meanwhile() & ~f.array_contains("move.named", here)


def _rebalanced() -> Column:
    keys = (*PLACE, "process")
    same = reduce(and_, [f.col(f"step.{key}") == f.col(f"move.{key}") for key in keys])
    during = (f.col("move.during") == f.col("step.op")) | (f.col("move.during") == f.col("step.before.op"))
    return same & (during | _meanwhile())


def _meanwhile() -> Column:
    return (f.col("move.at") >= f.col("step.before.row")) & (f.col("move.at") < f.col("step.row"))


QUESTIONS = (Question(poll_order),)
