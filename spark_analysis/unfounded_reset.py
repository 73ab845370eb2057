"""Which positions of consumers were refused although the log reached them?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.client_ports import TRUNCATED
from spark_analysis.leadership import deleted_to, may_have_lacked, thrown_back
from spark_analysis.question import Question
from spark_analysis.records import reads
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Partitions, findings, with_partitions


def unfounded_resets(tables: Tables, partitions: Partitions) -> DataFrame:
    """``unfounded-reset``, as ``checkers.unfounded_reset`` defines it."""
    history = tables.history
    refused = history.where((f.col("f") == "out_of_range") & (f.col("offset") > 0)).select(
        *PLACE, (f.col("offset") - 1).alias("offset"), f.col("index").alias("at"), f.col("op").alias("during"),
        f.col("time_ns").alias("told_ns"), f.col("process").alias("consumer"),
        (f.col("error") == TRUNCATED).alias("by_epochs"),
    )  # fmt: skip
    asked = f.broadcast(with_partitions(refused, partitions).where(f.col("leader").isNotNull()))
    held = (
        tables.replica_logs.where(f.col("value").isNotNull())
        .select(*PLACE, "offset", "value", "node", f.col("leader_epoch").alias("epoch"))
        .join(asked, on=[*PLACE, "offset"], how="inner")
        .where(f.col("node") == f.col("leader.node"))
    )
    given = reads(history).select(*PLACE, "offset", "value", "row", "op", "leader_epoch", "time_ns", "process")
    before = (f.col("row") < f.col("at")) | (f.col("op") == f.col("during"))
    same = f.col("leader_epoch").isNull() | (f.col("leader_epoch") == f.col("epoch"))
    own = (f.col("process") == f.col("consumer")) | ~f.col("by_epochs")
    refusal = (*PLACE, "offset", "at", "told_ns", "consumer", "unclean", "deleted", "sampled")
    found = (
        held.join(given, on=[*PLACE, "offset", "value"], how="inner")
        .where(before & same & own & (f.col("epoch") >= 0))
        .groupBy(*refusal, "terms", "value", "epoch")
        .agg(f.min("time_ns").alias("since_ns"))
        .where(~may_have_lacked(f.col("epoch"), f.col("since_ns"), f.col("told_ns")))
        .groupBy(*refusal)
        .agg(f.min(f.struct("value", "epoch")).alias("record"))
    )
    is_deleted = f.col("offset") + 1 < deleted_to(f.col("told_ns"))
    is_given_up = thrown_back(f.col("record.epoch"), f.when(~f.col("sampled"), f.col("offset")), f.col("told_ns"))
    return findings(
        found,
        "unfounded-reset",
        offset="offset",
        value="record.value",
        leader_epoch="record.epoch",
        excuse=f.when(is_deleted, "retention").when(is_given_up, "unclean"),
        row="at",
        time_ns="told_ns",
        process="consumer",
        other_offset=f.col("offset") + 1,
    )


QUESTIONS = (Question(unfounded_resets, about="reset"),)
