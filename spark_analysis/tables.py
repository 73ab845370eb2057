"""The tables of any number of runs as DataFrames, with the declared schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from harness import compacted
from harness.history.schema import TABLES, ColumnType, Table
from spark_analysis.files import TableFile
from spark_analysis.sizing import gathered

SPARK_TYPES: Mapping[ColumnType, t.DataType] = {
    "string": t.StringType(),
    "int32": t.IntegerType(),
    "int64": t.LongType(),
    "bool": t.BooleanType(),
    "list<int32>": t.ArrayType(t.IntegerType()),
    "list<string>": t.ArrayType(t.StringType()),
}

PLACE = ("run", "topic", "partition")
"""The columns by which everything is partitioned."""


class Tables(NamedTuple):
    """The tables of the questions. ``faults`` is not among them: it has a row per fault.

    Attributes:
        timeline: but what the cluster told a client, which no node says of itself.
        metadata: the rows of the timeline that have that.
        replica_logs: but those of the compacted topic, of which replicas hold different parts.
        compacted_logs: those of that topic (:mod:`harness.compacted`).
    """

    history: DataFrame
    timeline: DataFrame
    metadata: DataFrame
    replica_logs: DataFrame
    compacted_logs: DataFrame


def spark_schema(table: Table) -> t.StructType:
    """The Spark schema of ``table``. Spark reads every column of a file as one that may be null."""
    return t.StructType([t.StructField(c.name, SPARK_TYPES[c.type], c.nullable) for c in table.columns])


def table_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, ColumnType]) -> DataFrame:
    """A few rows as a table. They are part of the plan; ``createDataFrame`` would start Python workers for them."""
    schema = t.StructType([t.StructField(name, SPARK_TYPES[type_]) for name, type_ in columns.items()])
    parsed = f.from_json(f.lit(json.dumps(list(rows))), t.ArrayType(schema))
    return spark.range(0, 1, 1, 1).select(f.inline(parsed))


def table_by_run(spark: SparkSession, name: str, numbers: Mapping[str, int]) -> DataFrame:
    """``run`` and a column ``name``: a number for each run."""
    rows = ({"run": run, name: number} for run, number in numbers.items())
    return table_of(spark, rows, {"run": "string", name: "int64"})


def united(
    parts: Sequence[DataFrame], union: Callable[[DataFrame, DataFrame], DataFrame] = DataFrame.unionByName
) -> DataFrame:
    """All rows of one part or more. Each union is analysed with all below it, so neighbours are paired first."""
    level = list(parts)
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [union(one, other) for one, other in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


def read_tables(spark: SparkSession, files: Mapping[str, Sequence[TableFile]], only_run: str | None = None) -> Tables:
    """Read the tables of many runs as one each.

    Args:
        spark: the session.
        files: by table name, the Parquet files of all runs; a table without files is empty.
        only_run: the run whose rows all of them are; None: there are several. A column that is the same in every row
            need be neither read nor compared.
    """

    def read(name: str) -> DataFrame:
        table = TABLES[name]
        paths = [file.literally for file in files.get(name, ())]
        if not paths:
            return table_of(spark, [], {column.name: column.type for column in table.columns})
        rows = gathered(spark.read.schema(spark_schema(table)).parquet(*paths))
        return rows if only_run is None else rows.withColumn("run", f.lit(only_run))

    timeline, logs = read("timeline"), read("replica_logs")
    is_metadata, is_compacted = f.col("kind") == "metadata", f.col("topic").eqNullSafe(compacted.TOPIC)
    return Tables(
        read("history"),
        timeline.where(~is_metadata),
        timeline.where(is_metadata),
        logs.where(~is_compacted),
        logs.where(is_compacted),
    )
