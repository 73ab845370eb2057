"""An in-memory file system with a page cache, which a power loss takes away, and with disk faults.

What survives is what :mod:`harness.broker.ports` promises; the byte budget behaves as in :mod:`harness.broker.files`.
A directory that has *failed* is no directory any more: whatever names something below it is refused with ``ENOTDIR``,
and what had been opened before goes on working.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from harness.broker.budget import Budgeted, top
from harness.broker.ledger import Cut
from harness.broker.ports import Buffer

_PROBE_PATH = ".probe"


class _Content:
    """The bytes of one file, and how many of them are on the platter."""

    __slots__ = ("data", "flushed")

    def __init__(self) -> None:
        self.data = bytearray()
        self.flushed = 0


class MemoryDisk(Budgeted):
    """:class:`harness.broker.ports.FileSystem` in memory. It outlives the node, as disks do.

    Attributes:
        refusal: an ``errno`` that every write, flush and cut is refused with; None: they work.
        failed: directories at the top that are none any more; ``""``: everything.
    """

    def __init__(self, free_bytes: int | None = None) -> None:
        super().__init__(free_bytes)
        self.refusal: int | None = None
        self.failed: set[str] = set()
        self._files: dict[str, _Content] = {}
        self._texts: dict[str, str] = {}
        self._directories: dict[str, None] = {}
        self._safe_names: dict[str, None] = {}
        self._safe_texts: dict[str, str] = {}

    # ------------------------------------------------------------------------------------ ports.FileSystem

    def open(self, path: str) -> MemoryFile:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        content = self._files.get(path)
        if content is None:
            content = self._files[path] = _Content()
            if path in self._texts:
                content.data += self._texts.pop(path).encode()
            self._make_parents(path)
        return MemoryFile(self, path, content)

    def list(self, path: str) -> list[str]:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        entries = [entry.rpartition("/") for entry in (*self._files, *self._texts, *self._directories)]
        return sorted(name for within, _, name in entries if within == path)

    def remove(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        self.take(path, -self._size(path))
        self._files.pop(path, None)
        self._texts.pop(path, None)
        self._safe_names.pop(path, None)
        self._safe_texts.pop(path, None)

    def rename(self, source: str, destination: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(source)
        self.check()
        content = self._files.pop(source)
        if destination in self._files:
            self.take(destination, -self._size(destination))
        self._files[destination] = content
        self._safe_names.pop(source, None)
        self._safe_names[destination] = None

    def remove_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._directories.pop(path, None)
        self._safe_names.pop(path, None)

    def replace_text(self, path: str, text: str, *, flush: bool) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        self.check()
        self._make_parents(path)
        size, free = len(text.encode()), self.free_for(path)
        if free is not None and size > max(0, free):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.take(path, size - (self._size(path) if path in self._texts or path in self._files else 0))
        self._files.pop(path, None)
        self._texts[path] = text
        if flush:
            self._safe_texts[path] = text

    def read_text(self, path: str) -> str | None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        if path in self._files:
            return self._files[path].data.decode(errors="replace")
        return self._texts.get(path)

    def flush_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._reach(path)
        self.check()
        if path and path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        for entry in [*self._files, *self._directories]:
            if entry.rpartition("/")[0] == path:
                self._safe_names[entry] = None

    # ------------------------------------------------------------------------------------ faults

    def probe(self, size: int, directory: str = "") -> tuple[int | None, int]:
        """Try to append ``size`` bytes to a scratch file; see :meth:`harness.broker.files.Disk.probe`."""
        path = f"{directory}/{_PROBE_PATH}" if directory else _PROBE_PATH
        try:
            file = self.open(path)
        except OSError as error:
            return error.errno, 0
        written, refusal = 0, None
        try:
            while written < size:
                written += file.append(bytes(size - written))
        except OSError as error:
            refusal = error.errno
        finally:
            self.remove(path)
        return refusal, written

    def unflushed(self) -> Sequence[Cut]:
        """What a power loss would take now: every file that would lose something, by path."""
        cuts = []
        for path in self.paths():
            before, after = self._size(path), None
            if path in self._files and self._survives(path):
                after = self._files[path].flushed
            elif path in self._safe_texts and self._survives(path):
                after = len(self._safe_texts[path].encode())
            if before != after or self._texts.get(path) != self._safe_texts.get(path, self._texts.get(path)):
                cuts.append(Cut(path, before, after))
        return cuts

    def lose_power(self) -> Sequence[Cut]:
        """Drop what had not reached the platter; returns every file that lost something, by path."""
        cuts = self.unflushed()
        self._texts = {path: text for path, text in self._safe_texts.items() if self._survives(path)}
        self._files = {path: content for path, content in self._files.items() if self._survives(path)}
        self._directories = {path: None for path in self._directories if self._survives(path)}
        self._safe_texts = dict(self._texts)
        self._safe_names = dict.fromkeys([*self._files, *self._directories])
        for content in self._files.values():
            del content.data[content.flushed :]
        return cuts

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        for kept in (self._files, self._texts, self._directories, self._safe_names, self._safe_texts):
            kept.clear()

    def empty(self, directory: str) -> None:
        """Replace what is below ``directory`` (``""``: everything) by nothing."""
        if not directory:
            self.wipe()
        for kept in (self._files, self._texts, self._directories, self._safe_names, self._safe_texts):
            for path in [path for path in kept if path.startswith(f"{directory}/")]:
                kept.pop(path)

    def is_empty(self) -> bool:
        """Whether there is no file on it."""
        return not (self._files or self._texts)

    def sync(self) -> None:
        """Let everything reach the platter."""
        for content in self._files.values():
            content.flushed = len(content.data)
        self._safe_names = dict.fromkeys([*self._files, *self._directories])
        self._safe_texts = dict(self._texts)

    def read_bytes(self, path: str) -> bytes:
        """What the file holds."""
        return bytes(self._files[path].data) if path in self._files else self._texts[path].encode()

    def write_bytes(self, path: str, data: bytes) -> None:
        """Let the file hold ``data``, on the platter too: harm to a disk that no node uses."""
        self.open(path)
        content = self._files[path]
        content.data[:] = data
        content.flushed = len(data)
        self._safe_names[path] = None

    def flip_bit(self, path: str, position: int) -> None:
        """Invert the lowest bit of the byte at ``position``, counted from the end when negative."""
        self._files[path].data[position] ^= 1

    def paths(self) -> Sequence[str]:
        """Every file, sorted."""
        return sorted([*self._files, *self._texts])

    def copy_to(self, root: Path) -> None:
        """Write what is here below the real directory ``root``."""
        root.mkdir(parents=True, exist_ok=True)
        for directory in self._directories:
            (root / directory).mkdir(parents=True, exist_ok=True)
        for path in self.paths():
            (root / path).write_bytes(self.read_bytes(path))

    # ------------------------------------------------------------------------------------ for its files

    def check(self) -> None:
        """Refuse, if that is what this disk does now."""
        if self.refusal is not None:
            raise OSError(self.refusal, os.strerror(self.refusal))

    def _reach(self, path: str) -> None:
        """Refuse what lies below a directory that is none any more."""
        if self.failed and ("" in self.failed or top(path) in self.failed):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def _size(self, path: str) -> int:
        if path in self._files:
            return len(self._files[path].data)
        if path in self._texts:
            return len(self._texts[path].encode())
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _make_parents(self, path: str) -> None:
        for parent in _parents(path):
            self._directories.setdefault(parent)

    def _survives(self, path: str) -> bool:
        return (path in self._safe_names or path in self._safe_texts) and all(
            parent in self._safe_names for parent in _parents(path)
        )


class MemoryFile:
    """:class:`harness.broker.ports.File` in memory."""

    def __init__(self, disk: MemoryDisk, path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content

    def append(self, data: Buffer) -> int:
        """See :class:`harness.broker.ports.File`."""
        self._disk.check()
        free = self._disk.free_for(self._path)
        if free is None:
            self._content.data += data
            return len(data)
        if free <= 0 and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = memoryview(data)[:free]
        self._content.data += taken
        self._disk.take(self._path, len(taken))
        return len(taken)

    def read(self, position: int, size: int) -> bytes:
        """See :class:`harness.broker.ports.File`."""
        return bytes(self._content.data[position : position + size])

    def size(self) -> int:
        """See :class:`harness.broker.ports.File`."""
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        """See :class:`harness.broker.ports.File`."""
        self._disk.check()
        freed = len(self._content.data) - size
        del self._content.data[size:]
        self._content.flushed = min(self._content.flushed, size)
        self._disk.take(self._path, -freed)

    def flush(self) -> None:
        """See :class:`harness.broker.ports.File`."""
        self._disk.check()
        self._content.flushed = len(self._content.data)

    def close(self) -> None:
        """See :class:`harness.broker.ports.File`. There is no descriptor to give back."""


def _parents(path: str) -> list[str]:
    """The directories that ``path`` lies in, the outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
