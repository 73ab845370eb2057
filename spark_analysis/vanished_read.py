"""Which records were delivered to a consumer and are not in the final read?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.leadership import begins_behind, given_up
from spark_analysis.partitions import missing
from spark_analysis.question import Question
from spark_analysis.records import is_hidden, is_uncommitted
from spark_analysis.views import Partitions, Records, findings, with_partitions


def vanished_reads(records: Records, partitions: Partitions) -> DataFrame:
    """``vanished-read``, as ``checkers.vanished_read`` defines it."""
    gone = records.unsettled.where(f.col("delivered_row").isNotNull() & ~f.col("finally") & ~is_uncommitted())
    expired = begins_behind(f.col("offset"), f.col("invoked_ns"))
    given = given_up(f.col("polled_epoch"), f.col("offset"), f.col("delivered_ns"))
    return findings(
        with_partitions(gone, partitions).where(missing(f.col("offset"), read=f.lit(True))),
        "vanished-read",
        offset="offset",
        value="value",
        leader_epoch="polled_epoch",
        excuse=f.when(expired, "retention").when(given | is_hidden(), "unclean"),
        row="delivered_row",
        time_ns="delivered_ns",
        other_value="final_value",
        since_ns="invoked_ns",
    )


QUESTIONS = (Question(vanished_reads, about="record"),)
