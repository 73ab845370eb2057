"""The views that questions share, each made once."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.answer import COLUMNS
from spark_analysis.leadership import leadership
from spark_analysis.partitions import partitions
from spark_analysis.records import records
from spark_analysis.tables import PLACE, SPARK_TYPES, Tables


class Views(NamedTuple):
    """What a question may be asked of; the columns are documented where each is made.

    Attributes:
        tables: the tables themselves.
        records: see :mod:`spark_analysis.records`.
        partitions: see :mod:`spark_analysis.partitions`.
        uses: what clients of any of the runs did besides sending and polling: ``txn``, ``commit`` (or ``committed``),
            ``move`` (assignments, subscriptions, rebalances). What nobody did need not be planned for.
    """

    tables: Tables
    records: DataFrame
    partitions: DataFrame
    uses: frozenset[str]


def views_of(tables: Tables) -> Views:
    """The views of ``tables``, computed and held until nobody refers to them any more.

    Holding them costs a job each and saves every question from planning and computing them again.
    """
    leaders = leadership(tables.timeline).localCheckpoint()
    all_records = records(tables, leaders).localCheckpoint()
    ends = partitions(tables, all_records, leaders).localCheckpoint()
    return Views(tables, all_records, ends, _uses(tables.history))


def _uses(history: DataFrame) -> frozenset[str]:
    done = {
        "txn": f.col("txn"),
        "commit": f.col("f").isin("commit", "committed"),
        "move": f.col("f").isin("assign", "subscribe", "assigned", "revoked", "lost"),
    }
    [found] = history.agg(*[f.max(condition).alias(name) for name, condition in done.items()]).collect()
    return frozenset(name for name in done if found[name])


def with_partitions(rows: DataFrame, views: Views) -> DataFrame:
    """``rows`` with the columns of their partition."""
    return rows.join(f.broadcast(views.partitions), on=list(PLACE), how="inner")


def findings(rows: DataFrame, kind: str | Column, **columns: str | Column) -> DataFrame:
    """The final ``select`` of a question: the columns of an answer, null where ``columns`` does not name one.

    Args:
        rows: has ``run, topic, partition``.
        kind: the anomaly's kind, or the column that says it.
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
