"""What cannot be written is named, with a remedy."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.history.run_directory import Manifest, RunDirectory
from harness.unwritable import unwritable, writing_below

MANIFEST = Manifest("r1", "quiet", 7, "2025-01-01T00:00:00+00:00")


def test_a_full_disk_is_told_with_the_path_and_what_to_do() -> None:
    said = str(unwritable(Path("runs/a"), OSError(errno.ENOSPC, "Error writing bytes to file. Detail: ...")))
    assert (
        said == "runs/a cannot be written: No space left on device. Make room there, or name another place with --out."
    )


def test_a_read_only_place_is_told_with_the_path_and_what_to_do() -> None:
    refused = pytest.raises(EnvironmentFault, match=r"^runs cannot be written: Read-only .*\. Name another")
    with refused, writing_below(Path("runs")):
        raise OSError(errno.EROFS, "Read-only file system")


def test_a_directory_that_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match=r"file/run cannot be created: Not a directory\. Name another place"):
        RunDirectory.create(tmp_path / "file" / "run", MANIFEST)


def test_what_is_no_refused_write_stays_what_it_is() -> None:
    with pytest.raises(ConnectionRefusedError), writing_below(Path("runs")):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def test_a_manifest_that_cannot_be_written_leaves_the_older_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory.create(tmp_path / "run", MANIFEST)

    def torn(path: Path, text: str) -> int:
        path.write_bytes(text[:10].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(EnvironmentFault, match=r"run/run\.json cannot be written: No space left"):
        directory.finish("complete", 1.0)
    assert directory.manifest().state == "running"
    assert not list(directory.path.glob(".*"))


def test_room_that_was_kept_is_given_back(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", MANIFEST)
    directory.keep_room()
    assert sum(path.stat().st_blocks * 512 for path in directory.path.glob(".*")) >= 256 * 1024
    directory.make_room()
    directory.make_room()
    assert not list(directory.path.glob(".*"))
