"""A table that is appended to: what it costs, and what a kill, a torn write or a power loss leaves of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker import row_log
from harness.broker.consumer_offsets import CommittedOffset, ConsumerOffsets
from harness.broker.files import Disk
from harness.broker.ledger import lose_power
from harness.broker.ports import FileSystem
from harness.broker.row_log import RowLog
from harness.model import TopicPartition
from harness.simulation.stack.disk import MemoryDisk

T = TopicPartition("t", 0)


@pytest.fixture(params=["memory", "real"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileSystem:
    return MemoryDisk() if request.param == "memory" else Disk(tmp_path / "data")


def names(files: FileSystem) -> list[str]:
    return [name for name in files.list("") if name.endswith(".log")]


def size(files: FileSystem) -> int:
    return sum(files.open(name).size() for name in names(files))


def test_rows_are_found_again_in_their_order(files: FileSystem) -> None:
    log = RowLog(files, "table")
    for row in (["a", 1], {"b": None}, "c\n"):
        log.append(row)
    assert RowLog(files, "table").recovered == [["a", 1], {"b": None}, "c\n"]


def test_one_more_commit_writes_the_same_bytes_however_many_groups_there_are(files: FileSystem) -> None:
    offsets = ConsumerOffsets(files)
    grown = []
    for number in range(500):
        before = size(files)
        offsets.commit(f"g{number:03d}", {T: CommittedOffset(5, 3, "mine")})
        grown.append(size(files) - before)
    assert set(grown) == {grown[0]}
    assert len(ConsumerOffsets(files).status()) == 500


def test_commits_of_one_group_are_compacted_and_the_file_stays_small(
    files: FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_log, "COMPACT_ABOVE", 20)
    offsets = ConsumerOffsets(files)
    for offset in range(500):
        offsets.commit("g", {T: CommittedOffset(offset, 3, "mine")})
    assert size(files) < 22 * 60
    assert len(names(files)) == 1
    assert ConsumerOffsets(files).committed("g", [T])[T].offset == 499


@pytest.mark.parametrize("lose", [lambda disk: disk.lose_power(), lambda disk: None], ids=["power loss", "kill"])
def test_everything_that_was_committed_survives(lose: Callable[[MemoryDisk], object]) -> None:
    disk = MemoryDisk()
    offsets = ConsumerOffsets(disk)
    for offset in range(30):
        offsets.commit("g", {T: CommittedOffset(offset, 3, "")})
        lose(disk)
        assert ConsumerOffsets(disk).committed("g", [T])[T].offset == offset


def test_everything_that_was_committed_survives_a_power_loss_of_a_real_directory(tmp_path: Path) -> None:
    root = tmp_path / "data"
    offsets = ConsumerOffsets(Disk(root))
    for offset in range(10):
        offsets.commit("g", {T: CommittedOffset(offset, 3, "")})
    assert lose_power(root) == []
    assert ConsumerOffsets(Disk(root)).committed("g", [T])[T].offset == 9


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_torn_last_line_was_never_committed_and_nothing_else_is_missing(data: st.DataObject) -> None:
    disk = MemoryDisk()
    log = RowLog(disk, "table")
    rows = data.draw(st.lists(st.text(max_size=5) | st.integers(), min_size=1, max_size=8))
    for row in rows[:-1]:
        log.append(row)
    whole = disk.open("table-0.log").size()
    log.append(rows[-1])
    end = disk.open("table-0.log").size()
    disk.open("table-0.log").truncate(data.draw(st.integers(whole, end - 1)))
    again = RowLog(disk, "table")
    assert again.recovered == rows[:-1]
    again.append("more")
    assert RowLog(disk, "table").recovered == [*rows[:-1], "more"]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_snapshot_that_was_torn_is_forgotten_and_the_file_before_it_counts(data: st.DataObject) -> None:
    disk = MemoryDisk()
    log = RowLog(disk, "table")
    for row in range(5):
        log.append(row)
    before = disk.read_bytes("table-0.log")
    log.compact([10, 11, 12])
    snapshot = disk.read_bytes("table-1.log")
    disk.write_bytes("table-1.log", snapshot[: data.draw(st.integers(0, len(snapshot) - 1))])
    disk.write_bytes("table-0.log", before)
    assert RowLog(disk, "table").recovered == list(range(5))
    assert names(disk) == ["table-0.log"]


def test_a_kill_between_the_snapshot_and_the_end_of_the_file_before_it_leaves_the_snapshot() -> None:
    disk = MemoryDisk()
    log = RowLog(disk, "table")
    log.append("old")
    before = disk.read_bytes("table-0.log")
    log.compact(["new"])
    disk.write_bytes("table-0.log", before)
    assert RowLog(disk, "table").recovered == ["new"]
    assert names(disk) == ["table-1.log"]


def test_a_refused_append_is_not_kept_and_leaves_no_torn_line(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    log = RowLog(disk, "table")
    log.append("first")
    disk.free_bytes = 3
    with pytest.raises(OSError, match="No space") as refused:
        log.append("second")
    assert refused.value.errno == errno.ENOSPC
    disk.free_bytes = None
    assert RowLog(disk, "table").recovered == ["first"]


def test_a_refused_snapshot_leaves_the_file_before_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    log = RowLog(disk, "table")
    log.append("first")
    disk.free_bytes = 3
    with pytest.raises(OSError, match="No space"):
        log.compact(["second"])
    disk.free_bytes = None
    assert RowLog(disk, "table").recovered == ["first"]
