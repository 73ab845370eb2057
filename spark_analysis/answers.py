"""Asks all questions about any number of runs in one Spark job."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from types import MappingProxyType
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
from spark_analysis import sizing
from spark_analysis.acks_below_min_isr import acks_below_min_isr
from spark_analysis.attribution import with_frames
from spark_analysis.completeness import counts, lives, replicas
from spark_analysis.dependencies import dependencies
from spark_analysis.digests import Digests
from spark_analysis.facts_asked import facts_of, questions_of_fact
from spark_analysis.files import TableFile
from spark_analysis.finding_groups import deleted_together, first_of_groups
from spark_analysis.finding_ranges import finding_ranges
from spark_analysis.lags import lags
from spark_analysis.lost_write import lost_ranges
from spark_analysis.packing import packed
from spark_analysis.parallel_jobs import in_parallel
from spark_analysis.question import Question, questions_of
from spark_analysis.result_cache import cached_results
from spark_analysis.session import innermost
from spark_analysis.sizing import gathered
from spark_analysis.stalls import stalls
from spark_analysis.state_intervals import intervals
from spark_analysis.tables import PLACE, read_tables, table_of, united
from spark_analysis.unwatched import unwatched
from spark_analysis.views import Log, Views, views_of
from spark_analysis.witnesses import Rows, witnesses

_REMEDY = "Check without Spark: --engine reference."
_WORKERS = "Executors need Python with NumPy and pyarrow for large runs: PYSPARK_PYTHON says which (docs/scale.md)."

_asking = threading.Lock()
"""Settings belong to the session, so one thread asks at a time; a check waits for a warm-up, and gains by it."""


def ask(
    spark: SparkSession,
    runs: Iterable[str],
    files: Mapping[str, Sequence[TableFile]],
    healed: Mapping[str, int] = MappingProxyType({}),
    beside: str | None = None,
    *,
    rules: Iterable[str],
    wire: Sequence[TableFile] = (),
    sampled: Sequence[str] = (),
    settled: Sequence[str] = (),
    lag_ns: Mapping[str, int] = MappingProxyType({}),
    min_isr: Mapping[str, int] = MappingProxyType({}),
    rotten: Mapping[str, Sequence[Log]] = MappingProxyType({}),
    swapped: Mapping[str, Sequence[tuple[str, int]]] = MappingProxyType({}),
    report: Callable[[str], None] = lambda stage: None,
) -> tuple[Answers, Mapping[str, Rows]]:
    """Ask everything about some runs.

    Args:
        spark: the session.
        runs: the runs' ids.
        files: by table name, the Parquet files of all of them.
        healed: by run, when its last fault was healed; a run without faults is not in it.
        beside: the URI of a directory that every machine of a cluster sees, where results may be kept meanwhile.
        rules: the file names of the rules whose questions are asked, see :func:`questions_of`.
        wire: the Parquet files of wire taps.
        sampled: the runs whose timelines consist of samples of the brokers' states.
        settled: the runs that promise to come to rest, and in which every fault was healed.
        lag_ns: by run, how long a replica that lags may stay in the ISR; without runs that do not state it.
        min_isr: by run, how large an ISR has to be for acks=all; without runs that do not state it.
        rotten: by run, the logs that a fault has damaged unnoticed: topic, partition and node.
        swapped: by run, the partitions of which a fault has put records of another cluster into a log.

        report: called, from any thread, with what is done from now on.

    Returns:
        the answers; and the rows that the findings may cite as evidence, by run and table.

    Raises:
        EnvironmentFault: Spark itself failed.
    """
    report("waiting for the warm-up" if _asking.locked() else "planning")
    questions, names, sizes = questions_of(rules), list(runs), _sizes(files)
    large = sizing.are_large(sizing.content(sizes), len(names))
    with (
        _asking,
        packed(spark, files) as read,
        sizing.laid_out(spark, sizing.content(_sizes(read)), large=large),
        cached_results(spark, beside, large=large) as hold,
    ):
        only_run = names[0] if large and len(names) == 1 else None
        tables = read_tables(spark, read, only_run)
        for table in tables if sizing.are_cached(sizing.content(sizes), len(sizes)) else ():
            table.persist()
        try:
            digests = Digests(spark, files, hold, only_run=only_run, healed_ns=healed) if large else None
            looking = partial(
                views_of,
                tables,
                digests=digests,
                hold=hold,
                sampled=sampled,
                at_rest=settled,
                min_isr=min_isr,
                rotten=rotten,
                swapped=swapped,
            )
            nodes = partial(_of_nodes, spark, tables.timeline, lag_ns, sampled)
            asked = partial(_asked, spark, questions, looking, healed, report)
            parts = in_parallel(spark, [partial(_collected, nodes), asked])
            answers = _answers(names, [row for rows in parts for row in rows])
            report("the evidence of the findings")
            if not answers.findings:
                return answers, {}
            rows = witnesses(spark, tables, answers.findings)
            return answers, with_frames(spark, tables.history, wire, answers.findings, rows) if wire else rows
        except PythonException as error:
            reason = [line for line in str(error).splitlines() if line.strip()][-1]
            remedy = _WORKERS if "No module named" in reason else _REMEDY
            raise EnvironmentFault(f"Spark's Python workers failed: {reason}.", remedy) from error
        except Py4JJavaError as error:
            raise EnvironmentFault(f"Spark failed: {innermost(error.java_exception)}.", _REMEDY) from error
        except (Py4JError, PySparkException) as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise EnvironmentFault(f"Spark failed: {reason.rstrip('.')}.", _REMEDY) from error
        finally:
            for table in tables:
                table.unpersist()


def _sizes(files: Mapping[str, Sequence[TableFile]]) -> list[int]:
    return [file.size for several in files.values() for file in several]


def _asked(
    spark: SparkSession,
    questions: Sequence[Question],
    looking: Callable[[], Views],
    healed: Mapping[str, int],
    report: Callable[[str], None],
) -> list[Row]:
    """The answers of the questions; those that need no findings do not wait for them."""
    views, healings = looking(), _by_run(spark, "healed_ns", healed)
    sensible = _sensible(questions, views)
    sections = [partial(_of_findings, spark, sensible, views, report), partial(_of_runs, spark, views, healings)]
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
    spark: SparkSession, questions: Sequence[Question], views: Views, report: Callable[[str], None]
) -> dict[str, DataFrame | None]:
    """The findings, which are held, so that later questions about them do not plan all questions again."""
    planned = count(1)

    def plan(question: Question) -> DataFrame | None:
        rows = question.ask(views)
        report(f"question {next(planned)} of {len(questions)} planned")
        return rows

    parts = [rows for rows in in_parallel(spark, [partial(plan, one) for one in questions]) if rows is not None]
    report("computing")
    if not parts:
        return {}
    found = views.hold(gathered(united(parts)), few=True)
    return {
        "finding": first_of_groups(found),
        "deleted": deleted_together(found, views.partitions),
        "finding_range": finding_ranges(found),
        "lost_range": lost_ranges(found, views.tables.replica_logs, views.sampled),
    }


def _of_nodes(
    spark: SparkSession, timeline: DataFrame, lag_ns: Mapping[str, int], sampled: Sequence[str]
) -> dict[str, DataFrame | None]:
    """The answers from the nodes' timelines alone."""
    allowed = _by_run(spark, "lag_ns", lag_ns)
    return {
        "life": lives(timeline),
        "interval": intervals(timeline),
        "lag": lags(timeline, allowed) if lag_ns else None,
        "stall": stalls(timeline, allowed) if lag_ns else None,
        "unwatched": unwatched(timeline.where(f.col("run").isin(*sampled))) if sampled else None,
    }


def _of_runs(spark: SparkSession, views: Views, healed: DataFrame) -> dict[str, DataFrame | None]:
    """The answers besides findings."""
    sections = {
        "end": _ends(views),
        "history_gap": None if views.gaps is None else _first_gaps(views.gaps),
        "replica": replicas(views.tables.timeline, views.log_words),
        "count": counts(views),
        **questions_of_fact(views, healed),
    }
    if views.min_isr:
        sections["acks_below_min_isr"] = acks_below_min_isr(views, _by_run(spark, "min_isr", views.min_isr))
    if "txn" in views.uses:
        sections["dependency"] = dependencies(views)
    return sections


def _by_run(spark: SparkSession, name: str, numbers: Mapping[str, int]) -> DataFrame:
    rows = ({"run": run, name: number} for run, number in numbers.items())
    return table_of(spark, rows, {"run": "string", name: "int64"})


def _sensible(questions: Iterable[Question], views: Views) -> list[Question]:
    """The questions that the runs give occasion for: in a short run planning one costs as much as asking it."""
    return [question for question in questions if question.about is None or question.about in views.uses]


def _ends(views: Views) -> DataFrame:
    return views.partitions.where("used").select(
        *PLACE, "reached", "exhausted", "short",
        f.col("polled_end").alias("polled"),
        "leader.node", "leader.leader_epoch", "leader.high_watermark", "leader.log_end_offset",
        "leader.log_start_offset", "data_end",
    )  # fmt: skip


def _first_gaps(gaps: DataFrame) -> DataFrame:
    rank = f.row_number().over(Window.partitionBy("run").orderBy("first"))
    counted = gaps.withColumn("rank", rank).withColumn("total", f.count("*").over(Window.partitionBy("run")))
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
