"""A partition's log: segment files of record batches, exactly as Kafka lays them out.

``00000000000000000000.log`` and so on, each named for its first offset. Every batch has an entry in memory (its
offsets, position and timestamp: 32 bytes), so that a read never scans; no index files are written, because opening a
log reads the segments anyway. Offsets only rise, but compaction (:mod:`harness.broker.compaction`) leaves gaps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple

from harness.broker.ports import Buffer, FileSystem
from harness.broker.segment import READ_BYTES, Segment
from harness.broker.swap import LOG, finish, replace
from harness.model import Offset
from harness.replication.messages import BatchSpan, EpochEntry, ProducerStamp, TransactionEnd
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader
from harness.wire.errors import CorruptBatch


class Batches(NamedTuple):
    """Whole, validated record batches as they came from the wire; ``buffer`` may only live for one event."""

    buffer: memoryview
    headers: Sequence[BatchHeader]


class Slice(NamedTuple):
    """A run of whole batches in one segment, up to ``end_offset``, exclusive: what a fetch answer is made of."""

    segment: Segment
    position: int
    size: int
    end_offset: Offset

    def read(self) -> bytes:
        """The bytes."""
        return self.segment.file.read(self.position, self.size) if self.size else b""


def span_of(header: BatchHeader) -> BatchSpan:
    """Where a batch that is in a log, or is meant for one, lies; and which idempotent producer made it."""
    stamp = None
    if header.producer_id >= 0:
        stamp = ProducerStamp(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            bool(header.attributes & wire.TRANSACTIONAL),
            None if header.marker is None else TransactionEnd(*header.marker),
            header.max_timestamp,
            bool(header.attributes & wire.CONTROL),
        )
    return BatchSpan(header.base_offset, header.end_offset, header.leader_epoch, stamp)


class Recovery(NamedTuple):
    """What a log looked like when it was opened.

    ``epochs``: where the batches' leader epoch changes. ``cut_bytes`` were torn, corrupt or out of sequence, and
    were removed from the end.
    """

    epochs: tuple[EpochEntry, ...]
    cut_bytes: int


class LogPolicy(NamedTuple):
    """How a log is cut into segments, and when it is flushed.

    Attributes:
        segment_bytes: ``log.segment.bytes``.
        roll_ms: ``log.roll.ms``: how far the timestamps of one segment may lie apart.
        flush_messages: ``log.flush.interval.messages``: how many records may be unflushed.
        flush_names: whether a new segment's name is flushed with its content (KAFKA-3968). Otherwise it is only safe
            once the next segment exists: by then the file system has written it by itself.
        recovered_tail: what becomes of what is found beyond the recovery point: see
            :class:`~harness.replication.knobs.Knobs`.
        bugs: see :data:`harness.replication.bugs.BUGS`.
    """

    segment_bytes: int
    roll_ms: int
    flush_messages: int
    flush_names: bool = True
    recovered_tail: str = "left"
    bugs: tuple[str, ...] = ()


class Checkpointed(NamedTuple):
    """What a broker has written down about a log.

    Attributes:
        log_start_offset: no record below it is to be seen again.
        recovery_point: everything below it has been flushed.
        clean: whether the log was closed in order, so that all of it has.
    """

    log_start_offset: Offset = 0
    recovery_point: Offset = 0
    clean: bool = False


NOTHING_CHECKPOINTED = Checkpointed()


class SegmentLog:
    """The log of one replica below ``directory``.

    Opening it after anything but a clean shutdown recovers it: of every batch from the segment of the recovery point
    on, length and CRC32C are checked, and the first one that is torn, corrupt or out of sequence is cut off with
    everything behind it. What was flushed, or was closed in order, is taken as it is.

    Args:
        files: the port.
        directory: of the log, relative to the data directory.
        policy: how it is kept; it may be replaced at any time.
        checkpointed: what was written down about it.

    Attributes:
        log_start_offset: the first offset held.
        log_end_offset: the next record's offset.
        recovery_point: everything below it has been flushed.
        recovered: what was found.
        torn_bytes: how much of the last append that was refused had been written by then.
    """

    def __init__(
        self, files: FileSystem, directory: str, policy: LogPolicy, checkpointed: Checkpointed = NOTHING_CHECKPOINTED
    ) -> None:
        self._files = files
        self._directory = directory
        self.policy = policy
        self._segments: list[Segment] = []
        self._has_unsafe_names = False
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = checkpointed.recovery_point
        self.torn_bytes = 0
        self.recovered = self._recover(checkpointed)

    def append(self, batches: Batches, spans: Sequence[BatchSpan]) -> None:
        """Write all batches with one write, after patching offsets and epochs of ``spans`` into their headers.

        Raises:
            OSError: nothing of it is in the log, torn bytes have been cut off again; or it cannot be flushed.
        """
        segment = self._segment_for(batches)
        for header, span in zip(batches.headers, spans, strict=True):
            if (header.base_offset, header.leader_epoch) != (span.base_offset, span.leader_epoch):
                wire.patch(batches.buffer, header.position, span.base_offset, span.leader_epoch)
        self._write(segment, batches.buffer)
        for header, span in zip(batches.headers, spans, strict=True):
            segment.add(span.base_offset, span.end_offset, header.size, header.max_timestamp)
        self.log_end_offset = spans[-1].end_offset
        if self.log_end_offset - self.recovery_point >= self.policy.flush_messages:
            self.flush()

    def flush(self) -> None:
        """Make everything durable, the names of new segments where the policy requires it.

        Raises:
            OSError: the file system refuses.
        """
        if self.recovery_point >= self.log_end_offset:
            return
        first = bisect_right(self._segments, self.recovery_point, key=lambda segment: segment.base_offset) - 1
        for segment in self._segments[max(first, 0) :]:
            segment.file.flush()
        self._keep_names()
        self.recovery_point = self.log_end_offset

    def truncate(self, to_offset: Offset) -> None:
        """Cut every batch that holds an offset ``>= to_offset``.

        Raises:
            OSError: the file system refuses; the log ends where it has been cut by then.
        """
        while len(self._segments) > 1 and self._segments[-1].base_offset >= to_offset:
            if "cut_segments_stay" not in self.policy.bugs:
                self._drop(self._segments[-1])
            self.log_end_offset = self._segments.pop().base_offset
        if to_offset < self.log_end_offset:  # not at the boundary of two segments, which ends the log there
            segment = self._segments[-1]
            batch = bisect_right(segment.ends, to_offset)
            end_offset = min([to_offset, *segment.bases[batch : batch + 1]])
            segment.cut(batch)
            self.log_end_offset = max(end_offset, self.log_start_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """From the oldest to the one that is appended to."""
        return tuple(self._segments)

    def replace(self, old: Sequence[Segment], batches: Sequence[Buffer]) -> None:
        """Let ``batches`` take the place of the segments ``old``, which follow each other; not the last of all.

        Raises:
            OSError: the file system refuses; the log must not be used until it is opened again.
        """
        first = self._segments.index(old[0])
        replace(self._files, old, batches)
        new = self._open(old[0].base_offset)
        new.load(new.base_offset, [], trusted=True)
        self._segments[first : first + len(old)] = [new]

    def raise_start(self, offset: Offset, *, roll: bool) -> None:
        """Start at ``offset`` from now on; segments wholly below it are deleted.

        Args:
            offset: at most the log's end; lower than the start: nothing happens.
            roll: whether the last segment may be deleted too, and a new one begun, when all of it is below.

        Raises:
            OSError: the file system refuses.
        """
        if offset <= self.log_start_offset:
            return
        if roll and offset >= self.log_end_offset and self._segments[-1].size:
            self._roll()
        if len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            self._keep_names()  # before the names of those that could be found instead are gone
        while len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            self._drop(self._segments.pop(0))
        if "deletes_a_segment_more" in self.policy.bugs and len(self._segments) > 1:
            self._drop(self._segments.pop(0))
        self.log_start_offset = offset

    def start_at(self, offset: Offset) -> None:
        """Delete everything, and be an empty log that begins at ``offset``.

        Raises:
            OSError: the file system refuses.
        """
        while self._segments:
            self._drop(self._segments.pop())
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self._add_segment()
        self._keep_names()

    def expired(self, before_ms: int, high_watermark: Offset) -> Offset:
        """Where the log would start if the segments were gone that hold nothing as young as ``before_ms``.

        Only whole segments below ``high_watermark`` count, the oldest first, and none that has a record without a
        timestamp.
        """
        start = self.log_start_offset
        ends = [segment.base_offset for segment in self._segments[1:]] + [self.log_end_offset]
        for segment, end in zip(self._segments, ends, strict=True):
            young = not segment.times or min(segment.times) < 0 or max(segment.times) >= before_ms
            if young or end > high_watermark:
                break
            start = max(start, end)
        return start

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
        first = bisect_right(self._segments[index].ends, offset)
        while first == len(self._segments[index].ends) and index + 1 < len(self._segments):
            index, first = index + 1, 0  # nothing is left of that segment from ``offset`` on
        segment = self._segments[index]
        last = self._batches_below(index, end_offset)
        if offset >= end_offset or first >= last:
            return Slice(segment, segment.size, 0, offset)
        position = segment.positions[first]
        if segment.end_position(last) - position > max_bytes:
            fitting = bisect_right(segment.positions, position + max_bytes, first, last) - 1
            last = max(fitting, first + 1 if at_least_one else first)
        until = segment.bases[last] if last < len(segment.bases) else self._end_of(index)
        return Slice(segment, position, segment.end_position(last) - position, until)

    def headers(self) -> Iterator[BatchHeader]:
        """Every batch's header, in order; ``position`` is relative to an arbitrary start."""
        for segment in self._segments:
            batch = 0
            while batch < len(segment.bases):
                start = segment.positions[batch]
                until = max(bisect_right(segment.positions, start + READ_BYTES) - 1, batch + 1)
                try:
                    yield from wire.headers(segment.file.read(start, segment.end_position(until) - start))
                except CorruptBatch:  # in a trusted segment: a fetcher will see it too
                    return
                batch = until

    def first_since(self, timestamp_ms: int, end_offset: Offset) -> BatchHeader | None:
        """The first batch below ``end_offset`` whose largest timestamp is ``timestamp_ms`` or later; reads no other."""
        for index, segment in enumerate(self._segments):
            below = self._batches_below(index, end_offset)
            for batch in range(below):
                if segment.times[batch] >= timestamp_ms:
                    return self._header(segment, batch)
            if below < len(segment.bases):
                break
        return None

    def latest(self, end_offset: Offset) -> BatchHeader | None:
        """The first of the batches below ``end_offset`` with the largest timestamp; reads no other."""
        newest, place = -1, None
        for index, segment in enumerate(self._segments):
            times = segment.times[: self._batches_below(index, end_offset)]
            if times and max(times) > newest:
                newest = max(times)
                place = segment, times.index(newest)
        return None if place is None else self._header(*place)

    def producer_spans(self) -> tuple[BatchSpan, ...]:
        """The batches of idempotent producers, oldest first."""
        return tuple(span_of(header) for header in self.headers() if header.producer_id >= 0)

    @property
    def size(self) -> int:
        """How many bytes its segments have."""
        return sum(segment.size for segment in self._segments)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            segment.file.close()

    def _header(self, segment: Segment, batch: int) -> BatchHeader | None:
        """The header of one batch; None when it is corrupt, in a segment that was trusted."""
        start = segment.positions[batch]
        try:
            return wire.headers(segment.file.read(start, segment.end_position(batch + 1) - start))[0]
        except CorruptBatch:
            return None

    # ------------------------------------------------------------------------------------ writing

    def _segment_for(self, batches: Batches) -> Segment:
        active = self._segments[-1]
        if active.size and (
            active.size + len(batches.buffer) > self.policy.segment_bytes
            or (active.times and batches.headers[-1].max_timestamp - active.times[0] > self.policy.roll_ms)
        ):
            self._roll()
        return self._segments[-1]

    def _roll(self) -> None:
        """Begin a new segment; what is behind it is flushed, as Kafka does soon after rolling."""
        self.flush()
        self._flush_names()
        self._add_segment()

    def _add_segment(self) -> None:
        self._segments.append(self._open(self.log_end_offset))
        self._has_unsafe_names = True

    def _keep_names(self) -> None:
        """Flush new names where the policy requires it; where an empty log ends, only its name records."""
        if self.policy.flush_names:
            self._flush_names()

    def _flush_names(self) -> None:
        if self._has_unsafe_names:
            self._files.flush_directory(self._directory)
            self._has_unsafe_names = False

    def _write(self, segment: Segment, data: memoryview) -> None:
        rest = data
        try:
            while rest:
                rest = rest[segment.file.append(rest) :]
        except OSError:
            if "torn_append_kept" in self.policy.bugs:
                return
            self.torn_bytes = len(data) - len(rest)
            with suppress(OSError):  # recovery will cut what cannot be cut now
                segment.file.truncate(segment.size)
            raise

    def _batches_below(self, index: int, end_offset: Offset) -> int:
        """How many leading batches of segment number ``index`` end at or before ``end_offset``."""
        ends = self._segments[index].ends
        return len(ends) if end_offset >= self._end_of(index) else bisect_right(ends, end_offset)

    def _end_of(self, index: int) -> Offset:
        """Where segment number ``index`` ends, exclusive."""
        return self._segments[index + 1].base_offset if index + 1 < len(self._segments) else self.log_end_offset

    def _open(self, base_offset: Offset) -> Segment:
        path = f"{self._directory}/{base_offset:020d}{LOG}"
        return Segment(base_offset, path, self._files.open(path))

    def _drop(self, segment: Segment) -> None:
        self._files.remove(segment.path)
        segment.file.close()

    # ------------------------------------------------------------------------------------ opening

    def _recover(self, checkpointed: Checkpointed) -> Recovery:
        finish(self._files, self._directory)
        names = [name for name in self._files.list(self._directory) if name.endswith(LOG)]
        bases = [int(stem) for name in names if (stem := name.removesuffix(LOG)).isdecimal()]
        epochs: list[EpochEntry] = []
        cut_bytes = 0
        for base_offset, following in zip_longest(bases, bases[1:]):
            trusted = checkpointed.clean or (following is not None and following <= self.recovery_point)
            trusted = trusted or "recovery_skips_crc" in self.policy.bugs
            cut_bytes += self._load(base_offset, epochs, trusted=trusted, lost=bool(cut_bytes))
        is_empty = not self._segments or self.log_end_offset == self._segments[0].base_offset
        if "recovery_drops_a_batch" in self.policy.bugs and not (checkpointed.clean or is_empty):
            self.truncate(self.log_end_offset - 1)
        if not self._segments:
            self._create(checkpointed.log_start_offset)
        self.log_start_offset = max(self._segments[0].base_offset, checkpointed.log_start_offset)
        if self.log_start_offset > self.log_end_offset:  # more was lost than had been deleted
            self.start_at(self.log_start_offset)
            epochs.clear()
        self._settle_recovery_point(clean=checkpointed.clean)
        return Recovery(tuple(epochs), cut_bytes)

    def _load(self, base_offset: Offset, epochs: list[EpochEntry], *, trusted: bool, lost: bool) -> int:
        """Open one segment, or drop it when it does not continue the log; returns how many bytes were cut."""
        segment = self._open(base_offset)
        continues = not self._segments or base_offset == self.log_end_offset
        if "log_dropped_at_start" in self.policy.bugs and base_offset > 0 and not self._segments:
            lost = True
        if lost or not (continues or (trusted and base_offset > self.log_end_offset)):
            size = segment.file.size()
            self._drop(segment)
            return size
        self._segments.append(segment)
        self._has_unsafe_names = True  # for all we know: its creator may have died before it flushed the name
        self.log_end_offset = segment.load(base_offset, epochs, trusted=trusted)
        return 0 if trusted else segment.cut_garbage()

    def _create(self, offset: Offset) -> None:
        """A new log: its directory and its first segment are safe at once, whatever becomes of later ones."""
        self.start_at(offset)
        self._flush_names()
        self._files.flush_directory("")

    def _settle_recovery_point(self, *, clean: bool) -> None:
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        if clean or self.policy.recovered_tail == "not_flushed":
            self.recovery_point = self.log_end_offset
        if self.policy.recovered_tail == "flushed":
            self.flush()
