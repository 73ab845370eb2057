"""Manages temporary and unfinished files, so that the next process removes those of a killed one.

Temporary files are below one directory, named for its process. That directory also has a list of the unfinished files
elsewhere.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from harness.births import boot, start_time
from harness.unwritable import writing_below

_PREFIX = "seawall-scratch-"
_UNFINISHED = "unfinished"
_NAMESPACE = Path("/proc/self/ns/pid")
_VARIABLE = "TMPDIR"


class _Here:
    """The state of this process.

    Attributes:
        place: its directory; None: it has none.
        outside: the parent of all processes' directories, while this one has its own.
        swept: what was removed at its start, as text.
    """

    place: Path | None = None
    outside = ""
    swept: tuple[str, ...] = ()


@contextmanager
def scratch() -> Iterator[None]:
    """While entered, temporary files of this process and its children are in a directory of its own.

    It first removes what killed processes have left. If it cannot make a directory, whatever needs temporary files
    fails with an error.
    """
    temporary, variable = tempfile.tempdir, os.environ.get(_VARIABLE)
    _Here.outside = tempfile.gettempdir()
    _Here.swept = tuple(sweep())
    with suppress(OSError):
        _Here.place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{_identity()}-"))
        tempfile.tempdir = os.environ[_VARIABLE] = str(_Here.place)
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        os.environ.pop(_VARIABLE, None)
        if variable is not None:
            os.environ[_VARIABLE] = variable
        if _Here.place is not None:
            shutil.rmtree(_Here.place, ignore_errors=True)
        _Here.place, _Here.outside = None, ""


def outside() -> Path:
    """The temporary directory that all processes share."""
    return Path(_Here.outside or tempfile.gettempdir())


def swept() -> list[str]:
    """What was removed at the start of this process, as text; only once."""
    removed, _Here.swept = list(_Here.swept), ()
    return removed


def sweep() -> list[str]:
    """Remove what ended processes of this user have left; one line for each."""
    return [_removed(place) for place in sorted(outside().glob(f"{_PREFIX}*")) if _is_abandoned(place)]


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which becomes ``path`` at the end, unless there is an error.

    An unfinished one is removed, by :func:`sweep` if this process was killed.

    Raises:
        EnvironmentFault: the file system refuses a write; the error names ``path``.
    """
    with _writing_beside(path) as temporary:
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def unfinished_directory(path: Path) -> Iterator[Path]:
    """A new directory beside ``path`` to write files to, which takes the place of ``path`` as :func:`unfinished` says.

    Raises:
        EnvironmentFault: the file system refuses a write; the error names ``path``.
    """
    with _writing_beside(path) as temporary:
        try:
            temporary.mkdir()
            yield temporary
            if path.exists():
                shutil.rmtree(path)
            temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writing_beside(path: Path) -> Iterator[Path]:
    """The name of what is written in place of ``path``, recorded as temporary; errors name ``path``."""
    temporary = path.with_name(f".{path.name}.partial")
    note_unfinished(temporary)
    with writing_below(path):
        yield temporary


def note_unfinished(path: Path) -> None:
    """Record that a file, or a directory, is temporary."""
    if _Here.place is not None:
        with suppress(OSError), (_Here.place / _UNFINISHED).open("a") as notes:
            notes.write(f"{path.absolute()}\n")


def _identity() -> str:
    pid = os.getpid()
    return f"{pid}-{start_time(pid)}-{boot()[:8]}-{_namespace()}"


def _namespace() -> int:
    return _NAMESPACE.stat().st_ino


def _is_abandoned(place: Path) -> bool:
    """Whether a directory is this user's, and that of a process that has certainly ended.

    A process that is invisible from here, as one in another container, counts as running.
    """
    try:
        found = place.lstat()
    except OSError:
        return False
    match place.name.removeprefix(_PREFIX).split("-"):
        case [pid, started, booted, namespace, _] if found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode):
            return booted != boot()[:8] or (namespace == str(_namespace()) and started != start_time(pid))
        case _:
            return False


def _removed(place: Path) -> str:
    _kill_jvms(place)
    notes = place / _UNFINISHED
    noted = {Path(line) for line in notes.read_text().splitlines()} if notes.exists() else set[Path]()
    left = sorted(path for path in noted if path.is_symlink() or path.exists())
    for path in left:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    files = f", and {', '.join(map(str, left))}" if left else ""
    pid = place.name.removeprefix(_PREFIX).partition("-")[0]
    return f"Removed what process {pid}, which was killed, left in {place}{files}."


def _kill_jvms(place: Path) -> None:
    """Kill the JVMs whose temporary files are in ``place``.

    Spark's ends with the process that started it, but not if it is just starting and finds its directory gone: then it
    never listens for that end.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any("java.io.tmpdir" in word and place.name in word for word in process.cmdline()):
                process.kill()
