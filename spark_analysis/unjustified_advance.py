"""When did a leader count on records that a member of its ISR did not have?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.model import CONTROLLER_ID
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import findings

_ORDER = ("time_ns", "claims", "incarnation", "sequence")
_NAMED = {"row": "sequence", "other_node": "member"} | {
    name: name for name in ("leader_epoch", "time_ns", "node", "incarnation")
}
_CLAIM = ("time_ns", "node", "incarnation", "sequence", "leader_epoch", "watermark", "before", "since")


def unjustified_advances(tables: Tables) -> DataFrame:
    """``unjustified-advance`` and ``unjustified-join``, as ``checkers.unjustified_advance`` defines them.

    Every claim of a leader is put among the rows of the member that it is about; then running maxima give how far that
    member's log reached. A timeline is sorted once by replica and once by member, whatever its length, and the leaders'
    turning points once by partition.
    """
    timeline = tables.timeline.where(f.col("topic").isNotNull())
    ends = timeline.where(f.col("kind").isin("state", "truncation", "log_start"))
    both = _own_rows(ends).unionByName(_claims(ends, _decisions(timeline)))
    rows = Window.partitionBy(*PLACE, "member").orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, 0)
    numbered = both.withColumns({"cut": f.sum("cuts").over(rows), "heard": f.max("epoch").over(rows)})
    since_cut = Window.partitionBy(*PLACE, "member", "cut").orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, 0)
    known = numbered.withColumn("reached", f.max("log_end").over(since_cut)).where(f.col("claims") == 1)
    short = f.col("watermark") > f.col("reached")
    unheard = _rose() & (f.col("heard") < f.col("since"))
    unfounded = known.where(f.col("reached").isNotNull() & (short | f.coalesce(unheard, f.lit(False))))
    first = f.min_by(f.struct(*_CLAIM, "reached"), f.struct("sequence"))
    key = [*PLACE, "node", "incarnation", "leader_epoch", "member"]
    found = unfounded.groupBy(*key).agg(first.alias("first")).select(*PLACE, "member", "first.*")
    kind = f.when(_rose(), "unjustified-advance").otherwise("unjustified-join")
    lacking = f.when(short, f.col("reached")).otherwise(f.col("before"))
    committed = findings(found, kind, **_NAMED, offset=lacking, until="watermark")
    let_in = findings(_let_in(timeline, ends), "unjustified-join", **_NAMED, offset="reached", until="start")
    return committed.unionByName(let_in)


def _let_in(timeline: DataFrame, ends: DataFrame) -> DataFrame:
    """The replicas that joined the ISR without having reached the start of their leader's epoch.

    Returns:
        ``run, topic, partition, leader_epoch, member, time_ns, node, incarnation, sequence, reached, start``.
    """
    decided = timeline.where((f.col("node") == CONTROLLER_ID) & f.col("kind").isin("election", "isr"))
    last = f.lag(f.struct("leader_epoch", "isr")).over(
        Window.partitionBy(*PLACE).orderBy("time_ns", "incarnation", "sequence")
    )
    steps = decided.withColumn("last", last).where(f.col("last.leader_epoch") == f.col("leader_epoch"))
    joined = steps.withColumn("member", f.explode(f.array_except("isr", "last.isr"))).where("member != leader")
    row = ("time_ns", "incarnation", "sequence")
    states = ends.where((f.col("kind") == "state") & (f.col("role") == "leader") & f.col("leader_epoch").isNotNull())
    starts = states.groupBy(*PLACE, f.col("node").alias("leader"), "leader_epoch").agg(
        f.min_by("log_end_offset", f.struct("incarnation", "sequence")).alias("start")
    )
    known = joined.select(*PLACE, "leader", "leader_epoch", "member", "node", *row)
    began = known.join(starts, on=[*PLACE, "leader", "leader_epoch"], how="inner")
    reaches = ends.select(
        *PLACE, "leader_epoch", "log_end_offset",
        f.col("node").alias("member"),
        f.col("time_ns").alias("row_ns"),
    )  # fmt: skip
    both = f.broadcast(began).join(reaches, on=[*PLACE, "leader_epoch", "member"], how="inner")
    by_then = both.where(f.col("row_ns") <= f.col("time_ns"))
    key = [*PLACE, "leader_epoch", "member"]
    reached = by_then.groupBy(*key, "node", *row, "start").agg(f.max("log_end_offset").alias("reached"))
    short = reached.where(f.col("reached") < f.col("start"))
    first = f.min_by(f.struct("node", *row, "reached", "start"), f.struct(*row))
    return short.groupBy(*key).agg(first.alias("first")).select(*key, "first.*")


def _rose() -> Column:
    return f.coalesce(f.col("watermark") > f.col("before"), f.lit(False))


def _own_rows(ends: DataFrame) -> DataFrame:
    """The rows of members about their own logs."""
    return ends.select(
        *PLACE, f.col("node").alias("member"), "time_ns", f.lit(0).alias("claims"), "incarnation", "sequence",
        f.when(f.col("kind") == "state", 0).otherwise(1).alias("cuts"),
        f.col("log_end_offset").alias("log_end"),
        f.col("leader_epoch").alias("epoch"),
        *[f.lit(None).cast(kind).alias(name) for name, kind in
          (("node", "int"), ("leader_epoch", "int"), ("watermark", "long"), ("before", "long"), ("since", "int"))],
    )  # fmt: skip


def _decisions(timeline: DataFrame) -> DataFrame:
    """The replicas that may be elected, by the controller's rows: ``decided``."""
    elr = f.from_json(f.get_json_object("detail", "$.elr"), "array<int>")
    none = f.array().cast("array<int>")
    may_lead = f.concat(f.coalesce("isr", none), f.coalesce(elr, none))
    decided = f.struct("leader_epoch", "partition_epoch", may_lead.alias("may_lead"))
    decisions = timeline.where((f.col("node") == CONTROLLER_ID) & f.col("kind").isin("election", "isr"))
    return decisions.select(*PLACE, "time_ns", "incarnation", "sequence", decided.alias("decided"))


def _claims(ends: DataFrame, decisions: DataFrame) -> DataFrame:
    """The rows of leaders in which the watermark or the ISR has changed, once for each other member."""
    rows = Window.partitionBy(*PLACE, "node").orderBy("incarnation", "sequence")
    term = f.struct("incarnation", "role", "leader_epoch")
    watermark = f.coalesce("high_watermark", f.lit(0))
    states = ends.where(f.col("kind") == "state").withColumns(
        {
            "watermark": watermark,
            "led": f.coalesce(f.lag(term).over(rows).eqNullSafe(term), f.lit(False)),
            "last": f.lag(f.struct(watermark.alias("watermark"), "isr")).over(rows),
            "begins": f.when(~_goes_on(f.lag(term).over(rows)), f.coalesce("leader_epoch", f.lit(-1))),
        }
    )
    so_far = rows.rowsBetween(Window.unboundedPreceding, 0)
    states = states.withColumn("since", f.last("begins", ignorenulls=True).over(so_far))
    before = f.when(f.col("led"), f.col("last.watermark"))
    same = f.col("led") & (f.col("last.watermark") == f.col("watermark")) & f.col("last.isr").eqNullSafe(f.col("isr"))
    changed = states.where((f.col("role") == "leader") & f.col("isr").isNotNull() & ~f.coalesce(same, f.lit(False)))
    known = _with_decisions(changed.withColumn("before", before), decisions)
    counted = f.when(_rose(), f.array_union("isr", _may_lead())).otherwise(f.array_distinct("isr"))
    members = known.withColumn("member", f.explode(counted))
    return members.where(f.col("member") != f.col("node")).select(
        *PLACE, "member", "time_ns", f.lit(1).alias("claims"), "incarnation", "sequence", f.lit(0).alias("cuts"),
        f.lit(None).cast("long").alias("log_end"), f.lit(None).cast("int").alias("epoch"),
        "node", "leader_epoch", "watermark", "before", "since",
    )  # fmt: skip


def _with_decisions(claims: DataFrame, decisions: DataFrame) -> DataFrame:
    """``claims`` with ``last_decided``: the last decision until then; null: none is known."""
    is_claim = f.col("decided").isNull()
    until_then = Window.partitionBy(*PLACE).orderBy("time_ns", is_claim, "incarnation", "sequence")
    both = claims.unionByName(decisions, allowMissingColumns=True)
    last = f.last("decided", ignorenulls=True).over(until_then.rowsBetween(Window.unboundedPreceding, 0))
    return both.withColumn("last_decided", last).where(is_claim)


def _may_lead() -> Column:
    """The replicas that the controller may elect, unless the leader knows of decisions that the timeline lacks."""
    last = f.col("last_decided")
    of_this_epoch = last["leader_epoch"].eqNullSafe(f.col("leader_epoch"))
    counts = of_this_epoch & (last["partition_epoch"] >= f.col("partition_epoch"))
    return f.when(f.coalesce(counts, f.lit(False)), last["may_lead"]).otherwise(f.array().cast("array<int>"))


def _goes_on(before: Column) -> Column:
    """Whether the leader of a row goes on in the epoch of the row ``before``, or in the next."""
    leads = (before["role"] == "leader") & (before["incarnation"] == f.col("incarnation"))
    step = f.col("leader_epoch") - before["leader_epoch"]
    return f.coalesce(leads & step.isin(0, 1), f.lit(False))


QUESTIONS = (Question(unjustified_advances),)
