"""Selects the frames of a wire tap, and the rows of the history, by which findings are attributed.

``checkers.wire_tap.attribution`` decides; this module selects at least the rows that it looks at: the frames from and
to clients about an offset that a finding names, or with the checksum of a batch that the replicas' logs hold there;
those that ended a transaction of the producers of these batches, and those that were not understood; the findings' own
rows; how the sends of their values, and what groups did at their partitions, began; what share groups acknowledged
there; who did the final reads, and took the last record of a share group; what readers of a compacted log of which
something is lost were given, and report; and every DeleteRecords.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from harness import compacted
from harness.findings import Finding
from harness.history.schema import WIRE, ColumnType
from harness.model import CLIENTS
from spark_analysis.files import TableFile
from spark_analysis.tables import PLACE, Tables, spark_schema, table_of
from spark_analysis.witnesses import Rows, collected, keys

_PLACES: Mapping[str, ColumnType] = {"run": "string", "topic": "string", "partition": "int32"}
_WHOLE = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "OFFSET_FETCH", "LIST_OFFSETS")
"""The APIs whose frames about a finding's partition are all selected: few, and without batches."""


def with_frames(
    spark: SparkSession,
    tables: Tables,
    files: Sequence[TableFile],
    findings: Sequence[Finding],
    rows: Mapping[str, Rows],
) -> dict[str, Rows]:
    """``rows``, which :func:`~spark_analysis.witnesses.witnesses` has selected, with what attribution needs besides."""
    history = tables.history
    paths = [file.literally for file in files]
    wire = spark.read.schema(spark_schema(WIRE)).parquet(*paths).where(f.col("peer") == CLIENTS)
    offsets = keys(spark, "key", ((x, o) for x in findings for o in (x.offset, x.other_offset, x.until)))
    values = keys(spark, "value", ((x, v) for x in findings for v in (x.value, x.other_value)))
    sums = table_of(spark, _sums(rows), {**_PLACES, "batch_crc": "int64"})
    at = wire.join(f.broadcast(offsets), on=list(PLACE), how="inner")
    covers = (f.col("base_offset") <= f.col("key")) & (f.col("key") < f.col("end_offset"))
    passes = (f.col("offset") <= f.col("key")) & (f.col("key") < f.col("base_offset")) & ~_is_own(wire)
    named = table_of(spark, _named(findings), {"run": "string", "index": "int64"})
    producers = table_of(spark, _producers(rows), {"run": "string", "producer_id": "int64"})
    places = table_of(spark, _distinct(findings), _PLACES)
    readers = table_of(spark, _readers(findings), {**_PLACES, "process": "int32", "client_id": "string"})
    begun = history.where((f.col("type") == "invoke") & (f.col("f").isin("send", "put")))
    asked = history.where((f.col("type") == "invoke") & f.col("f").isin("commit", "committed"))
    found = collected(
        {
            "wire": [
                at.where(covers).drop("key"),
                at.where(passes).drop("key"),
                wire.join(f.broadcast(sums), on=[*PLACE, "batch_crc"], how="left_semi"),
                wire.where(f.col("api").isin(*_WHOLE)).join(f.broadcast(places), on=list(PLACE), how="left_semi"),
                wire.where(f.col("api") == "END_TXN").join(
                    f.broadcast(producers), on=["run", "producer_id"], how="left_semi"
                ),
                wire.where(f.col("api") == "DELETE_RECORDS"),
                _given_to_readers(wire, readers),
                _not_understood(wire),
            ],
            "history": [
                history.join(f.broadcast(named), on=["run", "index"], how="left_semi"),
                begun.join(f.broadcast(values), on=[*PLACE, "value"], how="left_semi"),
                asked.join(f.broadcast(places), on=list(PLACE), how="left_semi"),
                _scans(history, readers),
                _refused_puts(history, places),
                *_of_shares(history, offsets, places),
                _final_readers(history, places),
                _printed(history),
            ],
            "replica_logs": [_compacted(tables, places)],
        }
    )
    return {run: _together(rows.get(run, {}), found.get(run, {})) for run in {*rows, *found}}


def _is_own(wire: DataFrame) -> Column:
    """Whether the asker is one of seawall's clients, and none of a user's program."""
    return f.coalesce(wire["client_id"], f.lit("")).startswith("seawall-")


def _printed(history: DataFrame) -> DataFrame:
    """A record of the output of each program whose output is in no topic."""
    printed = history.where((f.col("f") == "output") & (f.col("type") == "ok") & f.col("topic").isNull())
    return printed.groupBy("run").agg(f.min_by(f.struct(*history.columns), "index").alias("row")).select("row.*")


def _given_to_readers(wire: DataFrame, readers: DataFrame) -> DataFrame:
    """What was fetched by the readers of a compacted log of which something is lost."""
    return wire.where(f.col("api") == "FETCH").join(f.broadcast(readers), on=[*PLACE, "client_id"], how="left_semi")


def _compacted(tables: Tables, places: DataFrame) -> DataFrame:
    """What is left in the logs by which the batches of these readers are known: little, for they are compacted."""
    known = tables.compacted_logs.where(f.col("value").isNotNull())
    return known.join(f.broadcast(places), on=list(PLACE), how="left_semi")


def _refused_puts(history: DataFrame, places: DataFrame) -> DataFrame:
    """The puts that failed."""
    failed = history.where((f.col("f") == "put") & (f.col("type") == "fail"))
    return failed.join(f.broadcast(places), on=list(PLACE), how="left_semi")


def _scans(history: DataFrame, readers: DataFrame) -> DataFrame:
    """What these readers report."""
    return history.where(f.col("f") == "scan").join(f.broadcast(readers), on=[*PLACE, "process"], how="left_semi")


def _not_understood(wire: DataFrame) -> DataFrame:
    """A frame of each API of which one was not understood."""
    first = f.min_by(f.struct(*wire.columns), "request_ns").alias("row")
    unnamed = f.col("topic").isNull() & f.col("partition").isNotNull()
    return wire.where(f.col("problem").isNotNull() | unnamed).groupBy("run", "api").agg(first).select("row.*")


def _final_readers(history: DataFrame, places: DataFrame) -> DataFrame:
    """One delivery of each process that did a final read of the partitions."""
    delivered = history.where(f.col("final") & (f.col("f") == "poll") & f.col("offset").isNotNull())
    concerned = delivered.join(f.broadcast(places), on=list(PLACE), how="left_semi")
    first = f.min_by(f.struct(*history.columns), "index").alias("row")
    return concerned.groupBy(*PLACE, "process").agg(first).select("row.*")


def _of_shares(history: DataFrame, offsets: DataFrame, places: DataFrame) -> list[DataFrame]:
    """What share groups acknowledged of the offsets, how their drains began, and what each was given last."""
    said = history.where(f.col("f") == "acknowledge").withColumn("key", f.col("offset"))
    drains = history.where((f.col("f") == "drain") & (f.col("type") == "invoke"))
    given = history.where((f.col("f") == "acquire") & (f.col("type") == "ok") & f.col("topic").isNotNull())
    last = given.groupBy("run", "group").agg(f.max_by(f.struct(*history.columns), "index").alias("row"))
    return [
        said.join(f.broadcast(offsets), on=[*PLACE, "key"], how="left_semi").drop("key"),
        drains.join(f.broadcast(places), on=list(PLACE), how="left_semi"),
        last.select("row.*"),
    ]


def _sums(rows: Mapping[str, Rows]) -> Iterator[dict[str, Any]]:
    found = {
        (run, row["topic"], row["partition"], row["batch_crc"])
        for run, tables in rows.items()
        for row in tables.get("replica_logs", ())
    }
    return (dict(zip((*PLACE, "batch_crc"), one, strict=True)) for one in found)


def _producers(rows: Mapping[str, Rows]) -> Iterator[dict[str, Any]]:
    found = {
        (run, row["producer_id"])
        for run, tables in rows.items()
        for row in tables.get("replica_logs", ())
        if row["producer_id"] is not None
    }
    return (dict(zip(("run", "producer_id"), one, strict=True)) for one in found)


def _readers(findings: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """The processes that read the whole compacted log, as findings name them."""
    found = {
        (one.run, one.topic, one.partition, one.process, f"seawall-{compacted.reader_name(one.process)}")
        for one in findings
        if one.topic == compacted.TOPIC and one.process is not None
    }
    return (dict(zip((*PLACE, "process", "client_id"), one, strict=True)) for one in found)


def _named(findings: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """The rows of the history that findings name; a finding about a node names a row of its timeline."""
    return ({"run": one.run, "index": one.row} for one in findings if one.row is not None and one.incarnation is None)


def _distinct(findings: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    found = {(one.run, one.topic, one.partition) for one in findings}
    return (dict(zip(PLACE, one, strict=True)) for one in found)


def _together(known: Rows, more: Rows) -> Rows:
    """The rows of both; those of the history once, by their positions, and those of the logs once."""
    history = {row["index"]: row for row in (*known.get("history", ()), *more.get("history", ()))}
    logs = {tuple(row.items()): row for row in (*known.get("replica_logs", ()), *more.get("replica_logs", ()))}
    return {**known, **more, "history": [*history.values()], "replica_logs": [*logs.values()]}
