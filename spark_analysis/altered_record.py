"""At which offsets does the final leader's log hold another record than was delivered or acknowledged there?"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.history.schema import ColumnType
from harness.payload import FOREIGN_VALUE
from spark_analysis.demands import Damage
from spark_analysis.lost_write import excuse, with_authors
from spark_analysis.partitions import missing
from spark_analysis.question import Question
from spark_analysis.tables import PLACE, Tables, table_of
from spark_analysis.views import Partitions, Records, Scale, findings, with_partitions


def altered_records(
    tables: Tables, records: Records, partitions: Partitions, damage: Damage, scale: Scale
) -> DataFrame | None:
    """``altered-record``, as ``checkers.altered_record`` defines it."""
    placed = records.unsettled.where(f.col("value").isNotNull() & f.col("offset").isNotNull() & ~f.col("in_final_log"))
    known = with_partitions(placed, partitions).where(_is_committed())
    acknowledged = f.col("ack_row").isNotNull() & ~missing(f.col("offset"), read=f.col("value_read_row").isNotNull())
    claims = known.where(f.when(f.col("finally"), ~f.col("unsound")).otherwise(acknowledged))
    if scale.large:
        claims = scale.hold(claims, few=True)
        if claims.isEmpty():
            return None
    held = with_authors(claims.join(_held(tables, partitions, claims), on=[*PLACE, "offset"], how="inner"))
    swapped = held.join(f.broadcast(_swapped(tables, damage)), on=list(PLACE), how="left")
    foreign = f.coalesce("swapped", f.lit(False)) & (f.greatest("value", "held_value") >= FOREIGN_VALUE)
    acked = ~f.col("finally")
    return findings(
        swapped,
        "altered-record",
        offset="offset",
        value="value",
        leader_epoch="held_epoch",
        excuse=f.when(acked, excuse(hidden=False)).when(foreign, "damage"),
        row=f.when(acked, f.col("ack_row")).otherwise(f.col("read_row")),
        time_ns=f.when(acked, f.col("acked_ns")),
        process=f.when(acked, f.col("process")),
        acks=f.when(acked, f.col("acks")),
        node="leader.node",
        other_value="held_value",
        since_ns=f.when(acked, f.col("invoked_ns")),
    )


def _is_committed() -> Column:
    """Whether the final leader's log has the offset, below its high watermark."""
    start = f.coalesce("leader.log_start_offset", f.lit(0))
    end = f.least(f.coalesce("leader.high_watermark", f.lit(0)), f.coalesce("leader.log_end_offset", f.lit(0)))
    return f.col("leader").isNotNull() & (f.col("offset") >= start) & (f.col("offset") < end)


def _held(tables: Tables, partitions: Partitions, claims: DataFrame) -> DataFrame:
    """What the final leaders' logs hold at these offsets, where nothing of it is damaged."""
    ends = partitions.rows.where(f.col("leader").isNotNull()).select(*PLACE, f.col("leader.node").alias("node"))
    logs = tables.replica_logs.join(f.broadcast(ends), on=[*PLACE, "node"], how="left_semi")
    near = logs.join(claims.select(*PLACE, "offset").distinct(), on=[*PLACE, "offset"], how="left_semi")
    known = f.when(f.col("leader_epoch") >= 0, f.col("leader_epoch"))
    held = near.groupBy(*PLACE, "offset").agg(
        f.max("value").alias("held_value"), f.min(known).alias("held_epoch"), f.min("intact").alias("whole")
    )
    return held.where("whole").drop("whole")


def _swapped(tables: Tables, damage: Damage) -> DataFrame:
    """The partitions where a fault has put records of another cluster into a log: with ``swapped``."""
    named = [
        {"run": run, "topic": topic, "partition": partition, "swapped": True}
        for run, places in damage.swapped.items()
        for topic, partition in places
    ]
    types: dict[str, ColumnType] = {"run": "string", "topic": "string", "partition": "int32", "swapped": "bool"}
    return table_of(tables.history.sparkSession, named, types)


QUESTIONS = (Question(altered_records, about="record"),)
