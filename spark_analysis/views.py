"""The tables that questions share, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.findings import COLUMNS
from harness.history.schema import REBALANCES
from spark_analysis.chunks import Place
from spark_analysis.digests import Digests
from spark_analysis.disorder import order_of, order_of_large, well_formed
from spark_analysis.final_reads import ended, final_readers, superseded
from spark_analysis.leadership import leadership
from spark_analysis.log_bitmaps import log_words
from spark_analysis.parallel_jobs import in_parallel
from spark_analysis.partitions import data_ends, partitions
from spark_analysis.records import records
from spark_analysis.result_cache import Hold, in_memory
from spark_analysis.settled import irregular, unsettled
from spark_analysis.tables import PLACE, SPARK_TYPES, Tables
from spark_analysis.tally import tally
from spark_analysis.transaction_markers import replaced, transaction_ends

Log = tuple[str, int, int]
"""A replica's log: topic, partition, node."""


@dataclass(frozen=True, slots=True)
class Views:
    """The input of a question; the columns are documented where each is made.

    Attributes:
        tables: the tables, of the history only well-formed rows; ``final`` are only the rows of the final read by
            ``checkers.views.final_reads``.
        done: what clients did, see :mod:`spark_analysis.tally`.
        log_words: what the replicas' logs hold, see :mod:`spark_analysis.log_bitmaps`.
        unsettled: the :attr:`records` that are not settled, see :mod:`spark_analysis.settled`; of runs that are not
            large all of them; None: all are settled.
        all_records: all of them, settled or not; computed when a question uses them.
        settled: ``run, topic, partition, word, settled, acked``: see :class:`spark_analysis.settled.Unsettled`; None:
            nothing is settled.
        gaps: which rows the history lacks: ``run, first, end``; None: none.
        disorder: what is out of order in it: ``run, name, number``; None: nothing is.
        partitions: see :mod:`spark_analysis.partitions`.
        uses: what clients of any of the runs did besides sending and polling: ``txn``, ``commit`` (or ``committed``),
            ``program`` (a user's program has an input and an output), ``scan`` (a compacted log was read), ``share``
            (there were share groups), ``reset`` (a consumer was out of range), ``move`` (assignments, subscriptions,
            rebalances), ``rereading`` (several processes of the final read were given the same partition), ``nothing``
            (a poll of the final read gave nothing); and ``record`` where there are any ``records``. What is not in it
            need not be planned for.
        sampled: the runs whose timelines consist of samples of the brokers' states.
        at_rest: the runs that promise to come to rest, and in which every fault was healed.
        min_isr: by run, how large an ISR has to be for acks=all; without runs that do not state it.
        rotten: by run, the logs that a fault has damaged unnoticed: topic, partition and node.
        swapped: by run, the partitions of which a fault has put records of another cluster into a log.
        digests: of large runs, the digests of their files; None: the rows are few enough to be read.
        hold: how tables are kept that are needed more than once.
    """

    tables: Tables
    done: DataFrame
    log_words: DataFrame
    unsettled: DataFrame | None
    all_records: Callable[[], DataFrame]
    settled: DataFrame | None
    gaps: DataFrame | None
    disorder: DataFrame | None
    partitions: DataFrame
    uses: frozenset[str]
    sampled: Sequence[str]
    at_rest: Sequence[str]
    min_isr: Mapping[str, int]
    rotten: Mapping[str, Sequence[Log]]
    swapped: Mapping[str, Sequence[tuple[str, int]]]
    digests: Digests | None
    hold: Hold

    @property
    def records(self) -> DataFrame:
        """The records that are not settled, see :mod:`spark_analysis.records`; only where there are any."""
        assert self.unsettled is not None, "a question about records is asked of runs without unsettled ones"
        return self.unsettled

    @property
    def large(self) -> bool:
        """Whether there may be too many rows for plans for few; see :mod:`spark_analysis.blocks`."""
        return self.digests is not None


def views_of(
    tables: Tables,
    *,
    digests: Digests | None = None,
    hold: Hold = in_memory,
    sampled: Sequence[str] = (),
    at_rest: Sequence[str] = (),
    min_isr: Mapping[str, int] = MappingProxyType({}),
    rotten: Mapping[str, Sequence[Log]] = MappingProxyType({}),
    swapped: Mapping[str, Sequence[tuple[str, int]]] = MappingProxyType({}),
) -> Views:
    """The views of ``tables``, computed and held as long as they are referred to.

    Holding them costs a job each and saves every question from planning and computing them again.
    """
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
    uses, settled = _uses(done), None
    read = done
    begun = ended(final_readers(_sound(done), whole.history if "nothing" in uses else None), leaders)
    if "rereading" in uses:
        begun = hold(begun, few=True)
        whole = whole._replace(history=superseded(whole.history, begun))
        digests = digests and digests.since(_rows_by_place(begun))
        read = hold(digests.tally() if digests else tally(whole.history), few=True)
    marked = data_ends(whole, leaders) if "txn" in uses else None
    ends = hold(partitions(read, logs, leaders, begun, data_ends=marked, sampled=sampled), few=True)
    closed = replaced(transaction_ends(whole.replica_logs, ends)) if "txn" in uses else None

    @cache
    def made() -> DataFrame:
        return records(whole, leaders, hold, closed)

    making = Lock()

    def all_records() -> DataFrame:
        with making:
            return made()

    if digests:
        but = irregular(done, missing, disordered)
        concerned, settled = unsettled(whole, digests, logs, leaders, hold, but=but, sampled=sampled)
        some = None if concerned is None else records(concerned, leaders, hold, closed)
        uses -= {"record", "txn"} if some is None else {"record"} if some.isEmpty() else set()
    else:
        some = all_records()
    return Views(
        whole, done, logs, some, all_records, settled, missing, disordered, ends, uses, sampled, at_rest, min_isr,
        rotten, swapped, digests, hold,
    )  # fmt: skip


def _uses(done: DataFrame) -> frozenset[str]:
    uses = {
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
    return frozenset({"record", *(name for name in (*uses, "rereading") if found[name])})


def _rows_by_place(begun: DataFrame) -> dict[Place, int]:
    return {(row["run"], row["topic"], row["partition"]): row["since"] for row in begun.collect()}


def _sound(done: DataFrame) -> DataFrame:
    return done.where(~f.col("malformed"))


def with_partitions(rows: DataFrame, views: Views) -> DataFrame:
    """``rows`` with the columns of their partition."""
    return rows.join(f.broadcast(views.partitions), on=list(PLACE), how="inner")


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
