from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.clock import SystemClock
from harness.errors import EnvironmentFault, InvalidRun
from harness.history import arrow
from harness.history.arrow import arrow_schema
from harness.history.blocks import Block
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import FORMAT_VERSION, TABLES
from harness.history.table_file import require_readable

MANIFEST = Manifest(
    run="r1",
    scenario="quiet",
    seed=7,
    started_wall="2025-01-01T00:00:00+00:00",
    versions={"seawall": "0.1.0"},
    generation="3.7",
    configuration={"target": "builtin", "topics": ["ledger"]},
    predictions=[{"kind": "lost-write", "topic": "ledger", "partition": 0, "offset": 1}],
    guarantees={"min_insync_replicas": 2, "unclean_election": False},
)
FAULT: dict[str, Any] = {
    "run": "r1", "fault": "cut", "kind": "partition", "nodes": ["0", "2"], "parameters": "{}",
    "aimed_ns": 1, "aim": "{}", "injected_ns": 2, "proven_ns": None,
}  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "runs" / "run", MANIFEST)


def test_run_json_comes_back_as_it_was_written(directory: RunDirectory) -> None:
    assert RunDirectory.open(directory.path).manifest() == MANIFEST
    directory.finish("complete", 12.5)
    finished = directory.manifest()
    assert (finished.state, finished.duration_s, finished.seed) == ("complete", 12.5, 7)


def test_a_run_directory_is_never_reused(directory: RunDirectory) -> None:
    with pytest.raises(EnvironmentFault, match="cannot be created"):
        RunDirectory.create(directory.path, MANIFEST)


def test_a_run_of_another_format_is_refused_with_both_versions(directory: RunDirectory) -> None:
    path = directory.path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": FORMAT_VERSION + 1}))
    with pytest.raises(InvalidRun, match=rf"format {FORMAT_VERSION + 1} is not this version's {FORMAT_VERSION}"):
        RunDirectory.open(directory.path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "state": "odd"}'])
def test_a_broken_run_json_is_named(directory: RunDirectory, text: str) -> None:
    (directory.path / "run.json").write_text(text)
    with pytest.raises(InvalidRun, match=r"run\.json"):
        RunDirectory.open(directory.path)


def test_what_is_no_run_directory_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=r"nothing/run\.json is missing"):
        RunDirectory.open(tmp_path / "nothing")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_missing_table_is_named(directory: RunDirectory, name: str) -> None:
    with pytest.raises(InvalidRun, match=rf"{TABLES[name].path}.* is missing"):
        directory.read_table(name)


def test_rows_come_back_as_they_were_written_with_null_for_what_they_lack(directory: RunDirectory) -> None:
    directory.write_table("faults", [FAULT])
    [row] = directory.read_table("faults")
    assert row == {**FAULT, "proof": None, "healed_ns": None, "heal_proven_ns": None, "heal_proof": None}


def test_rows_that_are_told_one_by_one_are_written_in_groups_and_come_back_in_order(directory: RunDirectory) -> None:
    count = 65_536 + 1
    directory.write_table("faults", ({**FAULT, "aimed_ns": number} for number in range(count)))
    [path] = directory.table_files("faults")
    assert pq.ParquetFile(path).num_row_groups == 2
    assert [row["aimed_ns"] for row in directory.read_table("faults")] == list(range(count))


def test_a_table_whose_rows_end_in_an_error_leaves_nothing(directory: RunDirectory) -> None:
    def told() -> Iterator[dict[str, Any]]:
        yield FAULT
        raise EnvironmentFault("the disk cannot be read.")

    with pytest.raises(EnvironmentFault, match="cannot be read"):
        directory.write_table("faults", told())
    assert not list(directory.path.glob("*faults*"))


def test_an_empty_table_is_not_a_missing_one(directory: RunDirectory) -> None:
    directory.write_table("timeline", [])
    assert directory.read_table("timeline") == []


@pytest.mark.parametrize("row", [{**FAULT, "colour": "red"}, {**FAULT, "kind": None}])
def test_a_row_that_does_not_fit_its_table_is_a_bug(directory: RunDirectory, row: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        directory.write_table("faults", [row])


def log_blocks(offsets: range) -> Iterator[Block]:
    """A batch of three records of one log for each of ``offsets``."""
    same = {"node": 0, "topic": "ledger", "partition": 0, "leader_epoch": 0, "batch_crc": 7, "intact": True}
    for first in range(3 * offsets.start, 3 * offsets.stop, 3):
        yield Block({**same, "batch_base_offset": first}, {"offset": range(first, first + 3)}, 3)


@pytest.mark.parametrize(
    ("batches", "sizes"), [(0, [0]), (3, [9]), (4, [12, 0]), (5, [12, 3]), (8, [12, 12, 0]), (10, [12, 12, 6])]
)
def test_a_long_table_is_several_files(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, batches: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(arrow, "ROW_GROUP", 5)
    monkeypatch.setattr(arrow, "FILE_ROWS", 10)
    directory.write_blocks("replica_logs", log_blocks(range(20)))
    directory.write_blocks("replica_logs", log_blocks(range(batches)))
    files = directory.table_files("replica_logs")
    assert [pq.ParquetFile(path).metadata.num_rows for path in files] == sizes
    rows = directory.read_table("replica_logs")
    assert [row["offset"] for row in rows] == list(range(3 * batches))
    assert {row["run"] for row in rows} <= {"r1"}


def test_a_table_whose_blocks_cannot_be_had_is_missing(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "ROW_GROUP", 1)
    monkeypatch.setattr(arrow, "FILE_ROWS", 1)

    def blocks() -> Iterator[Block]:
        yield from log_blocks(range(5))
        raise EnvironmentFault("The log of node 1 cannot be read.")

    with pytest.raises(EnvironmentFault, match="node 1"):
        directory.write_blocks("replica_logs", blocks())
    assert not directory.has_table("replica_logs")
    assert not list(directory.path.glob(".*"))


def test_a_truncated_part_is_named(directory: RunDirectory) -> None:
    directory.write_table("timeline", [])
    [path] = directory.table_files("timeline")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InvalidRun, match=r"timeline/part-00000\.parquet is truncated"):
        directory.read_table("timeline")


def test_a_part_without_a_column_is_named_with_the_column(directory: RunDirectory) -> None:
    schema = arrow_schema(TABLES["timeline"])
    path = directory.path / "timeline" / "part-00000.parquet"
    pq.write_table(pa.Table.from_pylist([], schema=schema.remove(schema.get_field_index("incarnation"))), path)
    with pytest.raises(InvalidRun, match="lacks column incarnation"):
        require_readable(TABLES["timeline"], path)


def test_a_part_that_is_still_being_written_is_not_read(directory: RunDirectory) -> None:
    history = directory.recorder(SystemClock())
    (directory.path / "history" / ".part-00000.parquet.partial").write_bytes(b"PAR1")
    history.close()
    assert [row["f"] for row in directory.read_table("history")] == ["close"]


def test_a_verdict_is_none_until_it_is_written(directory: RunDirectory) -> None:
    assert directory.read_verdict() is None
    directory.write_verdict({"run": "r1"})
    assert directory.read_verdict() == {"run": "r1"}
