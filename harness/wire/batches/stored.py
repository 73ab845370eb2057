"""Reads the batches of a log that any release has written: record batches, or messages of the formats 0 and 1.

All of them begin with an offset and a length, and have the magic of their format at the same place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from harness.wire.batches import header as record_batch
from harness.wire.batches import legacy, record
from harness.wire.batches.header import MAGIC, BatchHeader
from harness.wire.batches.record import Inflate, Record
from harness.wire.declaration import Buffer
from harness.wire.errors import CorruptBatch

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_PREFIX_BYTES = 12
_MAGIC_AT = 16


def pieces(log: memoryview) -> Iterator[memoryview]:
    """The batches in ``log`` by their lengths; the last piece may be no whole batch."""
    position = 0
    while position < len(log):
        size = _size(log[position:])
        yield log[position : position + size]
        position += size


def _size(log: memoryview) -> int:
    """The size of the first batch, or of the rest if that is no whole one."""
    if len(log) < _PREFIX_BYTES:
        return len(log)
    size = _PREFIX_BYTES + int(_LENGTH.unpack_from(log, _LENGTH_AT)[0])
    return size if _PREFIX_BYTES < size <= len(log) else len(log)


def header(piece: memoryview, inflate: Inflate) -> BatchHeader:
    """The header of the batch that fills ``piece``.

    Raises:
        CorruptBatch: it does not.
    """
    if len(piece) > _MAGIC_AT and piece[_MAGIC_AT] < MAGIC:
        return legacy.header(piece, inflate)
    found = record_batch.headers(piece)
    if len(found) != 1:
        raise CorruptBatch(f"{len(piece)} bytes are not one batch")
    return found[0]


def verify(piece: Buffer, header: BatchHeader) -> bool:
    """Whether the batch that fills ``piece`` has the checksum that it claims."""
    return legacy.verify(piece, header.crc) if header.magic < MAGIC else record_batch.verify(piece, header)


def records(piece: memoryview, header: BatchHeader, inflate: Inflate) -> Iterator[Record]:
    """The records of the batch that fills ``piece``, copied out of it, in order.

    Raises:
        CorruptBatch: they do not parse, or cannot be inflated.
    """
    return legacy.records(piece, inflate) if header.magic < MAGIC else record.records(piece, header, inflate)
