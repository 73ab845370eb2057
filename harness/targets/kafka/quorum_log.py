"""Reads the committed metadata log of a KRaft quorum from the disks of all its controllers while they write it.

It reads the most recent log, by epoch and end, as voters compare logs in an election: that log has every committed
record. It reads up to the offset that a majority has in the same epoch, once that reaches the newest epoch: records of
an older epoch may still be overwritten, however many controllers have them (Raft, 5.4.2).

A power loss may take records that a majority had written but not flushed. The controllers then write others in their
place, and the harness withdraws the decisions that it has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from harness.model import Offset
from harness.targets.kafka.decisions import Decision
from harness.targets.kafka.growing_log import Mark
from harness.targets.kafka.metadata_log import MetadataLog
from harness.wire import batches
from harness.wire.batches import BatchHeader


class _Extent:
    """How far a log goes in each epoch."""

    def __init__(self) -> None:
        self._ends: dict[int, Offset] = {}

    def note(self, header: BatchHeader) -> None:
        """The log goes on with this batch."""
        self._ends[header.leader_epoch] = header.end_offset

    @property
    def newest(self) -> tuple[int, Offset]:
        """The epoch of its last batch, and its exclusive end."""
        return max(self._ends.items(), default=(-1, 0))

    @property
    def before_newest(self) -> Offset:
        """The first offset of its last batch's epoch."""
        return max((end for epoch, end in self._ends.items() if epoch < self.newest[0]), default=0)

    def shared_with(self, other: _Extent) -> Offset:
        """The offset up to which both logs agree: the smaller end of the last epoch that both have."""
        both = self._ends.keys() & other._ends.keys()
        return min(self._ends[max(both)], other._ends[max(both)]) if both else 0


class _Measured:
    """The extent of the log in one directory; a truncated log is measured from its beginning."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._begin()

    def _begin(self) -> None:
        self._read: dict[Path, int] = {}
        self._last: Mark | None = None
        self.extent = _Extent()

    def measure(self) -> None:
        """Measure the log again. Files may disappear meanwhile, with their disk or by retention."""
        with suppress(FileNotFoundError):
            self._measure()
            return
        self._begin()
        with suppress(FileNotFoundError):
            self._measure()

    def _measure(self) -> None:
        segments = sorted(self.directory.glob("*.log"))
        is_shorter = any(path.stat().st_size < size for path, size in self._read.items())
        if is_shorter or (self._last is not None and not self._last.stands()):
            self._begin()
        for segment in segments:
            self._read_on(segment)

    def _read_on(self, segment: Path) -> None:
        position = self._read.get(segment, 0)
        with segment.open("rb") as file:
            file.seek(position)
            data = file.read()
        size = batches.complete_size(data)
        for header in batches.headers(data[:size]):
            start = data[header.position : header.position + batches.HEADER_BYTES]
            self._last = Mark(segment, position + header.position, start)
            self.extent.note(header)
        self._read[segment] = position + size


class QuorumLog(MetadataLog):
    """A :class:`~harness.targets.kafka.decisions.ControllerLog`; ``directories`` are the logs of the controllers."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._measured = [_Measured(directory) for directory in directories]
        super().__init__(directories[0])
        self._readable_end = 0

    def _forget(self) -> None:
        super()._forget()
        self._extent_told = _Extent()

    def _apply(self, data: bytes, header: BatchHeader) -> Iterator[Decision]:
        self._extent_told.note(header)
        return super()._apply(data, header)

    def _is_as_it_was(self) -> bool:
        for one in self._measured:
            one.measure()
        leading = max(self._measured, key=lambda one: one.extent.newest)
        self._directory = leading.directory
        shared = sorted(one.extent.shared_with(leading.extent) for one in self._measured)
        agreed = shared[(len(shared) - 1) // 2]
        is_same = self._extent_told.shared_with(leading.extent) == self._next_offset
        if agreed > leading.extent.before_newest or not is_same:
            self._readable_end = agreed
        return is_same and super()._is_as_it_was()
