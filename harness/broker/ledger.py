"""Tracks what a node has flushed, so that the harness can simulate a power loss.

A SIGKILL keeps the page cache. So a node writes what :mod:`harness.broker.ports` promises to a ledger beside the
directory, as JSON lines of one write each; after a SIGKILL :func:`lose_power` cuts the files back and removes the names
that were never flushed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from harness.broker.budget import top

_SUFFIX = ".ledger"


class Cut(NamedTuple):
    """What a power loss did to one file, its ``path`` relative to the data directory.

    ``after_bytes`` is None when its name was lost, and the file with it.
    """

    path: str
    before_bytes: int
    after_bytes: int | None


class Ledger:
    """The ledger of one data directory, kept by the process that writes there.

    Args:
        root: the data directory, which exists.

    Raises:
        OSError: the ledger cannot be read or written, or is garbled.
    """

    def __init__(self, root: Path) -> None:
        self._kept = _Kept.read(root)
        self._kept.forget_what_is_gone(root)
        path = ledger_path(root)
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(f"{json.dumps(row)}\n" for row in self._kept.rows()))
        temporary.replace(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def flushed(self, path: str, size: int) -> None:
        """The first ``size`` bytes of the file ``path`` are safe."""
        if self._kept.sizes.get(path) != size:
            self._note("size", path, size)

    def listed(self, files: Iterable[str], directories: Iterable[str]) -> None:
        """These names are safe, the bytes of the files not yet."""
        for path in directories:
            if path not in self._kept.names:
                self._note("name", path)
        for path in files:
            if path not in self._kept.names:
                self._note("name", path)
                self._note("size", path, self._kept.sizes.get(path, 0))

    def cut(self, path: str, size: int) -> None:
        """The file ``path`` is no longer than ``size`` now."""
        if self._kept.sizes.get(path, 0) > size:
            self._note("size", path, size)

    def removed(self, path: str) -> None:
        """The name ``path`` is gone."""
        if path in self._kept.names or path in self._kept.sizes:
            self._note("gone", path)

    def replaced(self, path: str, before: str | None, *, flushed: bool) -> None:
        """The text ``path`` was replaced, which was ``before``."""
        if flushed:
            self._note("text", path)
        elif path in self._kept.names and path not in self._kept.texts:
            self._note("kept", path, before or "")

    def _note(self, *row: str | int) -> None:
        self._kept.take(row)
        os.write(self._file, json.dumps(row).encode() + b"\n")


class _Kept:
    """What the rows of a ledger amount to.

    Attributes:
        names: of files and directories, that are safe.
        sizes: how many bytes of each file are safe.
        texts: what a text becomes again whose newest replacement was not flushed.
    """

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.sizes: dict[str, int] = {}
        self.texts: dict[str, str] = {}

    @classmethod
    def read(cls, root: Path) -> _Kept:
        """The rows of the ledger of ``root``; none where it has no ledger yet.

        Raises:
            OSError: the ledger cannot be read, or is garbled.
        """
        kept, path = cls(), ledger_path(root)
        with suppress(FileNotFoundError):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):  # the last one may be torn: then it was never true
                    try:
                        kept.take(json.loads(line))
                    except (ValueError, TypeError, RecursionError):
                        raise OSError(f"the ledger {path} is garbled") from None
        return kept

    def take(self, row: Iterable[str | int]) -> None:
        kind, path, *rest = row
        name = str(path)
        match kind, rest:
            case "size", [int(size)]:
                self.sizes[name] = size
            case "kept", [str(text)]:
                self.texts[name] = text
            case _:
                self.texts.pop(name, None)
                self.names[name] = None
                if kind == "gone":
                    self.names.pop(name, None)
                    self.sizes.pop(name, None)

    def rows(self) -> Iterable[tuple[str | int, ...]]:
        yield from (("name", name) for name in self.names)
        yield from (("size", name, size) for name, size in self.sizes.items())
        yield from (("kept", name, text) for name, text in self.texts.items())

    def forget_what_is_gone(self, root: Path) -> None:
        """Forget what was removed or cut while no node kept the ledger.

        What lies below a directory that has failed is not gone: it may come back.
        """
        for name in [*self.names, *self.sizes, *self.texts]:
            if not (root / name).exists() and not _has_failed(root, name):
                self.take(("gone", name))
        for name, size in self.sizes.items():
            if not _has_failed(root, name):
                self.sizes[name] = min(size, (root / name).stat().st_size)

    def survives(self, name: str) -> bool:
        parents = [str(parent) for parent in PurePosixPath(name).parents][:-1]
        return all(part in self.names for part in (name, *parents))


def _has_failed(root: Path, name: str) -> bool:
    """Whether there is a file where ``name`` needs a directory."""
    return "/" in name and (root / top(name)).is_file()


def ledger_path(root: Path) -> Path:
    """Where the ledger of the data directory ``root`` is."""
    return root.with_name(root.name + _SUFFIX)


def lose_power(root: Path) -> list[Cut]:
    """Do to the data directory ``root`` what a power loss does; its process must be dead.

    Returns:
        Every file that lost something, by path.

    Raises:
        FileNotFoundError: no ledger was kept.
    """
    if not ledger_path(root).exists():
        raise FileNotFoundError(f"{ledger_path(root)}: no ledger of {root} was kept")
    kept = _Kept.read(root)
    files = sorted(path for path in root.rglob("*") if not path.is_dir())
    cuts = [cut for path in files if (cut := _cut(path, path.relative_to(root).as_posix(), kept))]
    for path in sorted(root.rglob("*")):
        if path.is_dir() and not kept.survives(path.relative_to(root).as_posix()):
            shutil.rmtree(path)
    return cuts


def _cut(path: Path, name: str, kept: _Kept) -> Cut | None:
    before = path.stat().st_size
    if not kept.survives(name):
        path.unlink()
        return Cut(name, before, None)
    if name in kept.texts:
        return _restore(path, name, kept.texts[name])
    after = kept.sizes.get(name, before)
    if after >= before:
        return None
    os.truncate(path, after)
    return Cut(name, before, after)


def _restore(path: Path, name: str, text: str) -> Cut | None:
    newer = path.read_bytes()
    if newer == text.encode():
        return None
    path.write_text(text)
    return Cut(name, len(newer), path.stat().st_size)
