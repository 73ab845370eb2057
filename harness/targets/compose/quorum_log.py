"""The metadata log of a quorum, read from the disks of all its controllers while they write it.

Any of them may be away, so it is read from the one whose log is the most recent, by epoch and end, as voters compare
logs in an election: it has whatever was committed. It is read as far as a majority has the same: what a controller
holds at an offset in another epoch is something else, which was never decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.model import Offset
from harness.targets.kafka.decisions import Decision
from harness.targets.kafka.metadata_log import MetadataLog
from harness.targets.kafka.rereading import Mark
from harness.wire import batches


class _Extent:
    """How far the log in one directory goes in each epoch; one that was cut is read again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begin()

    def _begin(self) -> None:
        self._read: dict[Path, int] = {}
        self._last: Mark | None = None
        self._ends: dict[int, Offset] = {}

    def measure(self) -> None:
        """See how far it goes now."""
        segments = sorted(self._directory.glob("*.log"))
        is_shorter = any(segment.stat().st_size < self._read.get(segment, 0) for segment in segments)
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
            self._ends[header.leader_epoch] = header.end_offset
        self._read[segment] = position + size

    @property
    def newest(self) -> tuple[int, Offset]:
        """The epoch of its last batch, and its exclusive end."""
        return max(self._ends.items(), default=(-1, 0))

    def shared_with(self, other: _Extent) -> Offset:
        """How far both logs are the same: to where the shorter one ends in the last epoch that both have."""
        both = self._ends.keys() & other._ends.keys()
        return min(self._ends[max(both)], other._ends[max(both)]) if both else 0


class QuorumLog(MetadataLog):
    """A :class:`~harness.targets.kafka.decisions.ControllerLog`; ``directories`` are the logs of the controllers."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._extents = {directory: _Extent(directory) for directory in directories}
        super().__init__(directories[0])

    def _read(self) -> Iterator[Decision]:
        for extent in self._extents.values():
            extent.measure()
        self._directory, leading = max(self._extents.items(), key=lambda one: one[1].newest)
        shared = sorted(extent.shared_with(leading) for extent in self._extents.values())
        self._readable_end = shared[(len(shared) - 1) // 2]
        return super()._read()
