"""Which committed offsets were lost, and which lie beyond the log?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.history.schema import FENCED
from spark_analysis.group_commits import WHOSE, automatic
from spark_analysis.leadership import cut_off
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Partitions, findings, with_partitions


def lost_commits(tables: Tables, partitions: Partitions) -> DataFrame:
    """``lost-commit`` and ``commit-beyond-end``, as ``checkers.lost_commit`` defines them."""
    rows = tables.history.where(f.col("f").isin("commit", "committed") & f.col("topic").isNotNull())
    by_themselves = automatic(tables.history)
    told_of = rows.join(by_themselves, on=list(WHOSE), how="left_anti")
    gone_back = _gone_back(rows.join(by_themselves, on=list(WHOSE), how="inner"), tables.history)
    return _lost(told_of).unionByName(gone_back).unionByName(_beyond(rows, partitions))


def _lost(rows: DataFrame) -> DataFrame:
    whose = [f.coalesce("group", f.lit("")).alias("group") if name == "group" else f.col(name) for name in WHOSE]
    end = f.struct("index", "type", "offset", "time_ns", "error", "generation")
    ended = f.max(f.when(f.col("type") != "invoke", end))
    # The invocation has the committed offset; the other rows' count only where there is none.
    asked = f.min(f.struct(f.col("type") != "invoke", "index", "offset", "generation"))
    operations = rows.groupBy(*whose, "op", "f", "process").agg(asked.alias("asked"), ended.alias("end"))
    operations = operations.select(
        "*", f.col("asked.index").alias("begun"), f.col("asked.offset").alias("asked_offset")
    )
    commits = operations.where(
        (f.col("f") == "commit") & f.coalesce(f.col("end.type") != "fail", f.lit(True))
    ).select(
        *WHOSE, "begun",
        f.col("asked_offset").alias("stored"),
        f.when(f.col("end.type") == "ok", f.col("end.index")).alias("ended"),
        f.col("end.time_ns").alias("ended_ns"),
        _generation().alias("of"),
    )  # fmt: skip
    answer = operations.where((f.col("f") == "committed") & (f.col("end.type") == "ok"))
    acked = commits.where(f.col("ended").isNotNull())
    before = acked.select(*WHOSE, f.col("ended").alias("at"), "begun", "stored", "ended_ns", "of")
    asking = answer.select(*WHOSE, f.col("begun").alias("at"), "process", "end")
    events = before.unionByName(asking, allowMissingColumns=True)
    earlier = Window.partitionBy(*WHOSE).orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    last = f.max(f.when(f.col("begun").isNotNull(), f.struct("begun", "stored", "ended_ns", "of"))).over(earlier)
    told_something = f.col("last").isNotNull() | f.col("end.offset").isNotNull()
    known = events.withColumn("last", last).where(f.col("end").isNotNull() & told_something)
    whose_same = [f.col(f"answer.{name}") == f.col(f"made.{name}") for name in WHOSE]
    possible = f.col("made.stored") == f.col("answer.end.offset")
    in_time = f.col("made.begun") < f.col("answer.end.index")
    since = f.coalesce("answer.last.begun", "made.begun")
    fenced = f.coalesce(f.col("made.of") < f.col("answer.last.of"), f.lit(False))
    not_over = f.when(f.col("made.ended").isNull(), ~fenced).otherwise(f.col("made.ended") >= since)
    lost = known.alias("answer").join(
        commits.alias("made"), how="left_anti", on=[*whose_same, possible, in_time, not_over]
    )
    first = commits.groupBy(*WHOSE, "stored").agg(f.min("begun").alias("first"))
    ever = lost.alias("answer").join(
        first.alias("made"), how="left", on=[*whose_same, possible, f.col("made.first") < f.col("answer.end.index")]
    )
    had = f.col("answer.end.offset").isNull() | f.col("made.first").isNotNull()
    return findings(
        ever.select("answer.*", f.when(had, f.col("answer.last.ended_ns")).alias("since_ns")),
        "lost-commit",
        offset="end.offset",
        row="end.index",
        time_ns="end.time_ns",
        process="process",
        other_offset="last.stored",
        since_ns="since_ns",
    )


def _generation() -> Column:
    """Of a commit that was acknowledged, or refused because of it and sent in no later one: that of its member."""
    generation = f.col("asked.generation")
    refused = f.col("end.error").isin(*FENCED) & (f.col("end.generation") <= generation)
    return f.when((generation >= 0) & ((f.col("end.type") == "ok") | refused), generation)


def _gone_back(rows: DataFrame, history: DataFrame) -> DataFrame:
    """What groups whose clients commit by themselves were given that is less than they had been given before."""
    begun = f.min(f.struct(f.col("type") != "invoke", "index"))
    ended = f.max(f.struct(f.col("type") != "invoke", "index", "type", "offset", "time_ns", "process"))
    first = f.min("began_ns").alias("began_ns")
    operations = rows.groupBy(*WHOSE, "op", "f").agg(begun.alias("begun"), ended.alias("end"), first)
    others = operations.where(f.col("f") == "commit").select(*WHOSE).distinct()
    resets = history.where(f.col("f") == "out_of_range").groupBy("run", "group").agg(f.min("index").alias("reset"))
    answers = operations.where((f.col("f") == "committed") & (f.col("end.type") == "ok")).join(
        others, on=list(WHOSE), how="left_anti"
    )
    shown = answers.where(f.col("end.offset").isNotNull()).select(
        *WHOSE, f.col("end.index").alias("at"), f.struct("end.index", "end.offset", "end.time_ns").alias("shown")
    )
    asking = answers.select(*WHOSE, f.col("begun.index").alias("at"), "end", "began_ns")
    earlier = Window.partitionBy(*WHOSE).orderBy("at").rangeBetween(Window.unboundedPreceding, -1)
    events = shown.unionByName(asking, allowMissingColumns=True).withColumn("before", f.max("shown").over(earlier))
    less = f.coalesce("end.offset", f.lit(-1)) < f.col("before.offset")
    lost = events.where(f.col("end").isNotNull() & less).join(resets, on=["run", "group"], how="left")
    return findings(
        lost.where(f.col("reset").isNull() | (f.col("end.index") < f.col("reset"))),
        "lost-commit",
        offset="end.offset",
        row="end.index",
        time_ns="end.time_ns",
        process="end.process",
        other_offset="before.offset",
        since_ns="before.time_ns",
        by_ns="began_ns",
    )


def _beyond(rows: DataFrame, partitions: Partitions) -> DataFrame:
    stored = with_partitions(rows.where(f.col("type") == "ok"), partitions).where("used")
    beyond = stored.where(f.col("offset") > f.col("leader.log_end_offset"))
    first = f.min(f.struct("index", "time_ns", "process")).alias("first")
    offsets = beyond.groupBy(*PLACE, "offset", "leader", "unclean").agg(first)
    since = offsets.withColumn("since_ns", f.col("first.time_ns"))
    return findings(
        since,
        "commit-beyond-end",
        offset="offset",
        excuse=f.when(cut_off(f.col("offset") - 1, f.col("since_ns")), "unclean"),
        row="first.index",
        time_ns="since_ns",
        process="first.process",
        other_offset="leader.log_end_offset",
    )


QUESTIONS = (Question(lost_commits, about="commit"),)
