"""Selects the rows that findings cite: those about their records, and the turning points of leaders."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from harness import compacted
from harness.findings import Finding
from harness.history.schema import EVERY_TABLE, ColumnType
from spark_analysis.sizing import gathered
from spark_analysis.tables import PLACE, Tables, table_of, united

Rows = dict[str, list[dict[str, Any]]]
"""Rows by table name."""

_TERM = (*PLACE, "node", "incarnation", "leader_epoch")

_PLACE_TYPES: Mapping[str, ColumnType] = {"run": "string", "topic": "string", "partition": "int32"}


def witnesses(spark: SparkSession, tables: Tables, findings: Sequence[Finding]) -> dict[str, Rows]:
    """The rows that the evidence of ``findings`` may cite, by run and table, in one job.

    Of the history and the replicas' logs: every row about an offset or a value that a finding names. Of the timeline,
    for the partitions concerned: every truncation and decision, the first row of every leader's term, and the first row
    of each term in which the high watermark is above a finding's offset.
    """
    offsets = keys(spark, "offset", ((x, o) for x in findings for o in (x.offset, x.other_offset, x.until)))
    values = keys(spark, "value", ((x, v) for x in findings for v in (x.value, x.other_value)))
    completions = tables.history.where((f.col("type") != "invoke") & f.col("topic").isNotNull())
    logs = tables.replica_logs
    if any(one.topic == compacted.TOPIC for one in findings):
        logs = logs.unionByName(tables.compacted_logs)
    parts = {
        "history": [_about(completions, "offset", offsets), _about(completions, "value", values)],
        "replica_logs": [_about(logs, "offset", offsets), _about(logs, "value", values)],
        "timeline": _turning_points(tables.timeline, findings, offsets, spark),
    }
    return collected(parts)


def collected(parts: Mapping[str, Sequence[DataFrame]]) -> dict[str, Rows]:
    """The distinct rows of some tables, by run and table, in one job."""
    packed = [
        rows.select("run", f.lit(name).alias("name"), f.to_json(f.struct(*_names(name))).alias("row"))
        for name, selected in parts.items()
        for rows in selected
    ]
    found: dict[str, Rows] = defaultdict(lambda: {name: [] for name in parts})
    for run, name, row in sorted(set(map(tuple, gathered(united(packed, DataFrame.union)).collect()))):
        found[run][name].append(dict.fromkeys(_names(name)) | json.loads(row))
    return found


def _names(table: str) -> list[str]:
    return [column.name for column in EVERY_TABLE[table].columns]


def keys(spark: SparkSession, name: str, pairs: Iterable[tuple[Finding, int | None]]) -> DataFrame:
    """Numbers that findings name, with their partitions, as the column ``name``."""
    found = {(x.run, x.topic, x.partition, key) for x, key in pairs if key is not None}
    return table_of(
        spark, (dict(zip((*PLACE, name), row, strict=True)) for row in found), {**_PLACE_TYPES, name: "int64"}
    )


def _about(rows: DataFrame, name: str, keys: DataFrame) -> DataFrame:
    return rows.join(f.broadcast(keys), on=[*PLACE, name], how="left_semi")


def _turning_points(
    timeline: DataFrame, findings: Sequence[Finding], offsets: DataFrame, spark: SparkSession
) -> list[DataFrame]:
    found = {(x.run, x.topic, x.partition) for x in findings}
    places = table_of(spark, (dict(zip(PLACE, row, strict=True)) for row in found), _PLACE_TYPES)
    concerned = timeline.join(f.broadcast(places), on=list(PLACE), how="left_semi")
    led = concerned.where((f.col("kind") == "state") & (f.col("role") == "leader"))
    first = led.groupBy(*_TERM).agg(f.min_by(f.struct(*timeline.columns), "sequence").alias("row"))
    return [
        concerned.where(f.col("kind").isin("truncation", "election", "isr")),
        first.select("row.*"),
        _first_above(led, offsets).select(*timeline.columns),
    ]


def _first_above(led: DataFrame, offsets: DataFrame) -> DataFrame:
    """The first row of each leader's term with a high watermark above each of ``offsets``; it is the highest so far."""
    before = Window.partitionBy(*_TERM).orderBy("sequence").rowsBetween(Window.unboundedPreceding, -1)
    highest = f.coalesce(f.max("high_watermark").over(before), f.lit(-1))
    rising = led.withColumn("highest", highest).where(f.col("high_watermark") > f.col("highest"))
    passed = (f.col("highest") <= f.col("key")) & (f.col("key") < f.col("high_watermark"))
    keys = f.broadcast(offsets.withColumnRenamed("offset", "key"))
    return rising.join(keys, on=list(PLACE), how="inner").where(passed)
