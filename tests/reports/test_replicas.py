"""Replica logs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.checker import Outcome, RunVerdict
from harness.model import TopicPartition
from reports.replicas import Cell, table
from reports.run import read

LEDGER = TopicPartition("ledger", 0)


@pytest.fixture(scope="module")
def cells(double_failover_run: Path) -> dict[str, list[str]]:
    run = read(double_failover_run)
    found = table(run, run.rows_of(LEDGER), 20, 21)
    rows = [found.clients, *found.replicas, found.final_read]
    return {row.name: [cell.words for cell in row.cells] for row in rows if row}


def test_replicas_clients_and_final_read_stand_below_each_other(cells: dict[str, list[str]]) -> None:
    assert cells["acknowledged"][3] == "1020, then 1040"
    assert [cells[f"broker {b}"][3] for b in (0, 1, 2)] == ["1020@e0", "1040@e2", "1040@e2"]
    assert cells["final read"][3] == "1040"


def test_a_long_range_shows_its_two_ends(double_failover_run: Path) -> None:
    run = read(double_failover_run)
    found = table(run, run.rows_of(LEDGER), 3, 500)
    assert found.offsets[:6] == [0, 1, 2, 3, 4, 5]
    assert found.offsets[6] is None
    assert found.offsets[-1] == 502


def test_the_watermark_stands_after_the_last_record_below_it_and_a_missing_record_is_odd(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    recording = double_failover_recording
    recording.state(11.0, 1, (2, 2), (28, 30), (0, 1, 2), kind="final")
    recording.timeline[-1]["detail"] = '{"source": "disk"}'
    recording.logs = [row for row in recording.logs if (row["node"], row["offset"]) != (1, 27)]
    run = read(recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python")))
    replica = table(run, run.rows_of(LEDGER), 27, 28).replicas[1]
    assert [cell.edge for cell in replica.cells] == [False, False, False, True, False, False, False]
    assert replica.cells[3] == Cell("-", odd=True, beyond=False, edge=True)
    assert replica.cells[4].beyond
    assert replica.marks == "hw 28 in its checkpoint, log end 30"
