"""One segment file of a log, and how a starting broker reads it."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

from harness.broker.ports import File
from harness.model import Offset
from harness.replication.messages import EpochEntry
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader
from harness.wire.errors import CorruptBatch

READ_BYTES = 16 * 1_048_576
"""How much of a file is read at once when all of it is."""

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8


class Segment:
    """One segment file and where its batches lie.

    Attributes:
        size: of the file.
        bases: each batch's first offset.
        ends: the offset behind its last one. Compaction leaves gaps between batches.
        positions: where it starts in the file.
        times: its largest timestamp, in milliseconds since the Unix epoch; -1 without.
    """

    def __init__(self, base_offset: Offset, path: str, file: File) -> None:
        self.base_offset = base_offset
        self.path = path
        self.file = file
        self.size = 0
        self.bases = array("q")
        self.ends = array("q")
        self.positions = array("q")
        self.times = array("q")
        self._sound_size = 0

    def add(self, base_offset: Offset, end_offset: Offset, size: int, max_timestamp: int) -> None:
        """Note that a batch of ``size`` bytes was written at the end.

        A torn batch that no recovery has cut counts as the beginning of the next one: a read of that batch meets the
        torn one first, as in Kafka, which scans from the batch before.
        """
        self.bases.append(base_offset)
        self.ends.append(end_offset)
        self.positions.append(self._sound_size)
        self.times.append(max_timestamp)
        self.size += size
        self._sound_size = self.size

    def cut(self, batch: int) -> None:
        """Remove the batches from number ``batch`` on."""
        if batch < len(self.bases):
            self.file.truncate(self.positions[batch])
            self.size = self._sound_size = self.positions[batch]
            del self.bases[batch:]
            del self.ends[batch:]
            del self.positions[batch:]
            del self.times[batch:]

    def end_position(self, batch: int) -> int:
        """Where batch number ``batch`` starts; the size of the segment when there is no such batch."""
        return self.positions[batch] if batch < len(self.positions) else self._sound_size

    def load(self, end_offset: Offset, epochs: list[EpochEntry], *, trusted: bool) -> Offset:
        """Find the batches in the file.

        Args:
            end_offset: where the log ends before this segment.
            epochs: gets an entry wherever the leader epoch changes.
            trusted: whether a checksum is taken for right, as Kafka does with what was flushed.

        Returns:
            Where the log ends after it.
        """
        for batch, header in batches_in(self.file):
            if header.base_offset < end_offset or not (trusted or wire.verify(batch, header)):
                break
            self.add(header.base_offset, header.end_offset, header.size, header.max_timestamp)
            end_offset = header.end_offset
            if header.leader_epoch >= 0 and (not epochs or header.leader_epoch != epochs[-1].leader_epoch):
                epochs.append(EpochEntry(header.leader_epoch, header.base_offset))
        self.size = self.file.size()
        return end_offset

    def cut_garbage(self) -> int:
        """Cut what follows the batches that were found; returns how many bytes that were."""
        garbage = self.size - self._sound_size
        if garbage:
            self.file.truncate(self._sound_size)
            self.size = self._sound_size
        return garbage


def batches_in(file: File) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Batches from the start of ``file`` for as long as their headers make sense, each with its own bytes."""
    position, size = 0, file.size()
    while position < size:
        chunk = memoryview(file.read(position, READ_BYTES))
        taken = 0
        while (length := _batch_size(chunk, taken)) and taken + length <= len(chunk):
            batch = chunk[taken : taken + length]
            try:
                header = wire.headers(batch)[0]
            except CorruptBatch:
                return
            yield batch, header
            taken += length
        if not taken:
            return
        position += taken


def _batch_size(chunk: memoryview, position: int) -> int:
    """The size that the batch at ``position`` claims; 0 when it is missing or impossible."""
    if len(chunk) - position < wire.HEADER_BYTES:
        return 0
    return max(int(_LENGTH.unpack_from(chunk, position + _LENGTH_AT)[0]) + _LENGTH_AT + _LENGTH.size, 0)
