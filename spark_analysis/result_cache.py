"""Keeps computed tables, so that they are neither planned nor computed again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from spark_analysis.hadoop import Directory, temporary_directory


class Hold(Protocol):
    """Computes a table and keeps it as long as it is referred to.

    ``few``: it has hardly any rows; ``by``: the column by whose values it is queried.
    """

    def __call__(self, rows: DataFrame, *, few: bool = False, by: str | None = None) -> DataFrame:
        """The same rows, kept."""


def in_memory(rows: DataFrame, *, few: bool = False, by: str | None = None) -> DataFrame:
    """Keep ``rows`` where they were computed, in memory or on the disk of that machine; they are lost with it."""
    del few, by
    return rows.localCheckpoint()


class Scratch:
    """Keeps tables as Parquet files: compressed, read by the column, and as safe as the directory.

    Args:
        directory: the URI of an own directory that every machine sees; its creator removes it.
        everything: whether small tables are kept there, too.
    """

    def __init__(self, directory: str, *, everything: bool) -> None:
        self._directory = directory
        self._everything = everything
        self._numbers = itertools.count(1)

    def __call__(self, rows: DataFrame, *, few: bool = False, by: str | None = None) -> DataFrame:
        """Write ``rows`` and read them back."""
        if few and not self._everything:
            return in_memory(rows)
        path = f"{self._directory}/{next(self._numbers)}"
        (rows.coalesce(1) if few else rows).write.partitionBy(*([by] if by else [])).parquet(path)
        return rows.sparkSession.read.schema(rows.schema).parquet(path)


@contextmanager
def cached_results(spark: SparkSession, beside: str | None, *, large: bool) -> Iterator[Hold]:
    """How tables are kept during a check.

    On one machine those of large runs are on its disk. On a cluster all are where the runs are: a machine may die.

    Args:
        spark: the session.
        beside: the URI of a directory that every machine sees and that may be written to; None: there is none.
        large: whether the runs are large.
    """
    local = str(spark.sparkContext.master).startswith("local") or beside is None
    if local and not large:
        yield in_memory
        return
    path = temporary_directory(spark) if local else f"{beside}/.scratch-{uuid4().hex}"
    scratch = Directory(spark, path)
    try:
        yield Scratch(path, everything=not local)
    finally:
        scratch.remove()
