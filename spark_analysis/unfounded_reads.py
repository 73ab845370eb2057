"""Which records were delivered that nobody wrote, or not like that?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.records import FAILED
from spark_analysis.views import Views, findings


def unfounded_reads(views: Views) -> DataFrame:
    """``corrupt-read``, ``unwritten-read`` and ``aborted-read``, as ``checkers.reads_are_of_writes`` defines them."""
    read = views.records.where(f.col("read_row").isNotNull())
    kind = (
        f.when(f.col("unsound"), "corrupt-read")
        .when(f.col("sent").isNull(), "unwritten-read")
        .when(f.col("sent") == FAILED, "aborted-read")
    )
    return findings(
        read.withColumn("kind", kind).where(f.col("kind").isNotNull()),
        f.col("kind"),
        offset="offset",
        value="value",
        leader_epoch="epoch",
        row="read_row",
        time_ns="read_ns",
    )
