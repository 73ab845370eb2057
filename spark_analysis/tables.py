"""The tables of any number of runs as DataFrames, with the declared schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from harness.history.schema import TABLES, ColumnType, Table

SPARK_TYPES: Mapping[ColumnType, t.DataType] = {
    "string": t.StringType(),
    "int32": t.IntegerType(),
    "int64": t.LongType(),
    "bool": t.BooleanType(),
    "list<int32>": t.ArrayType(t.IntegerType()),
    "list<string>": t.ArrayType(t.StringType()),
}

PLACE = ("run", "topic", "partition")
"""What everything is partitioned by."""


class Tables(NamedTuple):
    """The tables that questions are asked of. ``faults`` is not among them: it has a row per fault."""

    history: DataFrame
    timeline: DataFrame
    replica_logs: DataFrame


def spark_schema(table: Table) -> t.StructType:
    """The Spark schema of ``table``. Spark reads every column of a file as one that may be null."""
    return t.StructType([t.StructField(c.name, SPARK_TYPES[c.type], c.nullable) for c in table.columns])


def read_tables(spark: SparkSession, files: Mapping[str, Sequence[Path]]) -> Tables:
    """Read the tables of many runs as one each.

    Args:
        spark: the session.
        files: by table name, the Parquet files of all runs; a table without files is empty.
    """

    def read(name: str) -> DataFrame:
        schema = spark_schema(TABLES[name])
        paths = [path.resolve().as_uri() for path in files.get(name, ())]
        return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)

    return Tables(read("history"), read("timeline"), read("replica_logs"))
