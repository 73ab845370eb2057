"""Which acknowledged records did no consumer ever read, without a proof that they are gone?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.partitions import missing
from spark_analysis.question import Question
from spark_analysis.records import ALL
from spark_analysis.views import Partitions, Records, findings, with_partitions


def unseen(records: Records, partitions: Partitions) -> DataFrame:
    """``unseen``, as ``checkers.unseen`` defines it."""
    unread = records.unsettled.where(f.col("ack_row").isNotNull() & f.col("value_read_row").isNull())
    return findings(
        with_partitions(unread, partitions).where(~missing(f.col("offset"), read=f.lit(False))),
        "unseen",
        **{name: name for name in ("offset", "value", "process", "acks")},
        excuse=f.when(f.col("acks") != ALL, "acks"),
        row="ack_row",
        time_ns="acked_ns",
    )


QUESTIONS = (Question(unseen, about="record"),)
