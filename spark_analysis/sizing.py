"""Chooses partitions and plans of a check by how much there is to read.

Planning a short run takes longer than computing it: every task, shuffle, broadcast and compiled expression costs some
milliseconds, and there are hundreds of each. So small runs go into one partition, where nothing has to be shuffled or
broadcast, and their expressions are interpreted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from spark_analysis.files import SMALL

_EMPTY_FILE = 5 * 1024
"""The bytes of a Parquet file that describe how to read it; of hundreds of small runs that is most."""

LARGE = 8 * 1024 * 1024
"""The size of Parquet, in bytes, from which on a run is large, some hundred thousand operations:
:mod:`spark_analysis.blocks` and :mod:`spark_analysis.settled` pay."""

_PER_TASK = 4 * 1024 * 1024
"""The bytes of Parquet for which a task is worth starting."""

_CACHED = 64 * 1024 * 1024
_CACHED_PER_FILE = 1024 * 1024
"""Up to this size of Parquet, in bytes, in all and per file, tables are kept in memory."""

_OF_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.constraintPropagation.enabled": "false",
}

_OF_LARGE = {
    # Tables of few rows are between those of many: how many tasks they need shows only when they are there.
    "spark.sql.adaptive.enabled": "true",
    # What a run's recorder writes each second is a file: hundreds of them are not worth a task each.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
}


def content(sizes: Iterable[int]) -> int:
    """The bytes of data in Parquet files of these sizes."""
    return sum(max(0, size - _EMPTY_FILE) for size in sizes)


def are_large(size: int, runs: int) -> bool:
    """Whether runs that have ``size`` bytes together are large: many small ones are not."""
    return size >= LARGE * max(1, runs)


def are_cached(size: int, files: int) -> bool:
    """Whether tables are kept: where the rows are few, most of the work is to open their files."""
    return size < min(_CACHED, files * _CACHED_PER_FILE)


@contextmanager
def laid_out(spark: SparkSession, size: int, *, large: bool) -> Iterator[None]:
    """Have ``spark`` plan for ``size`` bytes of Parquet, of ``large`` runs or of others, meanwhile."""
    usual = {name: str(spark.conf.get(name)) for name in (*_OF_SMALL, *_OF_LARGE)}
    partitions = "spark.sql.shuffle.partitions"
    wanted, most = 1 + size // _PER_TASK, int(usual[partitions])
    try:
        spark.conf.set(partitions, str(max(wanted, most) if large else min(wanted, most)))
        own = _OF_LARGE if large else _OF_SMALL if size <= SMALL else {}
        for name, value in own.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)


def gathered(rows: DataFrame) -> DataFrame:
    """``rows`` in one partition where everything is: a table has one per file, and a union as many as its parts."""
    small = rows.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1"
    return rows.coalesce(1) if small else rows
