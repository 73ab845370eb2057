"""The real file system of one broker: plain files below a directory, and a byte budget for the disk-full fault.

The budget (:mod:`harness.broker.budget`) behaves as tmpfs does: a write that exceeds it is cut short first, the next
one raises ``ENOSPC``; truncating, replacing and removing give bytes back. ``mmap`` is never used: a store into a hole
of a full file system kills the process.

What a power loss would take is noted in a ledger beside the directory (:mod:`harness.broker.ledger`).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from harness.broker.budget import Budgeted
from harness.broker.ledger import Ledger
from harness.broker.ports import Buffer

_PROBE_PATH = ".probe"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Disk(Budgeted):
    """:class:`harness.broker.ports.FileSystem` below ``root``.

    Attributes:
        ledger: what of it would survive a power loss.
    """

    def __init__(self, root: Path, free_bytes: int | None = None) -> None:
        super().__init__(free_bytes)
        self._root = root
        root.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(root)
        self._opened: set[str] = set()

    def open(self, path: str) -> DiskFile:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._opened.add(path)
        return self._open(path, ledger=self.ledger)

    def _open(self, path: str, ledger: Ledger | None = None) -> DiskFile:
        target = self._root / path
        try:
            descriptor = os.open(target, _OPEN, 0o644)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(target, _OPEN, 0o644)
        return DiskFile(self, descriptor, path, ledger)

    def list(self, path: str) -> list[str]:
        """See :class:`harness.broker.ports.FileSystem`."""
        try:
            return sorted(os.listdir(self._root / path))  # noqa: PTH208 (names are what the port promises)
        except FileNotFoundError:
            return []

    def remove(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        target = self._root / path
        size = target.stat().st_size
        target.unlink()
        self._opened.discard(path)
        self.ledger.removed(path)
        self.take(path, -size)

    def rename(self, source: str, destination: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        size = (self._root / source).stat().st_size
        self._rename(source, destination)
        self._flush_names((self._root / destination).parent)
        self._opened.discard(source)
        self._opened.add(destination)
        self.ledger.removed(source)
        self.ledger.listed(files=[destination], directories=[])
        self.ledger.flushed(destination, size)

    def remove_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        with suppress(FileNotFoundError):
            (self._root / path).rmdir()
        self.ledger.removed(path)

    def replace_text(self, path: str, text: str, *, flush: bool) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        temporary = f"{path}.tmp"
        with suppress(FileNotFoundError):
            self.remove(temporary)
        before = None if flush else self.read_text(path)
        file = self._open(temporary)
        try:
            write_whole(file, text.encode())
            if flush:
                file.flush()
        except OSError:
            file.truncate(0)
            self.remove(temporary)
            raise
        finally:
            file.close()
        self._rename(temporary, path)
        if flush:
            self._flush_names((self._root / path).parent)
        self.ledger.replaced(path, before, flushed=flush)

    def flush_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        directory = self._root / path
        self._flush_names(directory)
        entries = [(f"{path}/{entry.name}" if path else entry.name, entry) for entry in os.scandir(directory)]
        self.ledger.listed(
            files=[name for name, _ in entries if name in self._opened],
            directories=[name for name, entry in entries if entry.is_dir()],
        )

    def sync(self) -> None:
        """Let everything that was written survive a power loss, as the kernel does when it finds the time."""
        paths = [self._root, *sorted(self._root.rglob("*"))]
        for path in paths:
            if path.is_dir():
                self.flush_directory("" if path == self._root else path.relative_to(self._root).as_posix())
        for path in paths:
            name = path.relative_to(self._root).as_posix()
            if name in self._opened:
                self.ledger.flushed(name, path.stat().st_size)
            elif path.is_file():
                self.ledger.replaced(name, None, flushed=True)

    def read_text(self, path: str) -> str | None:
        """See :class:`harness.broker.ports.FileSystem`. Undecodable bytes become U+FFFD: garbled, not fatal."""
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def probe(self, size: int, directory: str = "") -> tuple[int | None, int]:
        """Try to append ``size`` bytes to a scratch file in ``directory`` and remove it again.

        Returns:
            The ``errno`` that refused the write, or None, and how many bytes were taken before it.
        """
        path = f"{directory}/{_PROBE_PATH}" if directory else _PROBE_PATH
        try:
            file = self._open(path)
        except OSError as error:
            return error.errno, 0
        written, refusal = 0, None
        try:
            while written < size:
                written += file.append(bytes(size - written))
        except OSError as error:
            refusal = error.errno
        finally:
            file.close()
            self.remove(path)
        return refusal, written

    def _rename(self, source: str, destination: str) -> None:
        replaced = self._root / destination
        with suppress(FileNotFoundError):
            self.take(destination, -replaced.stat().st_size)
        (self._root / source).rename(replaced)

    def _flush_names(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class DiskFile:
    """:class:`harness.broker.ports.File` on a descriptor opened ``O_APPEND``; in the ledger, if it is given one."""

    def __init__(self, disk: Disk, descriptor: int, path: str, ledger: Ledger | None) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self._path = path
        self._ledger = ledger

    def append(self, data: Buffer) -> int:
        """See :class:`harness.broker.ports.File`."""
        free = self._disk.free_for(self._path)
        if free is None:
            return os.write(self._descriptor, data)
        if free <= 0 and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(self._descriptor, memoryview(data)[:free])
        self._disk.take(self._path, written)
        return written

    def read(self, position: int, size: int) -> bytes:
        """See :class:`harness.broker.ports.File`."""
        return os.pread(self._descriptor, size, position)

    def size(self) -> int:
        """See :class:`harness.broker.ports.File`."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        """See :class:`harness.broker.ports.File`."""
        freed = self.size() - size
        os.ftruncate(self._descriptor, size)
        if self._ledger is not None:
            self._ledger.cut(self._path, size)
        self._disk.take(self._path, -freed)

    def flush(self) -> None:
        """See :class:`harness.broker.ports.File`."""
        size = self.size()
        os.fdatasync(self._descriptor)
        if self._ledger is not None:
            self._ledger.flushed(self._path, size)

    def close(self) -> None:
        """See :class:`harness.broker.ports.File`."""
        os.close(self._descriptor)


def write_whole(file: DiskFile, data: bytes) -> None:
    """Append all of ``data``, however many writes it takes.

    Raises:
        OSError: a write was refused; a part of ``data`` may be in the file.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[file.append(rest) :]
