import errno
from pathlib import Path

import pytest

from harness.broker.files import Disk


def test_a_write_beyond_the_budget_is_cut_short_before_it_is_refused(tmp_path: Path) -> None:
    disk = Disk(tmp_path, free_bytes=10)
    file = disk.open("a/log")
    assert file.append(b"x" * 16) == 10
    with pytest.raises(OSError, match="No space") as refusal:
        file.append(b"y")
    assert refusal.value.errno == errno.ENOSPC
    assert file.read(0, 100) == b"x" * 10


def test_an_empty_write_passes_on_a_full_disk(tmp_path: Path) -> None:
    assert Disk(tmp_path, free_bytes=0).open("log").append(b"") == 0


def test_truncating_and_removing_give_bytes_back(tmp_path: Path) -> None:
    disk = Disk(tmp_path, free_bytes=10)
    file = disk.open("log")
    file.append(b"x" * 10)
    file.truncate(4)
    assert disk.free_bytes == 6
    file.close()
    disk.remove("log")
    assert disk.free_bytes == 10


def test_a_refused_replacement_keeps_the_old_content_and_leaves_no_temporary(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.replace_text("checkpoint", "old", flush=True)
    disk.free_bytes = 2
    with pytest.raises(OSError, match="No space"):
        disk.replace_text("checkpoint", "longer", flush=True)
    assert disk.read_text("checkpoint") == "old"
    assert disk.list("") == ["checkpoint"]
    assert disk.free_bytes == 2


def test_a_replacement_costs_only_the_difference(tmp_path: Path) -> None:
    disk = Disk(tmp_path, free_bytes=10)
    disk.replace_text("checkpoint", "1234", flush=False)
    disk.replace_text("checkpoint", "12", flush=False)
    assert disk.free_bytes == 8


def test_the_probe_reports_the_refusal_and_does_not_use_the_budget_up(tmp_path: Path) -> None:
    disk = Disk(tmp_path, free_bytes=100)
    assert disk.probe(65_536) == (errno.ENOSPC, 100)
    assert disk.free_bytes == 100
    disk.free_bytes = None
    assert disk.probe(65_536) == (None, 65_536)
    assert disk.list("") == []


def test_a_missing_file_reads_as_none_and_a_missing_directory_as_empty(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    assert disk.read_text("nothing") is None
    assert disk.list("nowhere") == []


def test_undecodable_bytes_in_a_small_file_are_text_that_no_parser_accepts(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(b"\xff\xfe0\n")
    assert Disk(tmp_path).read_text("checkpoint") == "\ufffd\ufffd0\n"
