import errno
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.files import Disk
from harness.replication.messages import EpochEntry
from harness.wire import batches as wire
from tests.harness.broker.log_builder import LARGE, append, open_log, read


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "data")


def test_appended_batches_carry_the_offsets_and_epoch_of_the_log_and_a_valid_checksum(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, 2, epoch=7)
    data = log.locate(0, LARGE, LARGE, at_least_one=True).read()
    headers = wire.headers(data)
    assert [(h.base_offset, h.end_offset, h.leader_epoch) for h in headers] == [(0, 3, 7), (3, 5, 7)]
    assert all(wire.verify(data, header) for header in headers)
    assert log.log_end_offset == 5


def test_reading_starts_with_the_batch_that_holds_the_offset(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, 2, 4)
    assert read(log, 4) == [(3, 5), (5, 9)]
    assert read(log, 9) == []


def test_a_batch_that_reaches_beyond_the_bound_is_not_read(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, 2, 4)
    assert read(log, 0, end=5) == [(0, 3), (3, 5)]
    assert read(log, 0, end=4) == [(0, 3)]
    assert read(log, 0, end=2) == []
    assert read(log, 3, end=3) == []


def test_the_first_batch_is_read_even_if_it_is_larger_than_allowed_and_only_the_first(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, 2)
    assert read(log, 0, max_bytes=1) == [(0, 3)]
    assert log.locate(0, LARGE, 1, at_least_one=False).size == 0


def test_reading_stops_before_the_size_limit(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 1, 1, 1)
    size = log.locate(0, 1, LARGE, at_least_one=True).size
    assert read(log, 0, max_bytes=2 * size) == [(0, 1), (1, 2)]
    assert read(log, 0, max_bytes=2 * size - 1) == [(0, 1)]


@pytest.mark.parametrize(("to_offset", "end"), [(9, 9), (8, 5), (5, 5), (4, 3), (3, 3), (1, 0), (0, 0)])
def test_truncation_cuts_every_batch_that_holds_an_offset_at_or_above(disk: Disk, to_offset: int, end: int) -> None:
    log = open_log(disk)
    append(log, 3, 2, 4)
    log.truncate(to_offset)
    assert log.log_end_offset == end
    append(log, 1, epoch=1)
    assert read(log, end) == [(end, end + 1)]
    assert open_log(disk).log_end_offset == end + 1


@pytest.mark.parametrize("to_offset", range(12))
def test_a_cut_among_several_segments_leaves_every_batch_that_ends_at_or_before_it(disk: Disk, to_offset: int) -> None:
    log = open_log(disk, segment_bytes=200)
    for _ in range(5):
        append(log, 2)
    assert len(disk.list("t-0")) == 3
    log.truncate(to_offset)
    end = min(to_offset // 2 * 2, 10)
    assert (log.log_end_offset, open_log(disk, segment_bytes=200).log_end_offset) == (end, end)
    append(log, 1, epoch=1)
    assert read(log, end) == [(end, end + 1)]


def test_a_cut_that_the_file_system_refuses_leaves_the_log_s_end_where_the_file_s_is(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(disk)
    append(log, 3, 2)

    def refuse(_size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(log._segments[0].file, "truncate", refuse)
    with pytest.raises(OSError, match="Input/output"):
        log.truncate(3)
    assert log.log_end_offset == 5
    assert read(log, 3) == [(3, 5)]


def test_a_full_segment_is_followed_by_one_named_for_its_first_offset(disk: Disk) -> None:
    log = open_log(disk, segment_bytes=200)
    for _ in range(5):
        append(log, 2)
    assert disk.list("t-0") == ["00000000000000000000.log", "00000000000000000004.log", "00000000000000000008.log"]
    assert [batch for offset in range(0, 10, 4) for batch in read(log, offset)] == [
        (offset, offset + 2) for offset in range(0, 10, 2)
    ]
    reopened = open_log(disk, segment_bytes=200)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (0, 10)


def test_truncation_removes_the_segments_behind_it(disk: Disk) -> None:
    log = open_log(disk, segment_bytes=200)
    for _ in range(5):
        append(log, 2)
    log.truncate(5)
    assert disk.list("t-0") == ["00000000000000000000.log", "00000000000000000004.log"]
    assert log.log_end_offset == 4
    append(log, 1)
    assert read(log, 4) == [(4, 5)]


def test_a_refused_write_leaves_nothing_behind(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3)
    size = len(log.locate(0, LARGE, LARGE, at_least_one=True).read())
    disk.free_bytes = 10
    with pytest.raises(OSError, match="No space") as refusal:
        append(log, 1)
    assert refusal.value.errno == errno.ENOSPC
    assert disk.open("t-0/00000000000000000000.log").size() == size
    assert (log.log_end_offset, disk.free_bytes) == (3, 10)
    disk.free_bytes = None
    append(log, 1)
    assert read(log, 0) == [(0, 3), (3, 4)]


def test_recovery_cuts_a_torn_tail_at_the_last_whole_batch(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, 2)
    file = disk.open("t-0/00000000000000000000.log")
    file.truncate(file.size() - 1)
    reopened = open_log(disk)
    assert reopened.log_end_offset == 3
    assert reopened.recovered.cut_bytes > 0
    assert read(reopened, 0) == [(0, 3)]


def test_recovery_cuts_at_a_batch_that_fails_its_checksum_and_drops_later_segments(disk: Disk) -> None:
    log = open_log(disk, segment_bytes=200)
    for _ in range(5):
        append(log, 2)
    path = "t-0/00000000000000000004.log"
    data = bytearray(disk.open(path).read(0, LARGE))
    data[-1] ^= 1
    disk.open(path).truncate(0)
    disk.open(path).append(data)
    reopened = open_log(disk, segment_bytes=200)
    assert reopened.log_end_offset == 6
    assert disk.list("t-0") == ["00000000000000000000.log", "00000000000000000004.log"]


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"\xff" * 100, b"x", b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 99])
def test_recovery_survives_garbage(disk: Disk, garbage: bytes) -> None:
    append(open_log(disk), 3)
    disk.open("t-0/00000000000000000000.log").append(garbage)
    reopened = open_log(disk)
    assert (reopened.log_end_offset, reopened.recovered.cut_bytes) == (3, len(garbage))


def test_recovery_reads_segments_larger_than_its_chunks(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(disk)
    append(log, *range(1, 30))
    monkeypatch.setattr("harness.broker.segment.READ_BYTES", 400)
    assert open_log(disk).log_end_offset == sum(range(1, 30))
    assert [header.record_count for header in log.headers()] == list(range(1, 30))


def test_recovery_finds_where_each_leader_epoch_starts(disk: Disk) -> None:
    log = open_log(disk)
    append(log, 3, epoch=0)
    append(log, 2, 1, epoch=2)
    append(log, 1, epoch=5)
    assert open_log(disk).recovered.epochs == (EpochEntry(0, 0), EpochEntry(2, 3), EpochEntry(5, 6))


def test_a_new_log_is_empty_and_has_its_first_segment(disk: Disk) -> None:
    log = open_log(disk)
    assert (log.log_start_offset, log.log_end_offset, log.recovered.epochs) == (0, 0, ())
    assert disk.list("t-0") == ["00000000000000000000.log"]


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=20),
    cut=st.integers(0, 100),
    offset=st.integers(0, 100),
    bound=st.integers(0, 100),
)
def test_whatever_is_appended_and_cut_a_reopened_log_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], cut: int, offset: int, bound: int
) -> None:
    disk = Disk(tmp_path_factory.mktemp("log") / "data")
    log = open_log(disk, segment_bytes=300)
    for count in counts:
        append(log, count)
    log.truncate(cut)
    reopened = open_log(disk, segment_bytes=300)
    start = min(offset, log.log_end_offset)
    ends = [0, *accumulate(counts)]
    assert reopened.log_end_offset == log.log_end_offset == max(end for end in ends if end <= cut)
    assert read(reopened, start, bound) == read(log, start, bound)
    assert all(end <= bound for _, end in read(log, start, bound))
