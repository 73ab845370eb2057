"""Temporary and unfinished files: nothing is left of them, also when their process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.births import boot, start_time
from harness.cli import main
from harness.scratch import note_unfinished, outside, scratch, sweep, swept, unfinished

WORKS = """\
import os, sys, tempfile
from pathlib import Path
from harness.cli import main
from harness.scratch import note_unfinished, scratch, unfinished
place = Path(sys.argv[1])
with scratch(), unfinished(place / "report.html") as report:
    tempfile.mkdtemp()
    report.write_text("half")
    note_unfinished(place / "tree")
    (place / "tree" / "below").mkdir(parents=True)
    print(tempfile.gettempdir(), flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary directory of all processes."""
    (place := tmp_path / "shared").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@contextmanager
def working(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the midst of writing, and its directory."""
    words = (sys.executable, "-c", WORKS, str(place))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_temporary_files_of_a_process_and_of_its_children_are_in_its_own_directory(shared: Path) -> None:
    with scratch():
        place = Path(tempfile.mkdtemp()).parent
        child = subprocess.check_output((sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"))
        assert (place.parent, child.decode().strip(), outside()) == (shared, str(place), shared)
        assert place.stat().st_mode & 0o077 == 0
    assert not list(shared.iterdir())
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(shared)


def test_what_a_killed_process_was_writing_is_removed_by_the_next_one(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "report.html").write_text("whole")
    with working(tmp_path) as (process, place):
        assert sweep() == []
        process.kill()
    assert (tmp_path / ".report.html.partial").exists()
    with scratch():
        [line] = swept()
    assert line == (
        f"Removed what process {process.pid}, which was killed, left in {place}, and "
        f"{tmp_path / '.report.html.partial'}, {tmp_path / 'tree'}."
    )
    assert swept() == []
    assert not list(shared.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "shared"]
    assert (tmp_path / "report.html").read_text() == "whole"


def test_the_jvm_of_a_killed_process_ends_with_its_directory(tmp_path: Path) -> None:
    waits = (sys.executable, "-c", "input()")
    with working(tmp_path) as (process, place):
        process.kill()
    of_it, of_another = (f"-Djava.io.tmpdir='{path}'" for path in (place, tmp_path))
    processes = [subprocess.Popen((*waits, word), stdin=subprocess.PIPE) for word in (of_it, of_another, str(place))]
    try:
        with scratch():
            assert processes[0].wait(10) == -signal.SIGKILL
        assert [one.poll() for one in processes[1:]] == [None, None]
    finally:
        for one in processes:
            one.kill()
            one.communicate()


def test_heal_tells_what_it_has_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none.sock'}")
    with working(tmp_path) as (process, place):
        process.kill()
    assert main(["heal"]) == 0
    assert f"Removed what process {process.pid}, which was killed, left in {place}" in capsys.readouterr().out
    assert main(["heal"]) == 0
    assert capsys.readouterr().out == "Nothing to heal.\n"


def test_what_was_finished_stays(tmp_path: Path) -> None:
    with scratch(), unfinished(tmp_path / "a") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert not list(tmp_path.glob(".*"))


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    with pytest.raises(UnicodeEncodeError), unfinished(tmp_path / "a") as temporary:
        temporary.write_text("half \udfff", encoding="utf-8")
    assert (tmp_path / "a").read_text() == "before"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("pid", "start", "booted", "namespace", "gone"),
    [
        ("me", "then", "now", "here", False),
        ("me", "1", "now", "here", True),
        ("me", "1", "now", "4", False),
        ("me", "then", "earlier", "4", True),
    ],
)
def test_only_what_is_certainly_abandoned_is_removed(
    shared: Path, pid: str, start: str, booted: str, namespace: str, *, gone: bool
) -> None:
    words = {
        "me": str(os.getpid()),
        "then": start_time(os.getpid()),
        "now": boot()[:8],
        "here": str(Path("/proc/self/ns/pid").stat().st_ino),
    }
    name = "-".join(words.get(word, word) for word in (pid, start, booted, namespace))
    place = shared / f"seawall-scratch-{name}-abcd"
    place.mkdir()
    assert len(sweep()) == gone
    assert place.exists() is not gone


def test_a_link_that_is_called_like_one_is_not_followed(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "precious").mkdir()
    (shared / "seawall-scratch-1-1-earlier-4-abcd").symlink_to(tmp_path / "precious")
    assert sweep() == []
    assert (tmp_path / "precious").exists()


def test_where_there_is_no_room_for_a_directory_a_command_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "full")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with scratch():
        note_unfinished(tmp_path / "a")
        assert outside() == Path(tempfile.gettempdir())
