"""Which records were delivered that no producer sent, or not like that?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.question import Question
from spark_analysis.records import FAILED
from spark_analysis.views import Records, findings


def unfounded_reads(records: Records) -> DataFrame:
    """``corrupt-read``, ``unwritten-read`` and ``aborted-read``, as ``checkers.unfounded_read`` defines them."""
    read = records.unsettled.where(f.col("read_row").isNotNull())
    wronged = f.col("txn_op").isNull() | f.col("committed_row").isNotNull()
    kind = (
        f.when(f.col("unsound"), "corrupt-read")
        .when(f.col("sent").isNull() | (f.col("read_row") < f.col("invoked_row")), "unwritten-read")
        .when((f.col("sent") == FAILED) & wronged, "aborted-read")
    )
    aborted = (f.col("kind") == "aborted-read") & f.col("txn_op").isNotNull()
    return findings(
        read.withColumn("kind", kind).where(f.col("kind").isNotNull()),
        f.col("kind"),
        offset="offset",
        value="value",
        leader_epoch="epoch",
        excuse=f.when(aborted & (f.col("recommitted_ns") <= f.col("committed_ns")), "unclean"),
        row=f.when(aborted, f.col("committed_row")).otherwise(f.col("read_row")),
        time_ns=f.when(aborted, f.col("committed_ns")).otherwise(f.col("read_ns")),
        since_ns=f.when(aborted, f.col("invoked_ns")),
    )


QUESTIONS = (Question(unfounded_reads, about="record"),)
