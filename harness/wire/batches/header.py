"""Record batches v2 (KIP-98), kept opaque: a log stores and serves them as the producer made them.

The layout of the 61 bytes in front of the records, all big-endian (``DefaultRecordBatch.java``)::

     0  base offset            int64       27  base timestamp    int64
     8  length of what follows int32       35  max timestamp     int64
    12  leader epoch           int32       43  producer id       int64
    16  magic (2)              int8        51  producer epoch    int16
    17  CRC32C of all from 21  uint32      53  base sequence     int32
    21  attributes             int16       57  record count      int32
    23  last offset delta      int32       61  the records, compressed together

The checksum leaves out the first 21 bytes, so that a leader may patch base offset and leader epoch in place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from harness.wire.declaration import Buffer
from harness.wire.errors import CorruptBatch, WireError
from harness.wire.primitives import decode_varint

MAGIC = 2
HEADER_BYTES = 61

HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZE = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_EPOCH_AT = 12
BASE_TIMESTAMP_AT = 27
_CRC = struct.Struct(">I")
_CRC_AT = 17
_CHECKED_FROM = 21
_LENGTH_COUNTS_FROM = 12

COMPRESSION = 0b111
"""The bits of ``attributes`` that name the codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""

LOG_APPEND_TIME = 0b1000
"""The bit of ``attributes`` for LogAppendTime: ``max_timestamp`` is the broker's time for every record."""

TRANSACTIONAL = 0b1_0000
CONTROL = 0b10_0000
DELETE_HORIZON = 0b100_0000
"""The bit of ``attributes`` that makes the base timestamp the time from which tombstones may go (KIP-534)."""

_MARKER = struct.Struct(">bxxhbxxi")
"""Of the only record of a control batch that ends a transaction, from its key on: the key with its length, 4, and the
value with its, 6. A version begins each. In front of it are varints."""
_MARKER_LENGTHS = (4 << 1, 6 << 1)
_ABORT, _COMMIT = 0, 1


class Marker(NamedTuple):
    """What a control batch says of its producer's transaction (``EndTransactionMarker.java``).

    Attributes:
        commits: whether it is committed; otherwise it is aborted.
        coordinator_epoch: the leader epoch in which its coordinator decided that.
    """

    commits: bool
    coordinator_epoch: int


class BatchHeader(NamedTuple):
    """One batch.

    Attributes:
        position: where it starts in the buffer it was found in, in bytes.
        size: its whole length in bytes, header included.
        base_offset: the offset of its first record.
        end_offset: the offset behind its last record: **exclusive**.
        leader_epoch: the epoch of the leader that appended it; a producer sends -1.
        magic: 2; 0 or 1 in a log that an older release has written, see :mod:`harness.wire.batches.legacy`.
        crc: as it claims, see :func:`verify`.
        attributes: see the masks above.
        record_count: as it claims. Only compaction makes it differ from ``end_offset - base_offset``, so a leader
            refuses a produced batch in which it does.
        max_timestamp: milliseconds since the Unix epoch.
        producer_id: -1 without idempotence, and so are the next two.
        producer_epoch: see ``producer_id``.
        base_sequence: the sequence number of its first record.
        marker: how it ends a transaction; None: it is no control batch, or one of another type.
    """

    position: int
    size: int
    base_offset: int
    end_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    record_count: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    marker: Marker | None = None


def delete_horizon(buffer: Buffer, header: BatchHeader) -> int | None:
    """From when on the batch's tombstones, or its marker, may go, in milliseconds; None: that is not known yet."""
    if not header.attributes & DELETE_HORIZON:
        return None
    (horizon,) = _OFFSET.unpack_from(buffer, header.position + BASE_TIMESTAMP_AT)
    return int(horizon)


def headers(buffer: Buffer) -> list[BatchHeader]:
    """The headers of all batches in ``buffer``, in order. It does not check checksums and records.

    Raises:
        CorruptBatch: a batch is torn, claims an impossible length or count, or has another magic than 2.
    """
    found: list[BatchHeader] = []
    position, end = 0, len(buffer)
    while position < end:
        header = _header(buffer, position, end)
        found.append(header)
        position += header.size
    return found


def _header(buffer: Buffer, position: int, end: int) -> BatchHeader:
    if end - position < HEADER_BYTES:
        raise CorruptBatch(f"a batch at byte {position} is torn: {end - position} bytes of its header are there")
    (base_offset, length, epoch, magic, crc, attributes, last_delta, _, max_timestamp,
     producer_id, producer_epoch, base_sequence, count) = HEADER.unpack_from(buffer, position)  # fmt: skip
    if magic != MAGIC:
        raise CorruptBatch(f"the batch at byte {position} has magic {magic}; only {MAGIC} is understood")
    size = length + _LENGTH_COUNTS_FROM
    if size < HEADER_BYTES:
        raise CorruptBatch(f"the batch at byte {position} claims a length of {length}")
    if size > end - position:
        raise CorruptBatch(f"the batch at byte {position} is torn: {end - position} of its {size} bytes are there")
    if last_delta < 0 or count < 0 or base_offset < 0:
        raise CorruptBatch(f"the batch at byte {position} claims {count} records up to {base_offset} + {last_delta}")
    return BatchHeader(
        position, size, base_offset, base_offset + last_delta + 1, epoch, magic, crc, attributes, count,
        max_timestamp, producer_id, producer_epoch, base_sequence,
        _marker(memoryview(buffer)[position + HEADER_BYTES : position + size]) if attributes & CONTROL else None,
    )  # fmt: skip


def _marker(records: memoryview) -> Marker | None:
    try:
        _, position = decode_varint(records, 0)  # the record's length; one byte of attributes follows
        _, position = decode_varint(records, position + 1)  # the timestamp's distance: to a delete horizon it is long
        _, position = decode_varint(records, position)  # the offset's
        key_length, kind, value_length, coordinator_epoch = _MARKER.unpack_from(records, position)
    except (IndexError, WireError, struct.error):
        return None
    if (key_length, value_length) != _MARKER_LENGTHS or kind not in (_ABORT, _COMMIT):
        return None
    return Marker(kind == _COMMIT, coordinator_epoch)


def complete_size(buffer: Buffer) -> int:
    """How many bytes of ``buffer`` are whole batches: a fetch answer, or a log after a crash, may end within one.

    Raises:
        CorruptBatch: a batch claims a length that no batch can have.
    """
    position, end = 0, len(buffer)
    while end - position >= HEADER_BYTES:
        _, length = _SIZE.unpack_from(buffer, position)
        size = length + _LENGTH_COUNTS_FROM
        if size < HEADER_BYTES:
            raise CorruptBatch(f"the batch at byte {position} claims a length of {length}")
        if size > end - position:
            break
        position += size
    return position


def verify(buffer: Buffer, header: BatchHeader) -> bool:
    """Whether the batch has the checksum that it claims."""
    stop = header.position + header.size
    return _crc32c()(memoryview(buffer)[header.position + _CHECKED_FROM : stop]) == header.crc


def patch(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at ``position`` its place in a log, in place; its checksum stays valid."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _EPOCH.pack_into(buffer, position + _EPOCH_AT, leader_epoch)


def checksum(batch: Buffer) -> int:
    """The CRC32C that the batch, which fills the buffer, should claim."""
    return _crc32c()(memoryview(batch)[_CHECKED_FROM:])


def seal(batch: bytearray | memoryview) -> None:
    """Write the checksum of the batch, which fills the buffer, in place."""
    _CRC.pack_into(batch, _CRC_AT, checksum(batch))


@cache
def _crc32c() -> Callable[[Buffer], int]:
    # Imported on first use: it takes 14 ms, which programs that read no batch save.
    from crc32c import crc32c  # noqa: PLC0415

    return crc32c
