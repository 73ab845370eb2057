"""The replicas' logs as bitmaps, 64 neighbouring offsets to a row, so that the logs are read once for all questions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.blocks import words
from spark_analysis.tables import PLACE


def log_words(logs: DataFrame) -> DataFrame:
    """The replicas' logs as words of offsets; see :func:`spark_analysis.blocks.words`.

    Returns:
        ``run, topic, partition, node, leader_epoch, word, bits, rows, low, high, contents, values, valued, strange,
        damaged``.
        ``contents``: a fingerprint of everything that replicas must have alike; ``values``: of offsets and values
        alone. ``valued``: how many rows are a workload's record; ``strange``: whether any is none, or damaged;
        ``damaged``: the lowest offset of a damaged one.
    """
    valued = f.col("value").isNotNull()
    return words(
        logs, [*PLACE, "node", "leader_epoch"], "offset",
        contents=f.bit_xor(f.xxhash64("offset", "leader_epoch", "value", "batch_crc")),
        values=f.bit_xor(f.xxhash64("offset", "value")),
        valued=f.count(f.when(valued, 1)),
        strange=f.max(~(valued & f.col("intact"))),
        damaged=f.min(f.when(~f.col("intact"), f.col("offset"))),
    )  # fmt: skip
