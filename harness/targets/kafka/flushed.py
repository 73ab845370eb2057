"""What of a node's disk would survive a power loss, from the ledger that the shim keeps (``shim/disk.c``).

What is durable is what :mod:`harness.broker.ports` promises the built-in broker, so that both tell the same story:

* a file's bytes, up to the size it had when it was last flushed (``FileChannel.force``, ``FileDescriptor.sync``, or
  ``MappedByteBuffer.force`` for an index);
* a segment's name, and those of its indexes, once its directory was flushed after it came to be; the oldest segment of
  a log keeps its name in any case, or no old release would ever find its logs again;
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
from collections.abc import Iterator
from pathlib import Path

from harness.broker.ledger import Cut
from harness.errors import EnvironmentFault
from harness.targets.kafka.shim import kept

_OF_A_SEGMENT = re.compile(r"\d{20}(-\d+)?\.[a-z]+")


class Flushed:
    """What has reached a disk, by the inodes of its files.

    Args:
        disk: the directory.
        ledger: see ``shim/disk.c``.

    Raises:
        EnvironmentFault: no ledger was kept.
    """

    def __init__(self, disk: Path, ledger: Path) -> None:
        self._disk = disk
        self._kept = kept(ledger)
        self._sizes: dict[int, int] = {}
        self._nameless: dict[int, int] = {}
        self._nameless_in: defaultdict[int, set[int]] = defaultdict(set)
        for line in _lines(ledger):
            event, *numbers = line.split()
            self._take(event, list(map(int, numbers)))

    def losses(self) -> Iterator[Cut]:
        """What a power loss would take from the disk: the logs first, then by path."""
        return (cut for _, cut in self._cuts())

    def lose(self) -> list[Cut]:
        """Take that from the disk, whose node must be dead; returns what was taken."""
        found = list(self._cuts())
        for path, cut in found:
            older = self._older(path.stat().st_ino)
            if cut.after_bytes is None:
                path.unlink()
            elif older.exists():
                older.replace(path)
            if cut.after_bytes is not None:
                os.truncate(path, cut.after_bytes)
        return [cut for _, cut in found]

    def _cuts(self) -> Iterator[tuple[Path, Cut]]:
        for path in sorted(self._disk.rglob("*"), key=lambda path: (path.suffix != ".log", path)):
            if path.is_file():
                about = path.stat()
                after = self._size_after(path, about.st_ino, about.st_size)
                if after != about.st_size or self._older(about.st_ino).exists():
                    yield path, Cut(path.relative_to(self._disk).as_posix(), about.st_size, after)

    def _size_after(self, path: Path, inode: int, size: int) -> int | None:
        older = self._older(inode)
        if older.exists():
            about = older.stat()
            return min(about.st_size, self._sizes.get(about.st_ino, about.st_size))
        if inode in self._nameless and not self._keeps_its_name(path, inode):
            return None
        return min(size, self._sizes.get(inode, size))

    def _keeps_its_name(self, path: Path, inode: int) -> bool:
        if _OF_A_SEGMENT.match(path.name):
            return path.suffix == ".log" and path == min(path.parent.glob("*.log"))
        return self._sizes.get(inode, 0) > 0

    def _older(self, inode: int) -> Path:
        return self._kept / str(inode)

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
                raise AssertionError(f"the ledger of {self._disk} says {event} {numbers}")

    def _move(self, file: int, directory: int, is_flushed: bool) -> None:
        before = self._nameless.pop(file, None)
        if before is not None:
            self._nameless_in[before].discard(file)
            if not is_flushed:
                self._nameless[file] = directory
                self._nameless_in[directory].add(file)


def _lines(ledger: Path) -> list[str]:
    """Without the last one if it is torn: then it was never true."""
    if not ledger.exists():
        raise EnvironmentFault(f"what had reached the disk is not known: nobody kept {ledger}.")
    return [line for line in ledger.read_text().splitlines(keepends=True) if line.endswith("\n")]


def sync(disk: Path, ledger: Path) -> None:
    """Let everything that is on the disk now have reached it; the node may be running."""
    with ledger.open("ab", buffering=0) as file:
        file.write("".join(line for path in (disk, *disk.rglob("*")) if (line := _reached(path))).encode())
    forget_older(ledger)


def _reached(path: Path) -> str:
    """Nothing for what has been removed meanwhile."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return ""
    return f"listed {about.st_ino}\n" if stat.S_ISDIR(about.st_mode) else f"flushed {about.st_ino} {about.st_size}\n"


def forget_removed(directory: Path, ledger: Path) -> None:
    """Forget what lies nowhere below ``directory`` any more: a new file may have its inode. Nobody may be writing."""
    left = {path.lstat().st_ino for path in directory.rglob("*")}
    temporary = ledger.with_suffix(".tmp")
    temporary.write_text("".join(line for line in _lines(ledger) if int(line.split()[1]) in left))
    temporary.replace(ledger)


def forget_older(ledger: Path) -> None:
    """Forget what files held before they were replaced."""
    for path in kept(ledger).glob("*"):
        path.unlink()
