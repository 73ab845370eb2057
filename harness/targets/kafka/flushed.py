"""Computes what of a node's disk would survive a power loss, from the ledger that the shim keeps (``shim/disk.c``).

Durable is what :mod:`harness.broker.ports` promises the built-in broker:

* a file's bytes, up to the size it had when it was last flushed (``FileChannel.force``, ``FileDescriptor.sync``, or
  ``MappedByteBuffer.force`` for an index);
* a segment's name, and those of its indexes, once its directory was flushed after its creation; the oldest segment of
  a log always keeps its name, or no old release would find its logs again;
* any other file's name as soon as the file was flushed, and a directory's as soon as it exists;
* of a file that was replaced by renaming another (a checkpoint), the newest one that was flushed before.

Cutting, removing and renaming are durable at once. A store to a mapped page of an index that was flushed once may have
been written back by itself, and is kept: Kafka must get along with an index that is ahead of its log, or behind it.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from harness.broker.ledger import Cut
from harness.errors import EnvironmentFault
from harness.targets.kafka.shim import kept

_OF_A_SEGMENT = re.compile(r"\d{20}(-\d+)?\.[a-z]+")


class Found(NamedTuple):
    """A file: its inode, and its size in bytes."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies on a disk.

    Attributes:
        files: by their paths, relative to the disk.
        directories: their inodes, that of the disk among them.
        older: what files held before they were replaced, each by the inode of the file that has not reached the disk.
    """

    files: Mapping[PurePosixPath, Found]
    directories: Sequence[int]
    older: Mapping[int, Found]


class Loss(NamedTuple):
    """What a power loss takes from a file; what it held before comes back where that is kept under ``older``."""

    cut: Cut
    older: int | None


class Disk(Protocol):
    """The files of a node, local or in a container."""

    def listing(self) -> Listing:
        """The current files; the node may be running."""
        ...

    def take(self, losses: Sequence[Loss]) -> None:
        """Apply ``losses`` to the disk of a dead node."""
        ...

    def forget_older(self) -> None:
        """Forget what files held before they were replaced."""
        ...


class LocalDisk:
    """Implements :class:`Disk` for a ``directory`` of this machine, with its ``ledger`` beside it."""

    def __init__(self, directory: Path, ledger: Path) -> None:
        self._directory = directory
        self._kept = kept(ledger)

    def listing(self) -> Listing:
        """See :class:`Disk`."""
        files, directories = {}, []
        for path in (self._directory, *self._directory.rglob("*")):
            with suppress(FileNotFoundError):  # removed meanwhile
                about = path.stat()
                if stat.S_ISDIR(about.st_mode):
                    directories.append(about.st_ino)
                elif stat.S_ISREG(about.st_mode):
                    files[PurePosixPath(path.relative_to(self._directory))] = Found(about.st_ino, about.st_size)
        older = {}
        for path in self._kept.glob("*"):
            with suppress(FileNotFoundError):
                about = path.stat()
                older[int(path.name)] = Found(about.st_ino, about.st_size)
        return Listing(files, directories, older)

    def take(self, losses: Sequence[Loss]) -> None:
        """See :class:`Disk`."""
        for cut, older in losses:
            path = self._directory / cut.path
            if cut.after_bytes is None:
                path.unlink()
                continue
            if older is not None:
                (self._kept / str(older)).replace(path)
            os.truncate(path, cut.after_bytes)

    def forget_older(self) -> None:
        """See :class:`Disk`."""
        for path in self._kept.glob("*"):
            path.unlink(missing_ok=True)


class Flushed:
    """What has reached a disk, by the inodes of its files.

    Args:
        disk: where the files are.
        ledger: of this machine, see ``shim/disk.c``.

    Raises:
        EnvironmentFault: no ledger was kept.
    """

    def __init__(self, disk: Disk, ledger: Path) -> None:
        self._disk = disk
        self._sizes: dict[int, int] = {}
        self._nameless: dict[int, int] = {}
        self._nameless_in: defaultdict[int, set[int]] = defaultdict(set)
        for line in _lines(ledger):
            event, *numbers = line.split()
            self._take(event, list(map(int, numbers)))

    def losses(self) -> list[Cut]:
        """What a power loss would take from the disk: the logs first, then by path."""
        return [loss.cut for loss in self._losses()]

    def lose(self) -> list[Cut]:
        """Apply :meth:`losses` to the disk of a dead node, and return them."""
        losses = list(self._losses())
        self._disk.take(losses)
        return [loss.cut for loss in losses]

    def refuse_strangers(self) -> None:
        """Refuse a disk to which processes without a ledger have written.

        Raises:
            EnvironmentFault: the ledger lacks a log.
        """
        for path, file in sorted(self._disk.listing().files.items()):
            if path.suffix == ".log" and file.inode not in self._sizes:
                raise EnvironmentFault(f"what had reached the disk is not known: the shim saw no write to {path}.")

    def _losses(self) -> Iterator[Loss]:
        listing = self._disk.listing()
        logs = sorted(path for path in listing.files if path.suffix == ".log")
        first_logs = {path.parent: path for path in reversed(logs)}
        for path in sorted(listing.files, key=lambda path: (path.suffix != ".log", path)):
            file = listing.files[path]
            older = listing.older.get(file.inode)
            if older is not None:
                yield Loss(Cut(str(path), file.size, self._size_after(older)), file.inode)
            elif file.inode in self._nameless and not self._keeps_its_name(path, file.inode, first_logs):
                yield Loss(Cut(str(path), file.size, None), None)
            elif (after := self._size_after(file)) != file.size:
                yield Loss(Cut(str(path), file.size, after), None)

    def _size_after(self, file: Found) -> int:
        return min(file.size, self._sizes.get(file.inode, file.size))

    def _keeps_its_name(
        self, path: PurePosixPath, inode: int, first_logs: Mapping[PurePosixPath, PurePosixPath]
    ) -> bool:
        if _OF_A_SEGMENT.match(path.name):
            return first_logs.get(path.parent) == path
        return self._sizes.get(inode, 0) > 0

    def _take(self, event: str, numbers: list[int]) -> None:
        match event, numbers:
            case "created", [file, directory]:
                self._sizes[file] = 0
                self._nameless[file] = directory
                self._nameless_in[directory].add(file)
            case "flushed", [file, size]:
                self._sizes[file] = size
            case "cut", [file, size]:
                self._sizes[file] = min(size, self._sizes.get(file, size))
            case "listed", [directory]:
                for file in self._nameless_in.pop(directory, ()):
                    self._nameless.pop(file, None)
            case "moved", [file, directory, is_flushed]:
                self._move(file, directory, is_flushed == 1)
            case _:
                raise AssertionError(f"the ledger has an unknown line: {event} {numbers}")

    def _move(self, file: int, directory: int, is_flushed: bool) -> None:
        before = self._nameless.pop(file, None)
        if before is not None:
            self._nameless_in[before].discard(file)
            if not is_flushed:
                self._nameless[file] = directory
                self._nameless_in[directory].add(file)


def _lines(ledger: Path) -> list[str]:
    """The lines, without a torn last one, whose event never took effect."""
    if not ledger.exists():
        raise EnvironmentFault(f"what had reached the disk is not known: there is no {ledger}.")
    return [line for line in ledger.read_text().splitlines(keepends=True) if line.endswith("\n")]


def sync(disk: Disk, ledger: Path) -> None:
    """Count everything on the disk as flushed; the node may be running."""
    found = disk.listing()
    listed = [f"listed {inode}\n" for inode in found.directories]
    reached = [f"flushed {inode} {size}\n" for inode, size in found.files.values()]
    with ledger.open("ab", buffering=0) as file:
        file.write("".join((*listed, *reached)).encode())
    disk.forget_older()


def forget_removed(directory: Path, ledger: Path) -> None:
    """Drop files that are gone from ``directory``: a new file may reuse an inode. No process may be writing."""
    left = {path.lstat().st_ino for path in directory.rglob("*")}
    temporary = ledger.with_suffix(".tmp")
    temporary.write_text("".join(line for line in _lines(ledger) if int(line.split()[1]) in left))
    temporary.replace(ledger)
