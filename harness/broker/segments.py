"""A partition's log: segment files of record batches, exactly as Kafka lays them out.

``00000000000000000000.log`` and so on, each named for its first offset. Every batch has an entry in memory (its
base offset and position: 16 bytes), so that a read never scans; no index files are written, because recovery
reads the segments anyway. Offsets are contiguous: nothing here compacts.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from harness.broker.ports import File, FileSystem
from harness.model import Offset
from harness.replication.messages import BatchSpan, EpochEntry, ProducerStamp
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader
from harness.wire.errors import CorruptBatch

_SUFFIX = ".log"
_READ_BYTES = 16 * 1_048_576
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8


class Batches(NamedTuple):
    """Whole, validated record batches as they came from the wire; ``buffer`` may only live for one event."""

    buffer: memoryview
    headers: Sequence[BatchHeader]


class Slice(NamedTuple):
    """A run of whole batches in one segment: what a fetch answer is made of."""

    segment: Segment
    position: int
    size: int

    def read(self) -> bytes:
        """The bytes."""
        return self.segment.file.read(self.position, self.size) if self.size else b""


def span_of(header: BatchHeader) -> BatchSpan:
    """Where a batch that is in a log, or is meant for one, lies; and which idempotent producer made it."""
    stamp = None
    if header.producer_id >= 0:
        stamp = ProducerStamp(header.producer_id, header.producer_epoch, header.base_sequence)
    return BatchSpan(header.base_offset, header.end_offset, header.leader_epoch, stamp)


class Recovery(NamedTuple):
    """What a log looked like when it was opened.

    ``epochs`` says where the batches' leader epoch changes. ``cut_bytes`` were torn, corrupt or out of sequence, and
    were removed from the end.
    """

    epochs: tuple[EpochEntry, ...]
    cut_bytes: int


class Segment:
    """One segment file and where its batches lie."""

    def __init__(self, base_offset: Offset, path: str, file: File) -> None:
        self.base_offset = base_offset
        self.path = path
        self.file = file
        self.size = 0
        self.bases = array("q")
        self.positions = array("q")

    def add(self, base_offset: Offset, size: int) -> None:
        """Note that a batch of ``size`` bytes was written at the end."""
        self.bases.append(base_offset)
        self.positions.append(self.size)
        self.size += size

    def cut(self, batch: int) -> None:
        """Remove the batches from number ``batch`` on."""
        if batch < len(self.bases):
            self.file.truncate(self.positions[batch])
            self.size = self.positions[batch]
            del self.bases[batch:]
            del self.positions[batch:]

    def end_position(self, batch: int) -> int:
        """Where batch number ``batch`` starts; the size of the segment when there is no such batch."""
        return self.positions[batch] if batch < len(self.positions) else self.size


class SegmentLog:
    """The log of one replica below ``directory``.

    Opening it recovers it: every batch's length and CRC32C is checked, and the first one that is torn, corrupt or
    out of sequence is cut off with everything behind it.

    Attributes:
        log_end_offset: the next record's offset.
        recovered: what was found.
        torn_bytes: how much of the last append that was refused had been written by then.
    """

    def __init__(self, files: FileSystem, directory: str, segment_bytes: int) -> None:
        self._files = files
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._segments: list[Segment] = []
        self.log_end_offset: Offset = 0
        self.torn_bytes = 0
        self.recovered = self._recover()

    @property
    def log_start_offset(self) -> Offset:
        """The first offset held."""
        return self._segments[0].base_offset

    def append(self, batches: Batches, spans: Sequence[BatchSpan]) -> None:
        """Write all batches with one write, after patching offsets and epochs of ``spans`` into their headers.

        Raises:
            OSError: nothing of it is in the log; torn bytes have been cut off again.
        """
        segment = self._segment_for(len(batches.buffer))
        for header, span in zip(batches.headers, spans, strict=True):
            if (header.base_offset, header.leader_epoch) != (span.base_offset, span.leader_epoch):
                wire.patch(batches.buffer, header.position, span.base_offset, span.leader_epoch)
        self._write(segment, batches.buffer)
        for header, span in zip(batches.headers, spans, strict=True):
            segment.add(span.base_offset, header.size)
        self.log_end_offset = spans[-1].end_offset

    def truncate(self, to_offset: Offset) -> None:
        """Cut every batch that holds an offset ``>= to_offset``.

        Raises:
            OSError: the file system refuses; the log ends where it has been cut by then.
        """
        while len(self._segments) > 1 and self._segments[-1].base_offset >= to_offset:
            self._drop(self._segments[-1])
            self.log_end_offset = self._segments.pop().base_offset
        if to_offset >= self.log_end_offset:
            return  # a cut at the boundary of two segments ends here: no batch that is left reaches beyond it
        segment = self._segments[-1]
        batch = max(bisect_right(segment.bases, to_offset) - 1, 0)
        end_offset = segment.bases[batch]
        segment.cut(batch)
        self.log_end_offset = end_offset

    def locate(self, offset: Offset, end_offset: Offset, max_bytes: int, *, at_least_one: bool) -> Slice:
        """Whole batches, from the one that holds ``offset``, that end at or before ``end_offset``.

        Args:
            offset: ``log_start_offset <= offset <= log_end_offset``.
            end_offset: exclusive; batches that reach beyond it are left out.
            max_bytes: the most that is wanted; a fetch does not cross segments anyway.
            at_least_one: whether the first batch is returned even if it is larger than ``max_bytes``.
        """
        end_offset = min(end_offset, self.log_end_offset)
        index = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        segment = self._segments[index]
        first = max(bisect_right(segment.bases, offset) - 1, 0)
        last = self._batches_below(index, end_offset)
        if offset >= end_offset or first >= last:
            return Slice(segment, segment.size, 0)
        position = segment.positions[first]
        if segment.end_position(last) - position > max_bytes:
            fitting = bisect_right(segment.positions, position + max_bytes, first, last) - 1
            last = max(fitting, first + 1 if at_least_one else first)
        return Slice(segment, position, segment.end_position(last) - position)

    def headers(self) -> Iterator[BatchHeader]:
        """Every batch's header, in order; ``position`` is relative to an arbitrary start."""
        for segment in self._segments:
            batch = 0
            while batch < len(segment.bases):
                start = segment.positions[batch]
                until = max(bisect_right(segment.positions, start + _READ_BYTES) - 1, batch + 1)
                yield from wire.headers(segment.file.read(start, segment.end_position(until) - start))
                batch = until

    def producer_spans(self) -> tuple[BatchSpan, ...]:
        """The batches of idempotent producers, oldest first."""
        return tuple(span_of(header) for header in self.headers() if header.producer_id >= 0)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            segment.file.close()

    # ------------------------------------------------------------------------------------ writing

    def _segment_for(self, size: int) -> Segment:
        active = self._segments[-1]
        if active.size and active.size + size > self._segment_bytes:
            active = self._open(self.log_end_offset)
            self._segments.append(active)
        return active

    def _write(self, segment: Segment, data: memoryview) -> None:
        rest = data
        try:
            while rest:
                rest = rest[segment.file.append(rest) :]
        except OSError:
            self.torn_bytes = len(data) - len(rest)
            with suppress(OSError):  # recovery will cut what cannot be cut now
                segment.file.truncate(segment.size)
            raise

    def _batches_below(self, index: int, end_offset: Offset) -> int:
        """How many leading batches of segment number ``index`` end at or before ``end_offset``."""
        bases = self._segments[index].bases
        after = self._segments[index + 1].base_offset if index + 1 < len(self._segments) else self.log_end_offset
        return len(bases) if end_offset >= after else max(bisect_right(bases, end_offset) - 1, 0)

    def _open(self, base_offset: Offset) -> Segment:
        path = f"{self._directory}/{base_offset:020d}{_SUFFIX}"
        return Segment(base_offset, path, self._files.open(path))

    def _drop(self, segment: Segment) -> None:
        self._files.remove(segment.path)
        segment.file.close()

    # ------------------------------------------------------------------------------------ recovery

    def _recover(self) -> Recovery:
        names = [name for name in self._files.list(self._directory) if name.endswith(_SUFFIX)]
        bases = [int(stem) for name in names if (stem := name.removesuffix(_SUFFIX)).isdecimal()]
        epochs: list[EpochEntry] = []
        cut_bytes = 0
        for base_offset in bases or [0]:
            segment = self._open(base_offset)
            if cut_bytes or (self._segments and base_offset != self.log_end_offset):
                cut_bytes += segment.file.size()
                self._drop(segment)
                continue
            if not self._segments:
                self.log_end_offset = base_offset
            self._segments.append(segment)
            cut_bytes += self._recover_segment(segment, epochs)
        return Recovery(tuple(epochs), cut_bytes)

    def _recover_segment(self, segment: Segment, epochs: list[EpochEntry]) -> int:
        """Index the sound batches of one file and cut off the rest; returns how many bytes that were."""
        for batch, header in _sound_batches(segment.file):
            if header.base_offset < self.log_end_offset or not wire.verify(batch, header):
                break
            segment.add(header.base_offset, header.size)
            self.log_end_offset = header.end_offset
            if header.leader_epoch >= 0 and (not epochs or header.leader_epoch != epochs[-1].leader_epoch):
                epochs.append(EpochEntry(header.leader_epoch, header.base_offset))
        garbage = segment.file.size() - segment.size
        if garbage:
            segment.file.truncate(segment.size)
        return garbage


def _sound_batches(file: File) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Batches from the start of ``file`` for as long as their headers make sense, each with its own bytes."""
    position, size = 0, file.size()
    while position < size:
        chunk = memoryview(file.read(position, _READ_BYTES))
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
    """The size that the batch at ``position`` claims; 0 when it cannot be told, or cannot be."""
    if len(chunk) - position < wire.HEADER_BYTES:
        return 0
    return max(int(_LENGTH.unpack_from(chunk, position + _LENGTH_AT)[0]) + _LENGTH_AT + _LENGTH.size, 0)
