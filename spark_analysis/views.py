"""What questions share, computed once: what clients did, logs hold, partitions ended with, and became of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.findings import COLUMNS
from harness.history.schema import REBALANCES
from harness.parts import Parts
from spark_analysis.chunks import Place
from spark_analysis.demands import Damage, Demands
from spark_analysis.digests import Digests
from spark_analysis.disorder import order_of, order_of_large, well_formed
from spark_analysis.final_reads import ended, final_readers, superseded
from spark_analysis.leadership import leadership
from spark_analysis.log_bitmaps import log_words
from spark_analysis.parallel_jobs import in_parallel
from spark_analysis.partitions import data_ends, partitions
from spark_analysis.records import records
from spark_analysis.result_cache import Hold
from spark_analysis.settled import irregular, unsettled
from spark_analysis.tables import PLACE, SPARK_TYPES, Tables
from spark_analysis.tally import tally
from spark_analysis.transaction_markers import replaced, transaction_ends

Uses = Literal[
    "record", "txn", "burst", "commit", "program", "scan", "share", "reset", "lookup", "move", "nothing", "rereading"
]
"""What clients of any of the runs did, or left: what none did need not be planned for.

``record``: there are :class:`Records` that are not settled. ``txn``: transactions. ``burst``: sends of several records.
``commit``: also that they asked what is committed. ``program``: a user's program has an input and an output. ``scan``:
a compacted log was read. ``share``: there were share groups. ``reset``: a consumer was out of range. ``lookup``:
offsets were asked for by time. ``move``: assignments, subscriptions, rebalances. ``nothing``: a poll of the final read
gave nothing. ``rereading``: several processes of the final read were given the same partition.
"""


@dataclass(frozen=True, slots=True)
class Activity:
    """What clients did, in numbers, and what the history lacks.

    Attributes:
        done: see :mod:`spark_analysis.tally`.
        uses: what any of them did.
        gaps: which rows the history lacks: ``run, first, end``; None: none.
        disorder: what is out of order in it: ``run, name, number``; None: nothing is.
    """

    done: DataFrame
    uses: frozenset[Uses]
    gaps: DataFrame | None
    disorder: DataFrame | None


@dataclass(frozen=True, slots=True)
class LogWords:
    """What the replicas' logs hold, see :mod:`spark_analysis.log_bitmaps`."""

    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Partitions:
    """How each partition was led and ended, see :mod:`spark_analysis.partitions`."""

    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Records:
    """What is known of each record, see :mod:`spark_analysis.records`.

    Attributes:
        all: all of them, settled or not; computed when a question uses them.
        some: those that are not settled, see :mod:`spark_analysis.settled`; of runs that are not large all of them;
            None: all are settled.
        settled: ``run, topic, partition, word, settled, acked``: see :class:`spark_analysis.settled.Unsettled`; None:
            nothing is settled.
    """

    all: Callable[[], DataFrame]
    some: DataFrame | None
    settled: DataFrame | None

    @property
    def unsettled(self) -> DataFrame:
        """Those that are not settled; only where there are any."""
        assert self.some is not None, "a question about records is asked of runs without unsettled ones"
        return self.some


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is to look at, and how what is needed more than once is kept.

    Attributes:
        hold: how tables are kept.
        digests: of large runs, the digests of their files; None: the rows are few enough to be read.
    """

    hold: Hold
    digests: Digests | None = None

    @property
    def large(self) -> bool:
        """Whether there may be too many rows for plans for few; see :mod:`spark_analysis.blocks`."""
        return self.digests is not None


def views_of(tables: Tables, scale: Scale, demands: Demands, damage: Damage) -> Parts:
    """Everything that a question may name: ``demands`` and ``damage``, and what is computed of ``tables``.

    The :class:`Tables` among them have only well-formed rows of the history, of which ``final`` are only those of the
    final read by ``checkers.views.final_reads``. Views are held as long as they are referred to: that costs a job each
    and saves every question from planning and computing them again.
    """
    digests, hold = scale.digests, scale.hold
    whole = tables._replace(history=well_formed(tables.history))
    leaders, done, logs, (missing, disordered) = in_parallel(
        tables.history.sparkSession,
        [
            lambda: hold(leadership(tables.timeline), few=True),
            lambda: hold(digests.tally() if digests else tally(tables.history), few=True),
            lambda: hold(digests.log_words()) if digests else log_words(tables.replica_logs),
            lambda: order_of_large(tables.history, digests, hold) if digests else order_of(tables.history),
        ],
    )
    uses = _uses(done)
    read = done
    begun = ended(final_readers(_sound(done), whole.history if "nothing" in uses else None), leaders)
    if "rereading" in uses:
        begun = hold(begun, few=True)
        whole = whole._replace(history=superseded(whole.history, begun))
        digests = digests and digests.since(_rows_by_place(begun))
        read = hold(digests.tally() if digests else tally(whole.history), few=True)
    marked = data_ends(whole, leaders) if "txn" in uses else None
    ends = hold(partitions(read, logs, leaders, begun, data_ends=marked, sampled=demands.sampled), few=True)
    closed = replaced(transaction_ends(whole.replica_logs, ends)) if "txn" in uses else None
    closed = hold(closed, few=True) if digests and closed is not None else closed
    every = _once(lambda: records(whole, leaders, hold, closed))
    if digests:
        but = irregular(done, missing, disordered)
        concerned, settled = unsettled(whole, digests, logs, leaders, hold, but=but, sampled=demands.sampled)
        known = Records(every, None if concerned is None else records(concerned, leaders, hold, closed), settled)
        uses -= {"record", "txn"} if known.some is None else {"record"} if known.some.isEmpty() else set()
    else:
        known = Records(every, every(), None)
    activity = Activity(done, uses, missing, disordered)
    of_tables = (whole, activity, LogWords(logs), Partitions(ends), known)
    return Parts(*of_tables, demands, damage, Scale(hold, digests))


def _once(make: Callable[[], DataFrame]) -> Callable[[], DataFrame]:
    """What ``make`` makes, made when it is first asked for, by whichever thread."""
    making, made = Lock(), cache(make)

    def once() -> DataFrame:
        with making:
            return made()

    return once


def _uses(done: DataFrame) -> frozenset[Uses]:
    uses: dict[Uses, Column] = {
        "txn": f.col("txn"),
        "burst": f.col("later") & ~f.col("txn"),
        "commit": f.col("f").isin("commit", "committed"),
        "program": f.col("f").isin("output", "reached"),
        "scan": f.col("f") == "scan",
        "share": f.col("f").isin("acquire", "acknowledge", "drain"),
        "reset": f.col("f") == "out_of_range",
        "lookup": f.col("f") == "offset_for_time",
        "move": f.col("f").isin("assign", "subscribe", *REBALANCES),
        "nothing": f.col("final") & (f.col("f") == "poll") & (f.col("type") == "ok") & f.col("topic").isNull(),
    }
    final = f.col("final") & (f.col("type") == "ok") & f.col("topic").isNotNull()
    of_places = _sound(done).groupBy(*PLACE).agg(
        *[f.max(condition).alias(name) for name, condition in uses.items()],
        (f.count_distinct(f.when(final, f.col("process"))) > 1).alias("rereading"),
    )  # fmt: skip
    [found] = of_places.agg(*[f.max(name).alias(name) for name in (*uses, "rereading")]).collect()
    own: set[Uses] = {name for name in uses if found[name]}
    return frozenset({"record", *own, *(("rereading",) if found["rereading"] else ())})


def _rows_by_place(begun: DataFrame) -> dict[Place, int]:
    return {(row["run"], row["topic"], row["partition"]): row["since"] for row in begun.collect()}


def _sound(done: DataFrame) -> DataFrame:
    return done.where(~f.col("malformed"))


def with_partitions(rows: DataFrame, partitions: Partitions) -> DataFrame:
    """``rows`` with the columns of their partition."""
    return rows.join(f.broadcast(partitions.rows), on=list(PLACE), how="inner")


def findings(rows: DataFrame, kind: str | Column, **columns: str | Column) -> DataFrame:
    """The final ``select`` of a question: the columns of an answer, null where ``columns`` does not name one.

    Args:
        rows: has ``run, topic, partition``.
        kind: the anomaly's kind, or the column with it.
        columns: by the answer's column, the column (or the name of the column) of ``rows`` that holds it.
    """
    unknown = set(columns) - set(COLUMNS)
    assert not unknown, f"an answer has no column {', '.join(sorted(unknown))}"
    known: dict[str, str | Column] = {
        "run": "run",
        "topic": "topic",
        "partition": "partition",
        "kind": f.lit(kind) if isinstance(kind, str) else kind,
        **columns,
    }
    none = f.lit(None)
    chosen = [_column(known.get(name, none)).cast(SPARK_TYPES[type_]).alias(name) for name, type_ in COLUMNS.items()]
    return rows.select(*chosen)


def _column(column: str | Column) -> Column:
    return f.col(column) if isinstance(column, str) else column
