"""Which offsets hold two values, according to acknowledgements and polls?"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analysis.leadership import given_up
from spark_analysis.question import Question
from spark_analysis.tables import PLACE
from spark_analysis.views import Partitions, Records, findings, with_partitions


def inconsistent_offsets(records: Records, partitions: Partitions) -> DataFrame:
    """``inconsistent-offsets``, as ``checkers.inconsistent_offsets`` defines it."""
    sides = records.unsettled.where(f.col("seen_row").isNotNull() & (f.col("values_seen") > 1))
    side = f.struct("seen_row", "seen_ns", "value", "strong", "sound_epoch", "invoked_ns")
    offsets = sides.groupBy(*PLACE, "offset").agg(f.sort_array(f.collect_list(side)).alias("sides"))
    first, second = f.col("sides")[0], f.col("sides")[1]
    oldest = f.array_min(f.transform("sides", lambda s: s["sound_epoch"]))
    unsent = f.exists("sides", lambda s: s["invoked_ns"].isNull())
    begun_ns = f.array_min(f.transform("sides", lambda s: s["invoked_ns"]))
    strong = f.size(f.filter("sides", lambda s: s["strong"]))
    gone = given_up(oldest, f.col("offset"), first["seen_ns"])
    return findings(
        with_partitions(offsets, partitions),
        "inconsistent-offsets",
        offset="offset",
        value=first["value"],
        leader_epoch=first["sound_epoch"],
        excuse=f.when(strong < 2, "acks").when(gone, "unclean"),
        row=first["seen_row"],
        time_ns=first["seen_ns"],
        other_value=second["value"],
        since_ns=f.when(~unsent, begun_ns),
        by_ns=second["seen_ns"],
    )


QUESTIONS = (Question(inconsistent_offsets, about="record"),)
