"""Asks all questions about any number of runs in one Spark job."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f

from harness.errors import EnvironmentFault
from harness.findings import (
    COUNTS,
    GAPS_KEPT,
    Answers,
    Finding,
    FindingRange,
    HistoryGap,
    NodeLife,
    PartitionEnd,
    ReplicaEnd,
    position,
)
from harness.parts import Parts
from spark_analysis import sizing
from spark_analysis.attribution import with_frames
from spark_analysis.completeness import counts, lives, replicas
from spark_analysis.demands import Damage, Demands
from spark_analysis.digests import Digests
from spark_analysis.facts_asked import QUESTIONS_OF_FACT, facts_of
from spark_analysis.files import RunFiles, TableFile
from spark_analysis.finding_groups import deleted_together, first_of_groups
from spark_analysis.finding_ranges import finding_ranges
from spark_analysis.lags import lags
from spark_analysis.lost_write import lost_ranges
from spark_analysis.packing import packed
from spark_analysis.parallel_jobs import in_parallel
from spark_analysis.question import Question, questions_of
from spark_analysis.result_cache import cached_results
from spark_analysis.session import fatal_error, innermost
from spark_analysis.sizing import gathered
from spark_analysis.stalls import stalls
from spark_analysis.state_intervals import intervals
from spark_analysis.tables import PLACE, Tables, read_tables, table_by_run, united
from spark_analysis.unwatched import unwatched
from spark_analysis.views import Activity, Partitions, Scale, views_of
from spark_analysis.witnesses import Rows, witnesses

_REMEDY = "Check without Spark: --engine reference."
_WORKERS = "Executors need Python with NumPy and pyarrow for large runs: PYSPARK_PYTHON says which (docs/scale.md)."

_asking = threading.Lock()
"""Settings belong to the session, so one thread asks at a time; a check waits for a warm-up, and gains by it."""


def ask(
    spark: SparkSession,
    files: RunFiles,
    demands: Demands,
    damage: Damage,
    *,
    rules: Iterable[str],
    report: Callable[[str], None] = lambda stage: None,
) -> tuple[Answers, Mapping[str, Rows]]:
    """Ask everything about some runs.

    Args:
        spark: the session.
        files: where the runs are.
        demands: what they promise.
        damage: what faults did to them.
        rules: the file names of the rules whose questions are asked, see :func:`questions_of`.
        report: called, from any thread, with what is done from now on.

    Returns:
        the answers; and the rows that the findings may cite as evidence, by run and table.

    Raises:
        EnvironmentFault: Spark itself failed.
    """
    report("waiting for the warm-up" if _asking.locked() else "planning")
    questions = questions_of(rules)
    with _asking, _failures_in_words(), _read(spark, files, damage) as (tables, scale):
        looking = partial(views_of, tables, scale, demands, damage)
        nodes = partial(_of_nodes, spark, tables.timeline, demands)
        asked = partial(_asked, spark, questions, looking, report)
        parts = in_parallel(spark, [partial(_collected, nodes), asked])
        answers = _answers(list(files.runs), [row for rows in parts for row in rows])
        report("the evidence of the findings")
        rows = witnesses(spark, tables, answers.findings) if answers.findings else {}
        return answers, with_frames(spark, tables, files.wire, answers.findings, rows) if files.wire else rows


@contextmanager
def _read(spark: SparkSession, files: RunFiles, damage: Damage) -> Iterator[tuple[Tables, Scale]]:
    """The tables, of a session that is set for their size, and digests of them where they are large."""
    content = sizing.content(_sizes(files.tables))
    large = sizing.are_large(content, len(files.runs))
    only_run = files.runs[0] if large and len(files.runs) == 1 else None
    with (
        packed(spark, files.tables) as read,
        sizing.laid_out(spark, sizing.content(_sizes(read)), large=large),
        cached_results(spark, files.beside, large=large) as hold,
    ):
        tables = read_tables(spark, read, only_run)
        for table in tables if sizing.are_cached(content, len(_sizes(files.tables))) else ():
            table.persist()
        try:
            digests = Digests(spark, read, hold, only_run=only_run, healed_ns=damage.healed_ns) if large else None
            yield tables, Scale(hold, digests)
        finally:
            for table in tables:
                table.unpersist()


@contextmanager
def _failures_in_words() -> Iterator[None]:
    """What Spark raises becomes a sentence.

    Raises:
        EnvironmentFault: Spark failed.
    """
    try:
        yield
    except PythonException as error:
        reason = [line for line in str(error).splitlines() if line.strip()][-1]
        remedy = _WORKERS if "No module named" in reason else _REMEDY
        raise EnvironmentFault(f"Spark's Python workers failed: {reason}.", remedy) from error
    except Py4JJavaError as error:
        raise EnvironmentFault(f"Spark failed: {fatal_error() or innermost(error.java_exception)}.", _REMEDY) from error
    except (Py4JError, PySparkException) as error:
        lines = (line for line in str(error).splitlines() if line.strip())
        reason = fatal_error() or next(lines, type(error).__name__).rstrip(".")
        raise EnvironmentFault(f"Spark failed: {reason}.", _REMEDY) from error


def _sizes(files: Mapping[str, Sequence[TableFile]]) -> list[int]:
    return [file.size for several in files.values() for file in several]


def _asked(
    spark: SparkSession, questions: Sequence[Question], looking: Callable[[], Parts], report: Callable[[str], None]
) -> list[Row]:
    """The answers of the questions; those that need no findings do not wait for them."""
    views = looking()
    sensible = _sensible(questions, views.of(Activity))
    sections = [partial(_of_findings, spark, sensible, views, report), partial(_of_runs, views)]
    return [row for rows in in_parallel(spark, [partial(_collected, one) for one in sections]) for row in rows]


def _collected(sections: Callable[[], Mapping[str, DataFrame | None]]) -> list[Row]:
    """The rows of some sections of an answer: the section's name, and the row as JSON."""
    packed = [
        rows.select(f.lit(name).alias("section"), f.to_json(f.struct("*")))
        for name, rows in sections().items()
        if rows is not None
    ]
    return gathered(united(packed, DataFrame.union)).collect() if packed else []


def _of_findings(
    spark: SparkSession, questions: Sequence[Question], views: Parts, report: Callable[[str], None]
) -> dict[str, DataFrame | None]:
    """The findings, which are held, so that later questions about them do not plan all questions again."""
    planned = count(1)

    def plan(question: Question) -> DataFrame | None:
        rows = views.given_to(question.ask)
        report(f"question {next(planned)} of {len(questions)} planned")
        return rows

    parts = [rows for rows in in_parallel(spark, [partial(plan, one) for one in questions]) if rows is not None]
    report("computing")
    if not parts:
        return {}
    found = views.of(Scale).hold(gathered(united(parts)), few=True)
    return {
        "finding": first_of_groups(found),
        "deleted": deleted_together(found, views.of(Partitions).rows),
        "finding_range": finding_ranges(found),
        "lost_range": lost_ranges(found, views.of(Tables).replica_logs, views.of(Demands).sampled),
    }


def _of_nodes(spark: SparkSession, timeline: DataFrame, demands: Demands) -> dict[str, DataFrame | None]:
    """The answers from the nodes' timelines alone."""
    allowed, sampled = table_by_run(spark, "lag_ns", demands.lag_ns), demands.sampled
    return {
        "life": lives(timeline),
        "interval": intervals(timeline),
        "lag": lags(timeline, allowed) if demands.lag_ns else None,
        "stall": stalls(timeline, allowed) if demands.lag_ns else None,
        "unwatched": unwatched(timeline.where(f.col("run").isin(*sampled))) if sampled else None,
    }


def _of_runs(views: Parts) -> dict[str, DataFrame | None]:
    """The answers besides findings."""
    sections: dict[str, Callable[..., DataFrame | None]] = {
        "end": _ends,
        "history_gap": _first_gaps,
        "replica": replicas,
        "count": counts,
        **QUESTIONS_OF_FACT,
    }
    return {name: views.given_to(question) for name, question in sections.items()}


def _sensible(questions: Iterable[Question], activity: Activity) -> list[Question]:
    """The questions that the runs give occasion for: in a short run planning one costs as much as asking it."""
    return [question for question in questions if question.about is None or question.about in activity.uses]


def _ends(partitions: Partitions) -> DataFrame:
    return partitions.rows.where("used").select(
        *PLACE, "reached", "exhausted", "short",
        f.col("polled_end").alias("polled"),
        "leader.node", "leader.leader_epoch", "leader.high_watermark", "leader.log_end_offset",
        "leader.log_start_offset", "data_end",
    )  # fmt: skip


def _first_gaps(activity: Activity) -> DataFrame | None:
    if activity.gaps is None:
        return None
    rank = f.row_number().over(Window.partitionBy("run").orderBy("first"))
    counted = activity.gaps.withColumn("rank", rank).withColumn("total", f.count("*").over(Window.partitionBy("run")))
    return counted.where(f.col("rank") <= GAPS_KEPT).drop("rank")


def _answers(runs: list[str], rows: Iterable[Row]) -> Answers:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for section, row in rows:
        found[section].append(json.loads(row))
    numbers: dict[str, dict[str, int]] = {run: dict.fromkeys(COUNTS, 0) for run in runs}
    for row in found["count"]:
        numbers.setdefault(row["run"], dict.fromkeys(COUNTS, 0))[row["name"]] = row["number"]
    return Answers(
        findings=sorted((Finding(**row) for row in found["finding"]), key=position),
        deleted=sorted((Finding(**row) for row in found["deleted"]), key=position),
        ranges=[FindingRange(**_whole(FindingRange, row)) for row in found["finding_range"]],
        ends=sorted(PartitionEnd(**row) for row in found["end"]),
        history_gaps=sorted(HistoryGap(**row) for row in found["history_gap"]),
        lives=sorted((NodeLife(**_whole(NodeLife, row)) for row in found["life"]), key=lambda x: x[:3]),
        replicas=sorted((ReplicaEnd(**_whole(ReplicaEnd, row)) for row in found["replica"]), key=lambda x: x[:4]),
        counts=numbers,
        facts=facts_of(found),
    )


def _whole(kind: type[FindingRange | NodeLife | ReplicaEnd], row: Mapping[str, Any]) -> dict[str, Any]:
    """``row`` with its nulls, which JSON left out."""
    return dict.fromkeys(kind._fields) | dict(row)
