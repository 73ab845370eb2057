"""Messages of the formats 0 and 1, which Kafka wrote before 0.11 and can read for ever (``LegacyRecord.java``).

Each message is an entry of its own in the log, all big-endian::

     0  offset                 int64       17  attributes            int8
     8  length of what follows int32       18  timestamp             int64, not in format 0
    12  CRC-32 of all from 16  uint32          key                   int32 length, or -1 for null, and bytes
    16  magic (0 or 1)         int8            value                 likewise

Compressed messages are the value of another, the *wrapper*, whose offset is that of the last of them. In format 1 the
ones inside count from 0; in format 0 they have their own offsets.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from harness.wire.batches.header import COMPRESSION, LOG_APPEND_TIME, BatchHeader
from harness.wire.batches.record import NONE, Inflate, Record
from harness.wire.declaration import Buffer
from harness.wire.errors import CorruptBatch

NO_TIMESTAMP = -1
_ENTRY = struct.Struct(">qi")
_FIXED = struct.Struct(">Ibb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CHECKED_FROM = _ENTRY.size + 4
_NONE = -1


class Message(NamedTuple):
    """One entry of a log. ``timestamp`` is in milliseconds since the Unix epoch, -1 in format 0."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: memoryview | None


def header(buffer: Buffer, inflate: Inflate) -> BatchHeader:
    """The header of the entry that fills ``buffer``, a wrapper with all that it holds, as if it were a batch.

    Of one that is damaged only its own offset is known.

    Raises:
        CorruptBatch: it is torn.
    """
    entry = memoryview(buffer)
    if len(entry) < _ENTRY.size + _FIXED.size or _ENTRY.unpack_from(entry)[1] != len(entry) - _ENTRY.size:
        raise CorruptBatch(f"a message is torn: {len(entry)} bytes of it are there")
    offset, _ = _ENTRY.unpack_from(entry)
    crc, magic, attributes = _FIXED.unpack_from(entry, _ENTRY.size)
    inside = [Record(offset, NO_TIMESTAMP, None, None)]
    if verify(entry, crc):
        with suppress(CorruptBatch):
            inside = list(records(entry, inflate))
    return BatchHeader(
        0, len(entry), inside[0].offset, offset + 1, _NONE, magic, crc, attributes,
        len(inside), max(record.timestamp for record in inside), _NONE, _NONE, _NONE,
    )  # fmt: skip


def verify(buffer: Buffer, crc: int) -> bool:
    """Whether the entry that fills ``buffer`` has the checksum that it claims."""
    return zlib.crc32(memoryview(buffer)[_CHECKED_FROM:]) == crc


def records(buffer: Buffer, inflate: Inflate) -> Iterator[Record]:
    """The records of the entry that fills ``buffer``, copied out of it, in order.

    Raises:
        CorruptBatch: it does not parse, cannot be inflated, or holds a message with a wrong checksum.
    """
    message = _message(memoryview(buffer))
    codec = message.attributes & COMPRESSION
    if codec == NONE:
        yield _record(message, message.offset, message.timestamp)
        return
    if message.value is None:
        raise CorruptBatch(f"the wrapper at offset {message.offset} holds nothing")
    inside = list(_entries(inflate(message.value, codec, message.magic)))
    base = message.offset - inside[-1].offset if message.magic else 0
    if base + inside[0].offset < 0 or any(after.offset <= one.offset for one, after in pairwise(inside)):
        raise CorruptBatch(f"the offsets in the wrapper at offset {message.offset} do not rise to it")
    for one in inside:
        stamped = message if message.attributes & LOG_APPEND_TIME else one
        yield _record(one, base + one.offset, stamped.timestamp)


def _record(message: Message, offset: int, timestamp: int) -> Record:
    return Record(offset, timestamp, message.key, None if message.value is None else bytes(message.value))


def _entries(data: memoryview) -> Iterator[Message]:
    """The messages in a wrapper, of which there is at least one."""
    position = 0
    while position < len(data) or not position:
        if len(data) - position < _ENTRY.size:
            raise CorruptBatch(f"{len(data) - position} bytes in a wrapper are no message")
        end = position + _ENTRY.size + _ENTRY.unpack_from(data, position)[1]
        entry = data[position:end]
        message = _message(entry)
        if not verify(entry, message.crc) or message.attributes & COMPRESSION:
            raise CorruptBatch(f"the message at offset {message.offset} in a wrapper is damaged")
        yield message
        position = end


def _message(entry: memoryview) -> Message:
    """Raises CorruptBatch unless the entry is as long as it and its parts claim."""
    try:
        offset, length = _ENTRY.unpack_from(entry)
        crc, magic, attributes = _FIXED.unpack_from(entry, _ENTRY.size)
        position, timestamp = _ENTRY.size + _FIXED.size, NO_TIMESTAMP
        if magic == 1:
            (timestamp,) = _TIMESTAMP.unpack_from(entry, position)
            position += _TIMESTAMP.size
        key, position = _blob(entry, position)
        value, position = _blob(entry, position)
    except struct.error:
        raise CorruptBatch(f"a message of {len(entry)} bytes is torn") from None
    if magic not in (0, 1) or offset < 0 or position != len(entry) or length != len(entry) - _ENTRY.size:
        raise CorruptBatch(f"{len(entry)} bytes are no message of format 0 or 1")
    return Message(offset, crc, magic, attributes, timestamp, None if key is None else bytes(key), value)


def _blob(entry: memoryview, position: int) -> tuple[memoryview | None, int]:
    (length,) = _LENGTH.unpack_from(entry, position)
    position += _LENGTH.size
    if length == _NONE:
        return None, position
    if not 0 <= length <= len(entry) - position:
        raise CorruptBatch(f"{length} bytes where {len(entry) - position} are left")
    return entry[position : position + length], position + length
