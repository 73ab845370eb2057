"""A small durable table: appends each change as a row of JSON with a checksum.

Each change is one line, written and flushed before it counts, so that it costs the same however much is kept. When
most of the lines are outdated, the next file is begun with a *snapshot*, all rows that still count, and the file before
it is removed once the snapshot and its name are flushed. A kill or a power loss leaves at most a torn last line, which
was never confirmed, or a torn snapshot beside the file that it was to replace; opening the log removes either.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from harness.broker.ports import File, FileSystem

COMPACT_ABOVE = 1_000
"""How many lines may follow a snapshot before another is taken, if those are also more than the snapshot has."""

_SUFFIX = ".log"


class RowLog:
    """One such table; ``name`` is the stem of its files, which lie at the top of ``files``.

    Attributes:
        recovered: the rows that were found, the snapshot's first, then the changes.

    Raises:
        OSError: it cannot be read, or not be begun.
    """

    def __init__(self, files: FileSystem, name: str) -> None:
        self._files = files
        self._name = name
        self.recovered: list[Any] = []
        numbers = self._numbers()
        complete = next((number for number in reversed(numbers) if self._load(number)), None)
        for number in numbers:
            if number != complete:
                files.remove(self._path(number))
        if complete is None:
            self._number = -1
            self.compact([])

    def append(self, row: Any) -> None:
        """Make one more row durable.

        Raises:
            OSError: it is not in the log, as far as that can be had; the log must not be used any more.
        """
        self._write(_line(row))
        self._file.flush()
        self._changes += 1

    def is_outdated(self, rows: int) -> bool:
        """Whether the log should be compacted, when only ``rows`` would still count."""
        return self._changes > max(COMPACT_ABOVE, 2 * rows)

    def compact(self, rows: Iterable[Any]) -> None:
        """Begin the next file with ``rows``, which are all that still counts.

        Raises:
            OSError: the file before it is still there.
        """
        kept = list(rows)
        before = self._number
        self._open(before + 1)
        self._file.truncate(0)
        self._size = 0
        self._write(b"".join([_line(len(kept)), *map(_line, kept)]))
        self._file.flush()
        self._files.flush_directory("")
        self._changes = 0
        if before >= 0:
            self._files.remove(self._path(before))

    # ------------------------------------------------------------------------------------ internals

    def _load(self, number: int) -> bool:
        """Open one file, and cut off what is torn; False when its snapshot is not whole."""
        self._open(number)
        data = self._file.read(0, self._file.size())
        rows = []
        for line in data.splitlines(keepends=True):
            row = _row(line)
            if row is None:
                break
            rows.append(row[0])
            self._size += len(line)
        if not rows or len(rows) - 1 < rows[0]:
            self._file.close()
            return False
        self._file.truncate(self._size)
        self._changes = len(rows) - 1 - rows[0]
        self.recovered = rows[1:]
        return True

    def _open(self, number: int) -> None:
        self._number, self._size = number, 0
        self._file: File = self._files.open(self._path(number))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.append(rest) :]
        except OSError:
            with suppress(OSError):  # what cannot be cut now is cut when the log is opened
                self._file.truncate(self._size)
            raise
        self._size += len(data)

    def _numbers(self) -> list[int]:
        stems = [name.removesuffix(_SUFFIX) for name in self._files.list("") if name.endswith(_SUFFIX)]
        parts = [stem.rpartition("-") for stem in stems]
        return sorted(int(number) for name, _, number in parts if name == self._name and number.isdecimal())

    def _path(self, number: int) -> str:
        return f"{self._name}-{number}{_SUFFIX}"


def _line(row: Any) -> bytes:
    text = json.dumps(row).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _row(line: bytes) -> tuple[Any] | None:
    """The row of a whole line, as the only element; None when the line is torn or garbled."""
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    return (json.loads(text),)
