"""A run that is large in fact, in which a handful of things went wrong, in words, blocks and chunks as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.verdicts.sources import LocalRun
from harness.history.arrow import write_file
from harness.history.blocks import Block
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from spark_analysis import blocks, digesting, sizing
from tests.bench.histories import ROWS_PER_STEP, write
from tests.spark_analysis.differential import disagreements, verdicts_on

OPERATIONS = 144_000
HOT = 0.95
"""Enough for more than a block of offsets in one partition."""

ROWS_PER_FILE = 100_000
"""More than a chunk, and no multiple of it."""

_HEARD = ("topic", "partition", "offset", "value", "leader_epoch", "intact")
"""What a delivery says that an empty poll does not."""


class Rows:
    """A table of a run directory by its columns, to be falsified and written again."""

    def __init__(self, path: Path, name: str) -> None:
        self._table, self._files = TABLES[name], RunDirectory(path).table_files(name)
        names = [column.name for column in self._table.columns]
        tables = [pq.read_table(file, columns=names) for file in self._files]
        self.columns = {name: [value for one in tables for value in one.column(name).to_pylist()] for name in names}

    def by(self, *names: str) -> dict[tuple[Any, ...], int]:
        """The number of the last row with these values."""
        return {key: row for row, key in enumerate(zip(*(self.columns[name] for name in names), strict=True))}

    def change(self, rows: Iterable[int], **values: object) -> None:
        for row in rows:
            for name, value in values.items():
                self.columns[name][row] = value

    def exchange(self, rows: Iterable[int], others: Iterable[int], names: Iterable[str]) -> None:
        """What these columns say in each of ``rows`` they say in the other one, and the other way round."""
        for one, other in zip(rows, others, strict=True):
            for column in map(self.columns.__getitem__, names):
                column[one], column[other] = column[other], column[one]

    def drop(self, rows: Collection[int]) -> None:
        gone = set(rows)
        for name, column in self.columns.items():
            self.columns[name] = [value for row, value in enumerate(column) if row not in gone]

    def write(self) -> None:
        """Write it again, several files to a table."""
        for file in self._files:
            file.unlink()
        for number, begin in enumerate(range(0, len(self.columns["run"]), ROWS_PER_FILE)):
            file = self._files[0].with_name(f"part-{number:05d}.parquet")
            some = {name: column[begin : begin + ROWS_PER_FILE] for name, column in self.columns.items()}
            write_file(self._table, file, [Block({}, some, len(some["run"]))])


class Run:
    """A run whose value v is sent in its step v: two rows of a send and then two of a poll."""

    def __init__(self, path: Path) -> None:
        self.history, self.logs = Rows(path, "history"), Rows(path, "replica_logs")
        known = self.history.by("value", "final")
        self._final = {value: row for (value, final), row in known.items() if final and value is not None}
        self._held = self.logs.by("value", "node")
        self._told = [name for name in self.history.columns if name not in {"index", "time_ns"}]

    def step(self, value: int) -> tuple[int, int, int, int]:
        """The rows in which it is sent and acknowledged, and in which is polled and delivered."""
        first = ROWS_PER_STEP * value
        return first, first + 1, first + 2, first + 3

    def stored(self, value: int) -> list[int]:
        """The rows of the replicas' logs."""
        return [self._held[value, node] for node in range(3)]

    def lose(self, value: int) -> None:
        self.logs.drop(self.stored(value))
        self.history.drop([self._final[value]])
        self.history.columns["index"] = list(range(len(self.history.columns["index"])))

    def send_twice(self, value: int, instead_of: int) -> None:
        """The other one is never heard of again."""
        _, acked, _, delivered = self.step(instead_of)
        self.history.change([acked], type="info", offset=None)
        self.history.change([delivered, self._final[instead_of]], value=value)
        self.logs.change(self.stored(instead_of), value=value)

    def diverge(self, value: int) -> None:
        self.logs.change(self.stored(value)[2:], batch_crc=1)

    def read_before_it_is_sent(self, value: int) -> None:
        rows = self.step(value)
        self.history.exchange(rows[:2], rows[2:], self._told)

    def send_in_place_of(self, value: int, other: int) -> None:
        """Each is sent when the other should have been, and polled when it should be."""
        self.history.exchange(self.step(value)[:2], self.step(other)[:2], self._told)

    def store_in_place_of(self, value: int, other: int) -> None:
        """Each is where the other should be, and nobody polls the first until the end."""
        (_, acked, _, delivered), (_, other_acked, _, other_delivered) = self.step(value), self.step(other)
        self.history.change([delivered], **dict.fromkeys(_HEARD))
        self.history.change([other_delivered], value=value)
        self.history.exchange([acked], [other_acked], ["offset"])
        self.history.exchange([self._final[value]], [self._final[other]], ["value"])
        self.logs.exchange(self.stored(value), self.stored(other), ["value"])

    def skip(self, value: int) -> None:
        self.history.change([self.step(value)[3]], **dict.fromkeys(_HEARD))


@pytest.mark.nightly("writes and judges 144,000 operations, several times")
def test_a_large_run_in_which_things_went_wrong_is_judged_as_the_reference_judges_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = write(spark, OPERATIONS, tmp_path / "large", hot=HOT)
    run = Run(path)
    run.send_twice(41_000, instead_of=52_000)
    run.diverge(60_003)
    run.read_before_it_is_sent(45_001)
    run.send_in_place_of(24_998, 25_003)  # the one is in the first file, and the other in the second
    run.store_in_place_of(37_001, 37_006)
    run.skip(55_004)
    run.lose(66_002)
    for rows in (run.history, run.logs):
        rows.write()
    RunDirectory(path).finish("complete", 0.0)
    assert LocalRun(path).size() >= sizing.LARGE
    assert max(offset or 0 for offset in run.history.columns["offset"]) > blocks.BLOCK
    assert ROWS_PER_FILE > digesting.CHUNK
    verdicts = verdicts_on([path], spark)
    assert not list(disagreements(verdicts))
    [(verdict, _)] = verdicts
    assert {anomaly.kind for anomaly in verdict.anomalies} >= {
        "lost-write", "vanished-read", "duplicate", "replica-divergence", "unwritten-read", "nonmonotonic-send",
        "poll-skip",
    }  # fmt: skip
