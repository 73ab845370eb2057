"""What of a log survives which death, on real files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.files import Disk
from harness.broker.ledger import lose_power
from harness.broker.segments import Checkpointed, SegmentLog
from harness.replication.messages import EpochEntry
from harness.wire.batches import headers
from harness.wire.errors import CorruptBatch
from tests.harness.broker.log_builder import LARGE, append, open_log, read

FIRST, SECOND, THIRD = (f"t-0/{base:020d}.log" for base in (0, 4, 8))
TWO_BATCHES = 200
"""A segment size that holds two batches of two records each."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


def corrupt(disk: Disk, path: str, position: int = -1) -> None:
    data = bytearray(disk.open(path).read(0, LARGE))
    data[position] ^= 1
    disk.open(path).truncate(0)
    disk.open(path).append(data)


def test_without_a_flush_a_power_loss_empties_the_log(root: Path) -> None:
    append(open_log(Disk(root)), 3, 2)
    assert [cut.after_bytes for cut in lose_power(root)] == [0]
    assert open_log(Disk(root)).log_end_offset == 0


def test_a_flush_saves_the_log_from_a_power_loss(root: Path) -> None:
    log = open_log(Disk(root))
    append(log, 3)
    log.flush()
    append(log, 2)
    assert log.recovery_point == 3
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 3


def test_the_log_is_flushed_whenever_so_many_records_are_not(root: Path) -> None:
    log = open_log(Disk(root), flush_messages=4)
    append(log, 3)
    assert log.recovery_point == 0
    append(log, 1)
    assert log.recovery_point == 4
    append(log, 3)
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 4


def test_rolling_flushes_what_is_behind_the_new_segment(root: Path) -> None:
    log = open_log(Disk(root), TWO_BATCHES)
    for _ in range(3):
        append(log, 2)
    assert log.recovery_point == 4
    lose_power(root)
    assert open_log(Disk(root), TWO_BATCHES).log_end_offset == 4


def test_what_is_kept_of_a_log_has_a_name_before_the_names_of_what_is_deleted_are_gone(root: Path) -> None:
    log = open_log(Disk(root), TWO_BATCHES)
    for _ in range(3):
        append(log, 2)
    log.raise_start(4, roll=True)
    lose_power(root)
    assert sorted(path.name for path in (root / "t-0").glob("*.log")) == [Path(SECOND).name]


@pytest.mark.parametrize("recovered_tail", ["left", "flushed"])
def test_what_is_flushed_after_a_start_after_a_crash_keeps_its_name_too(root: Path, recovered_tail: str) -> None:
    log = open_log(Disk(root), TWO_BATCHES)
    for _ in range(3):
        append(log, 2)
    again = open_log(Disk(root), TWO_BATCHES, recovered_tail=recovered_tail)
    again.flush()
    assert again.recovery_point == 6
    lose_power(root)
    assert open_log(Disk(root), TWO_BATCHES).log_end_offset == 6


@pytest.mark.parametrize("empty", [lambda log: log.raise_start(4, roll=True), lambda log: log.start_at(4)])
def test_a_log_that_everything_was_deleted_from_still_knows_its_end_after_a_power_loss(
    root: Path, empty: Callable[[SegmentLog], None]
) -> None:
    log = open_log(Disk(root))
    append(log, 4)
    empty(log)
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 4


@pytest.mark.parametrize(("flush_names", "survives"), [(True, 6), (False, 4)])
def test_a_flushed_segment_is_lost_with_its_name_unless_that_was_flushed_too(
    root: Path, flush_names: bool, survives: int
) -> None:
    log = open_log(Disk(root), TWO_BATCHES, flush_names=flush_names)
    for _ in range(3):
        append(log, 2)
    log.flush()
    assert log.recovery_point == 6
    lose_power(root)
    assert open_log(Disk(root), TWO_BATCHES).log_end_offset == survives


def test_a_name_that_was_not_flushed_is_safe_once_the_next_segment_exists(root: Path) -> None:
    log = open_log(Disk(root), TWO_BATCHES, flush_names=False)
    for _ in range(5):
        append(log, 2)
    log.flush()
    lose_power(root)
    assert open_log(Disk(root), TWO_BATCHES).log_end_offset == 8


def test_truncating_takes_the_recovery_point_back(root: Path) -> None:
    log = open_log(Disk(root))
    append(log, 2, 2)
    log.flush()
    log.truncate(2)
    append(log, 1)
    log.flush()
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 3


@pytest.mark.parametrize(
    ("recovered_tail", "recovery_point", "survives"), [("left", 0, 0), ("not_flushed", 2, 0), ("flushed", 2, 2)]
)
def test_what_a_restart_recovers_is_left_beyond_the_recovery_point_or_passed_by_it_or_flushed(
    root: Path, recovered_tail: str, recovery_point: int, survives: int
) -> None:
    append(open_log(Disk(root)), 2)
    restarted = open_log(Disk(root), recovered_tail=recovered_tail)
    assert (restarted.log_end_offset, restarted.recovery_point) == (2, recovery_point)
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == survives


def test_what_a_restart_has_left_is_flushed_by_the_next_flush_and_what_it_has_passed_by_is_not(root: Path) -> None:
    append(open_log(Disk(root)), 2)
    open_log(Disk(root), recovered_tail="not_flushed").flush()
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 0
    append(open_log(Disk(root)), 2)
    open_log(Disk(root)).flush()
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 2


def test_recovery_cuts_at_the_first_bad_batch_beyond_the_recovery_point_and_deletes_later_segments(root: Path) -> None:
    disk = Disk(root)
    log = open_log(disk, TWO_BATCHES)
    for _ in range(5):
        append(log, 2)
    corrupt(disk, SECOND)
    restarted = open_log(disk, TWO_BATCHES, Checkpointed(recovery_point=5))
    assert restarted.log_end_offset == 6
    assert restarted.recovered.cut_bytes > 0
    assert disk.list("t-0") == ["00000000000000000000.log", "00000000000000000004.log"]


@pytest.mark.parametrize(("path", "cut"), [(FIRST, 2), (SECOND, 6)])
def test_what_was_flushed_is_not_looked_at_again(root: Path, path: str, cut: int) -> None:
    disk = Disk(root)
    log = open_log(disk, TWO_BATCHES)
    for _ in range(5):
        append(log, 2)
    corrupt(disk, path)
    restarted = open_log(disk, TWO_BATCHES, Checkpointed(recovery_point=8))
    assert (restarted.log_end_offset, restarted.recovered.cut_bytes) == (10, 0)
    assert [header.base_offset for header in restarted.headers()] == [0, 2, 4, 6, 8]
    assert open_log(disk, TWO_BATCHES).log_end_offset == cut


@pytest.mark.parametrize(("clean", "end"), [(True, 10), (False, 4)])
def test_a_missing_segment_ends_the_log_unless_it_is_trusted(root: Path, clean: bool, end: int) -> None:
    disk = Disk(root)
    log = open_log(disk, TWO_BATCHES)
    for _ in range(5):
        append(log, 2)
    disk.remove(SECOND)
    restarted = open_log(disk, TWO_BATCHES, Checkpointed(clean=clean))
    assert restarted.log_end_offset == end


def test_after_a_clean_shutdown_a_torn_batch_stays_and_breaks_the_one_behind_it(root: Path) -> None:
    disk = Disk(root)
    log = open_log(disk)
    append(log, 2, 2)
    file = disk.open(FIRST)
    file.truncate(file.size() - 5)
    believed = open_log(disk, checkpointed=Checkpointed(clean=True))
    assert (believed.log_end_offset, believed.recovered.cut_bytes) == (2, 0)
    append(believed, 2)
    assert believed.log_end_offset == 4
    with pytest.raises(CorruptBatch):
        headers(believed.locate(2, LARGE, LARGE, at_least_one=True).read())
    assert [header.base_offset for header in believed.headers()] == [0]
    assert open_log(disk).log_end_offset == 2


def test_a_batch_that_was_torn_is_cut_after_an_unclean_shutdown(root: Path) -> None:
    disk = Disk(root)
    append(open_log(disk), 2, 2)
    file = disk.open(FIRST)
    file.truncate(file.size() - 5)
    restarted = open_log(disk)
    append(restarted, 2)
    assert read(restarted, 0) == [(0, 2), (2, 4)]


def test_a_recovery_point_beyond_what_is_left_comes_down_to_it(root: Path) -> None:
    log = open_log(Disk(root))
    append(log, 2)
    lose_power(root)
    restarted = open_log(Disk(root), checkpointed=Checkpointed(recovery_point=2))
    assert (restarted.log_end_offset, restarted.recovery_point) == (0, 0)
    append(restarted, 3)
    restarted.flush()
    lose_power(root)
    assert open_log(Disk(root)).log_end_offset == 3


def test_raising_the_start_hides_records_and_deletes_segments_that_lie_wholly_below(root: Path) -> None:
    disk = Disk(root)
    log = open_log(disk, TWO_BATCHES)
    for _ in range(5):
        append(log, 2)
    log.raise_start(5, roll=False)
    assert (log.log_start_offset, log.log_end_offset) == (5, 10)
    assert disk.list("t-0") == ["00000000000000000004.log", "00000000000000000008.log"]
    log.raise_start(3, roll=False)
    assert log.log_start_offset == 5
    assert open_log(disk, TWO_BATCHES).log_start_offset == 4
    assert open_log(disk, TWO_BATCHES, Checkpointed(log_start_offset=5)).log_start_offset == 5


@pytest.mark.parametrize(("roll", "files"), [(False, [FIRST]), (True, [f"t-0/{4:020d}.log"])])
def test_the_last_segment_goes_only_where_a_new_one_may_be_begun(root: Path, roll: bool, files: list[str]) -> None:
    disk = Disk(root)
    log = open_log(disk)
    append(log, 2, 2)
    log.raise_start(4, roll=roll)
    assert [f"t-0/{name}" for name in disk.list("t-0")] == files
    append(log, 1)
    assert read(log, 4) == [(4, 5)]


def test_a_log_that_ends_before_its_start_begins_anew_at_its_start(root: Path) -> None:
    log = open_log(Disk(root))
    append(log, 2, 2)
    restarted = open_log(Disk(root), checkpointed=Checkpointed(log_start_offset=9))
    assert (restarted.log_start_offset, restarted.log_end_offset, restarted.recovered.epochs) == (9, 9, ())
    append(restarted, 1)
    assert read(restarted, 9) == [(9, 10)]


def test_a_cut_within_the_batch_that_holds_the_start_leaves_the_log_empty_at_its_start(root: Path) -> None:
    log = open_log(Disk(root))
    append(log, 4)
    log.raise_start(2, roll=False)
    log.truncate(2)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    append(log, 1)
    assert read(log, 2) == [(2, 3)]


def test_starting_at_an_offset_deletes_everything(root: Path) -> None:
    disk = Disk(root)
    log = open_log(disk, TWO_BATCHES)
    for _ in range(3):
        append(log, 2)
    log.start_at(20)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (20, 20, 20)
    assert disk.list("t-0") == ["00000000000000000020.log"]
    append(log, 1, epoch=3)
    assert open_log(disk).recovered.epochs == (EpochEntry(3, 20),)


def test_segments_expire_oldest_first_whole_and_only_below_the_high_watermark(root: Path) -> None:
    log = open_log(Disk(root), TWO_BATCHES)
    for timestamp_ms in (10, 20, 30, 5, 40):
        append(log, 2, timestamp_ms=timestamp_ms)
    assert log.expired(20, 10) == 0
    assert log.expired(21, 10) == 4
    assert log.expired(31, 10) == 8
    assert log.expired(31, 7) == 4
    assert log.expired(41, 10) == 10


def test_a_record_without_a_timestamp_never_expires(root: Path) -> None:
    log = open_log(Disk(root), TWO_BATCHES)
    for timestamp_ms in (10, -1, 10):
        append(log, 2, timestamp_ms=timestamp_ms)
    assert log.expired(1_000, 6) == 0


def test_timestamps_that_lie_far_apart_do_not_share_a_segment(root: Path) -> None:
    disk = Disk(root)
    log = open_log(disk, roll_ms=100)
    for timestamp_ms in (1_000, 1_100, 1_101, 0):
        append(log, 1, timestamp_ms=timestamp_ms)
    assert disk.list("t-0") == [f"{base:020d}.log" for base in (0, 2)]
    assert open_log(disk).expired(1_101, 4) == 2
