"""The metadata log of a quorum, read from the disks of all its controllers while they write it.

Any of them may be away, so it is read from the one whose log is the most recent, by epoch and end, as voters compare
logs in an election: it has whatever was committed. It is read as far as a majority has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.model import Offset
from harness.targets.kafka.decisions import Decision
from harness.targets.kafka.metadata_log import MetadataLog
from harness.wire import batches
from harness.wire.batches import BatchHeader


class _End(NamedTuple):
    """Of a controller's log: the epoch of its last batch, and its exclusive end."""

    epoch: int
    offset: Offset


class _Extent:
    """How far the log in one directory goes; a file that became shorter is read again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self._end = _End(-1, 0)

    def measured(self) -> _End:
        """The end as it is now."""
        for segment in sorted(self._directory.glob("*.log")):
            if segment.stat().st_size < self._read.get(segment, 0):
                self._read.clear()
                self._end = _End(-1, 0)
                return self.measured()
            for header in self._new_headers(segment):
                self._end = _End(header.leader_epoch, header.end_offset)
        return self._end

    def _new_headers(self, segment: Path) -> Sequence[BatchHeader]:
        position = self._read.get(segment, 0)
        with segment.open("rb") as file:
            file.seek(position)
            data = file.read()
        size = batches.complete_size(data)
        self._read[segment] = position + size
        return batches.headers(data[:size])


class QuorumLog(MetadataLog):
    """A :class:`~harness.targets.kafka.decisions.ControllerLog`; ``directories`` are the logs of the controllers."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._extents = {directory: _Extent(directory) for directory in directories}
        super().__init__(directories[0])

    def _read(self) -> Iterator[Decision]:
        ends = {directory: extent.measured() for directory, extent in self._extents.items()}
        self._directory = max(ends, key=lambda directory: ends[directory])
        self._readable_end = sorted(end.offset for end in ends.values())[(len(ends) - 1) // 2]
        return super()._read()
