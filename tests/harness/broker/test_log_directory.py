import errno
from pathlib import Path

import pytest

from harness.broker.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from harness.broker.files import Disk
from harness.broker.ledger import lose_power
from harness.broker.log_directory import CLEAN_SHUTDOWN, LogDirectory
from harness.broker.segments import Checkpointed
from harness.model import TopicPartition
from harness.replication.knobs import generation

T = TopicPartition("a-topic", 3)


def open_directory(disk: Disk, marker: str = "removed_first") -> LogDirectory:
    said: list[str] = []
    directory = LogDirectory(disk, generation("4.1", {"clean_shutdown_marker": marker}), said.append)
    directory.load()
    return directory


def test_what_was_written_down_is_found_again_even_after_a_power_loss(tmp_path: Path) -> None:
    root = tmp_path / "data"
    directory = open_directory(Disk(root))
    directory.write(HIGH_WATERMARKS, {T: 5})
    directory.write(RECOVERY_POINTS, {T: 4})
    directory.write(LOG_STARTS, {T: 2})
    assert lose_power(root) == []
    found = open_directory(Disk(root))
    assert found.high_watermark(T) == 5
    assert found.checkpointed(T) == Checkpointed(log_start_offset=2, recovery_point=4, clean=False)
    assert found.checkpointed(TopicPartition("other", 0)) == Checkpointed(0, 0, clean=False)


def test_directories_of_partitions_are_told_from_others(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    for name in ("a-topic-3", "t-0", "no", "no-x", "-"):
        disk.open(f"{name}/log")
    assert open_directory(disk).partitions() == [T, TopicPartition("t", 0)]


@pytest.mark.parametrize(
    ("marker", "before_loading", "after_loading", "clean"),
    [
        ("removed_first", False, False, True),
        ("removed_late", True, False, True),
        ("kept", True, True, True),
        ("none", False, False, False),
    ],
)
def test_the_marker_of_a_clean_shutdown_lives_as_long_as_the_knob_says(
    tmp_path: Path, marker: str, before_loading: bool, after_loading: bool, clean: bool
) -> None:
    disk = Disk(tmp_path / "data")
    open_directory(disk).close(7, 0)
    directory = open_directory(disk, marker)
    assert (directory.clean, directory.previous_broker_epoch) == (clean, 7 if clean else -1)
    assert (disk.read_text(CLEAN_SHUTDOWN) is not None) == before_loading
    directory.loaded()
    assert (disk.read_text(CLEAN_SHUTDOWN) is not None) == after_loading


def test_without_a_marker_a_shutdown_was_not_clean(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    directory = open_directory(disk)
    directory.loaded()
    assert (directory.clean, directory.previous_broker_epoch) == (False, -1)
    open_directory(disk, "none").close(7, 0)
    assert not open_directory(disk).clean


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "[" * 100_000, '{"version": 0}', '{"brokerEpoch": "x"}'])
def test_a_marker_that_says_nothing_still_marks(tmp_path: Path, text: str) -> None:
    disk = Disk(tmp_path / "data")
    disk.replace_text(CLEAN_SHUTDOWN, text, flush=True)
    directory = open_directory(disk)
    assert (directory.clean, directory.previous_broker_epoch) == (True, -1)


def test_a_garbled_checkpoint_counts_as_none(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    disk.replace_text(HIGH_WATERMARKS, "garbage", flush=True)
    said: list[str] = []
    directory = LogDirectory(disk, generation("4.1"), said.append)
    directory.load()
    assert directory.high_watermark(T) == 0
    assert len(said) == 1


def test_a_checkpoint_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    directory = open_directory(disk)
    directory.write(HIGH_WATERMARKS, {T: 5})
    disk.free_bytes = 0
    with pytest.raises(OSError, match="No space") as refusal:
        directory.write(HIGH_WATERMARKS, {T: 6})
    assert refusal.value.errno == errno.ENOSPC
    assert open_directory(disk).high_watermark(T) == 5
