"""Counts what clients did.

All counts and maxima come from this one small table, so that the history is read once for all of them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.disorder import is_malformed
from spark_analysis.tables import PLACE


def tally(history: DataFrame) -> DataFrame:
    """The history's rows, grouped by the columns that counts need.

    Returns:
        ``run, topic, partition, f, type, final, txn, acks, process, known, malformed, later, rows, offset, index,
        first, last_ns``. ``process``: of the final read; null for the others. ``known``: whether they name an offset;
        ``later``: whether each is of a micro-operation that is not its operation's first.
        ``rows``: how many they are; ``offset`` and ``index``: the highest of theirs; ``first``: the lowest index;
        ``last_ns``: the latest time.
    """
    common = {
        "process": f.when(f.col("final"), f.col("process")),
        "known": f.col("offset").isNotNull(),
        "malformed": is_malformed(),
        "later": f.col("mop") > 0,
    }
    return history.groupBy(
        *PLACE, "f", "type", "final", "txn", "acks", *[column.alias(name) for name, column in common.items()]
    ).agg(
        f.count("*").alias("rows"),
        f.max("offset").alias("offset"),
        f.max("index").alias("index"),
        f.min("index").alias("first"),
        f.max("time_ns").alias("last_ns"),
    )
