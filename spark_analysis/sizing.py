"""How a check is laid out for how much there is to read.

Planning a short run takes longer than computing it: every task, shuffle, broadcast and compiled expression costs some
milliseconds, and of each there are hundreds. So what is small goes into one partition, where nothing has to be shuffled
or broadcast, and its expressions are interpreted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

SMALL = 4 * 1024 * 1024
"""Up to how many bytes of Parquet a check is small."""

_OF_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}


@contextmanager
def laid_out(spark: SparkSession, size: int) -> Iterator[None]:
    """Have ``spark`` plan what suits ``size`` bytes of Parquet, meanwhile."""
    usual = {name: str(spark.conf.get(name)) for name in _OF_SMALL}
    try:
        for name, value in _OF_SMALL.items() if size <= SMALL else ():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)


def gathered(rows: DataFrame) -> DataFrame:
    """``rows`` in one partition where everything is: a table has one per file, and a union as many as its parts."""
    small = rows.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1"
    return rows.coalesce(1) if small else rows
