"""Runs of any size in which nothing went wrong, written without a cluster: what the checker is timed with.

Every record is sent once, polled once while the run goes on, and once more by the final read; three replicas hold it.
Half of the operations are sends. Write one with ``python tests/bench/histories.py OPERATIONS RUN_DIR``.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import typer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.history.arrow import write_rows
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY, REPLICA_LOGS, Table
from harness.model import CONTROLLER_ID
from spark_analysis.session import session
from spark_analysis.tables import spark_schema

TOPIC = "ledger"
KEYS = 8
BROKERS = 3
ROWS_PER_FILE = 250_000
ROWS_PER_STEP = 4
"""A send's two rows and a poll's two."""
FINAL_PROCESS = 1_000
PER_FINAL_POLL = 500
TICK_NS = 1_000
BYTES_PER_OPERATION = 64


def write(spark: SparkSession, operations: int, path: Path, *, hot: float = 0.0) -> Path:
    """Write a run of ``operations`` operations, half of them sends, into the new directory ``path``.

    Args:
        spark: writes the large tables.
        operations: a multiple of 16; the final read's polls are not counted.
        hot: which share of the records goes to partition 0; 0: every partition gets as many.
    """
    sends = operations // 2
    run = path.name
    ends = _ends(sends, hot)
    directory = RunDirectory.create(path, _manifest(run, operations))
    _save(_in_turn([_tailing(spark, sends, ends), *_final(spark, ends, sends)]), run, path / HISTORY.path, HISTORY)
    _save(_in_turn(_logs(spark, ends, sends)), run, path / REPLICA_LOGS.path, REPLICA_LOGS)
    _close(run, path, ends, sends)
    directory.write_table("timeline", list(_timeline(run, ends)))
    directory.write_table("faults", [])
    directory.finish("complete", 0.0)
    return path


def _ends(sends: int, hot: float) -> list[int]:
    """How many records each partition gets."""
    cold = int(sends * (1 - hot) / (KEYS - 1)) if hot else sends // KEYS
    return [sends - cold * (KEYS - 1), *[cold] * (KEYS - 1)]


def _range(spark: SparkSession, rows: int) -> DataFrame:
    """``id`` from 0 to ``rows``, in order, as many to a file as a run's recorder puts there."""
    return spark.range(0, rows, 1, max(1, math.ceil(rows / ROWS_PER_FILE)))


def _in_turn(parts: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, parts)


def _place(step: Column, sends: int, ends: list[int]) -> tuple[Column, Column]:
    """Where the record of ``step`` goes: its partition and its offset."""
    cold = ends[1]
    # The cold partitions take turns as long as they have room, each in every (sends / cold)-th step.
    every = max(1, sends // (cold * (KEYS - 1)))
    if every == 1:
        return (step % KEYS).cast("int"), f.floor(step / KEYS).cast("long")
    turn = f.floor(step / every)
    is_cold = (step % every == every - 1) & (turn < cold * (KEYS - 1))
    passed = f.least(turn, f.lit(cold * (KEYS - 1)))
    partition = f.when(is_cold, 1 + turn % (KEYS - 1)).otherwise(0)
    return partition.cast("int"), f.when(is_cold, f.floor(turn / (KEYS - 1))).otherwise(step - passed).cast("long")


def _rows(rows: DataFrame, index: Column, **columns: Any) -> DataFrame:
    known = {"index": index, "time_ns": index * TICK_NS, "txn": f.lit(False), "mop": f.lit(0), **columns}
    return rows.select(
        *[(known[c.name] if c.name in known else f.lit(None)).alias(c.name) for c in HISTORY.columns if c.name != "run"]
    )


def _tailing(spark: SparkSession, sends: int, ends: list[int]) -> DataFrame:
    """A send and a poll of its record per step: four rows."""
    index = f.col("id")
    step, which = f.floor(index / ROWS_PER_STEP), index % ROWS_PER_STEP
    partition, offset = _place(step, sends, ends)
    sending, delivered, ended = which < 2, which == ROWS_PER_STEP - 1, which % 2 == 1
    named = sending | delivered
    return _rows(
        _range(spark, ROWS_PER_STEP * sends), index,
        process=f.when(sending, partition).otherwise(partition + KEYS),
        op=2 * step + f.when(sending, 0).otherwise(1),
        type=f.when(ended, "ok").otherwise("invoke"),
        f=f.when(sending, "send").otherwise("poll"),
        topic=f.when(named, TOPIC),
        partition=f.when(named, partition),
        offset=f.when(ended, offset),
        value=f.when(named, step),
        leader_epoch=f.when(delivered, 0),
        acks=f.when(sending, -1),
        final=f.lit(False),
        intact=f.when(delivered, f.lit(True)),
    )  # fmt: skip


def _final(spark: SparkSession, ends: list[int], sends: int) -> Iterator[DataFrame]:
    """The final read, one partition after the other, :data:`PER_FINAL_POLL` records a poll."""
    begun, op = ROWS_PER_STEP * sends, 2 * sends
    for partition, end in enumerate(ends):
        polls = math.ceil(end / PER_FINAL_POLL)
        poll, which = f.floor(f.col("id") / (PER_FINAL_POLL + 1)), f.col("id") % (PER_FINAL_POLL + 1)
        delivered, offset = which > 0, poll * PER_FINAL_POLL + which - 1
        yield _rows(
            _range(spark, end + polls), begun + f.col("id"),
            process=f.lit(FINAL_PROCESS + partition),
            op=op + poll,
            type=f.when(delivered, "ok").otherwise("invoke"),
            f=f.lit("poll"),
            topic=f.when(delivered, TOPIC),
            partition=f.when(delivered, partition),
            offset=f.when(delivered, offset),
            value=f.when(delivered, _value(ends, sends, partition, offset)),
            leader_epoch=f.when(delivered, 0),
            final=f.lit(True),
            intact=f.when(delivered, f.lit(True)),
        )  # fmt: skip
        begun, op = begun + end + polls, op + polls


def _value(ends: list[int], sends: int, partition: int, offset: Column) -> Column:
    """The inverse of :func:`_steps`: which record is at ``offset`` of ``partition``."""
    cold = ends[1]
    every = max(1, sends // (cold * (KEYS - 1)))
    if every == 1:
        return offset * KEYS + partition
    if partition:
        return (offset * (KEYS - 1) + partition - 1) * every + every - 1
    turns = cold * (KEYS - 1)
    passed = f.least(f.floor(offset / (every - 1)), f.lit(turns))
    return offset + passed


def _logs(spark: SparkSession, ends: list[int], sends: int) -> list[DataFrame]:
    """Every record, on every broker."""
    return [_log(spark, ends, sends, partition) for partition in range(KEYS)]


def _log(spark: SparkSession, ends: list[int], sends: int, partition: int) -> DataFrame:
    offset = f.col("id") % ends[partition]
    value = _value(ends, sends, partition, offset)
    known: dict[str, Any] = {
        "node": f.floor(f.col("id") / ends[partition]), "topic": f.lit(TOPIC), "partition": f.lit(partition),
        "offset": offset, "leader_epoch": f.lit(0), "value": value, "batch_base_offset": offset,
        "batch_crc": f.crc32(value.cast("string").cast("binary")), "intact": f.lit(True), "transactional": f.lit(False),
    }  # fmt: skip
    names = [c.name for c in REPLICA_LOGS.columns if c.name != "run"]
    return _range(spark, BROKERS * ends[partition]).select(*[known.get(n, f.lit(None)).alias(n) for n in names])


def _save(rows: DataFrame, run: str, directory: Path, table: Table) -> None:
    """Write a file per partition of ``rows``, named as a run directory's are."""
    schema = spark_schema(table)
    typed = rows.withColumn("run", f.lit(run)).select(*[f.col(s.name).cast(s.dataType) for s in schema.fields])
    temporary = directory / "writing"
    typed.write.option("parquet.page.write-checksum.enabled", "true").parquet(str(temporary))
    for number, part in enumerate(sorted(temporary.glob("part-*.parquet"))):
        part.rename(directory / f"part-{number:05d}.parquet")
    shutil.rmtree(temporary)


def _close(run: str, path: Path, ends: list[int], sends: int) -> None:
    index = ROWS_PER_STEP * sends + sum(end + math.ceil(end / PER_FINAL_POLL) for end in ends)
    row = {"run": run, "index": index, "time_ns": index * TICK_NS, "process": -1, "op": index, "type": "ok",
           "f": "close", "txn": False, "mop": 0, "final": False}  # fmt: skip
    write_rows(HISTORY, path / HISTORY.path / "part-99999.parquet", [row])


def _timeline(run: str, ends: list[int]) -> Iterator[dict[str, Any]]:
    for node in (*range(BROKERS), CONTROLLER_ID):
        told: list[tuple[str, int | None, int]] = [("started", None, 0)]
        if node != CONTROLLER_ID:
            told += [("state", p, mark) for p, end in enumerate(ends) for mark in (0, end)]
            told += [("final", p, end) for p, end in enumerate(ends)]
        else:
            told += [("final", None, 1)]
        for sequence, (kind, partition, mark) in enumerate(told):
            row: dict[str, Any] = {
                "run": run, "node": node, "sequence": sequence, "incarnation": 0,
                "time_ns": 0 if mark == 0 else 1, "wall_ms": 0, "kind": kind,
            }  # fmt: skip
            if partition is not None:
                row |= {
                    "topic": TOPIC, "partition": partition, "role": "leader" if node == 0 else "follower",
                    "leader": 0, "leader_epoch": 0, "partition_epoch": 0, "high_watermark": mark,
                    "log_end_offset": mark, "log_start_offset": 0, "isr": list(range(BROKERS)),
                }  # fmt: skip
            yield row


def _manifest(run: str, operations: int) -> Manifest:
    topic = {"name": TOPIC, "partitions": KEYS, "replication_factor": BROKERS}
    return Manifest(
        run, f"{operations} operations", 0, "2026-01-01T00:00:00+00:00", state="complete",
        guarantees={"min_insync_replicas": 2, "unclean_election": False, "retention": False},
        configuration={"scenario": {"cluster": {"brokers": BROKERS}, "topics": [topic]}},
    )  # fmt: skip


def main(operations: int, path: Path, hot: float = 0.0) -> None:
    """Write a run of OPERATIONS operations into the new directory PATH."""
    write(session(size=operations * BYTES_PER_OPERATION), operations, path, hot=hot)


if __name__ == "__main__":
    typer.run(main)
