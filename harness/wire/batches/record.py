"""Encodes and decodes the records inside a batch (``DefaultRecord.java``), for probes and tests; brokers do not."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness.wire.batches.header import (
    BASE_TIMESTAMP_AT,
    COMPRESSION,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Marker,
    seal,
)
from harness.wire.declaration import Buffer
from harness.wire.errors import CorruptBatch, WireError
from harness.wire.primitives import decode_varint, encode_varint

NONE, GZIP = 0, 1
_CODECS = {2: "snappy", 3: "lz4", 4: "zstd"}

MAX_INFLATED_BYTES = 1 << 27
"""A gzip batch that inflates to more is refused: a small batch must not fill the memory."""

Inflate = Callable[[memoryview, int, int], memoryview]
"""Decompresses ``(data, codec, magic of the message format)``; raises :class:`CorruptBatch`."""

Deflate = Callable[[bytes, int], bytes]
"""Compresses ``(data, codec)``."""

_GZIP_CONTAINER = 31
_NOT_SHORT = 0b1000_0001
"""The bits of the first byte of a length that make it negative (null), or one of several bytes; few lengths are."""
_TIMES = struct.Struct(">q")
_KEY, _VALUE = struct.Struct(">hh"), struct.Struct(">hi")
"""Of a record that ends a transaction: a version and the type, a version and the coordinator's epoch."""


class Record(NamedTuple):
    """One record. ``timestamp`` is in milliseconds since the Unix epoch; ``key`` and ``value`` may be null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def inflate(data: memoryview, codec: int, magic: int = MAGIC) -> memoryview:
    """Decompress data with no codec or gzip, the same in every format.

    Raises:
        CorruptBatch: it has another codec, or inflates to more than ``MAX_INFLATED_BYTES``.
    """
    if codec == NONE:
        return data
    if codec != GZIP:
        what = _CODECS.get(codec, f"codec {codec}")
        raise CorruptBatch(f"records compressed with {what} in format {magic} cannot be read here")
    inflater = zlib.decompressobj(_GZIP_CONTAINER)
    try:
        plain = inflater.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error as error:
        raise CorruptBatch(f"the records are not gzip: {error}") from error
    if not inflater.eof:
        raise CorruptBatch(f"the records are torn gzip, or more than {MAX_INFLATED_BYTES} bytes")
    return memoryview(plain)


def deflate(data: bytes, codec: int) -> bytes:
    """``data`` compressed with gzip, or with no codec."""
    if codec == NONE:
        return data
    assert codec == GZIP, f"codec {codec} is not known here"
    deflater = zlib.compressobj(wbits=_GZIP_CONTAINER)
    return deflater.compress(data) + deflater.flush()


def records(buffer: Buffer, header: BatchHeader, inflate: Inflate = inflate) -> Iterator[Record]:
    """The records of one batch, copied out of it, in order.

    Raises:
        CorruptBatch: while iterating: the records do not parse, or are not as many as the header claims; or they
            cannot be inflated.
    """
    start, stop = header.position + HEADER_BYTES, header.position + header.size
    data = bytes(inflate(memoryview(buffer)[start:stop], header.attributes & COMPRESSION, header.magic))
    (base_timestamp,) = _TIMES.unpack_from(buffer, header.position + BASE_TIMESTAMP_AT)
    fixed = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    position = 0
    try:
        for _ in range(header.record_count):
            size, position = decode_varint(data, position)
            if not 0 <= size <= len(data) - position:
                raise CorruptBatch(f"a record of {size} bytes where {len(data) - position} are left")
            record = _record(data[position : position + size], header.base_offset, base_timestamp)
            yield record if fixed is None else record._replace(timestamp=fixed)
            position += size
    except (IndexError, WireError) as error:
        raise CorruptBatch(f"the records of the batch at offset {header.base_offset} do not parse: {error}") from error
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes follow the last record of the batch at {header.base_offset}")


def _record(body: bytes, base_offset: int, base_timestamp: int) -> Record:
    timestamp_delta, position = decode_varint(body, 1)  # byte 0 is the record's attributes, of which there are none
    offset_delta, position = decode_varint(body, position)
    key, position = _blob(body, position)
    value, position = _blob(body, position)
    count, position = decode_varint(body, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _blob(body, position)
        content, position = _blob(body, position)
        if name is None:
            raise CorruptBatch("a record header has no name")
        headers.append((name.decode(errors="replace"), content))
    if count < 0:
        raise CorruptBatch(f"a record claims {count} headers")
    if position != len(body):
        raise CorruptBatch(f"a record of {len(body)} bytes holds {position}")
    return Record(base_offset + offset_delta, base_timestamp + timestamp_delta, key, value, tuple(headers))


def _blob(body: bytes, position: int) -> tuple[bytes | None, int]:
    length = body[position]
    size, position = (length >> 1, position + 1) if not length & _NOT_SHORT else decode_varint(body, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(body):
        raise CorruptBatch(f"{size} bytes where {len(body) - position} are left")
    return body[position:end], end


def build(
    values: Sequence[bytes | Record | None],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp_ms: int = 0,
    codec: int = NONE,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    deflate: Deflate = deflate,
) -> bytearray:
    """Make one batch with a valid checksum.

    Args:
        values: its records. A bare value has no key and no headers, and the next offset; a :class:`Record` keeps its
            own offset, which must not be below ``base_offset``, and timestamp.
        base_offset: the offset of the batch.
        leader_epoch: as its leader would set it.
        timestamp_ms: the timestamp of bare values.
        codec: one that ``deflate`` knows.
        attributes: further attribute bits, such as ``LOG_APPEND_TIME``.
        producer_id: with the next two, an idempotent producer.
        producer_epoch: see ``producer_id``.
        base_sequence: see ``producer_id``.
        deflate: compresses the records.
    """
    assert values, "a batch has at least one record"
    told = [
        value if isinstance(value, Record) else Record(base_offset + index, timestamp_ms, None, value)
        for index, value in enumerate(values)
    ]
    first_timestamp = told[0].timestamp
    body = deflate(b"".join(_encode(record, base_offset, first_timestamp) for record in told), codec)
    batch = bytearray(
        HEADER.pack(
            base_offset, HEADER_BYTES - 12 + len(body), leader_epoch, MAGIC, 0, attributes | codec,
            told[-1].offset - base_offset, first_timestamp, max(record.timestamp for record in told),
            producer_id, producer_epoch, base_sequence, len(told),
        )
    )  # fmt: skip
    batch += body
    seal(batch)
    return batch


def rebuilt(
    batch: Buffer, header: BatchHeader, kept: Sequence[Record], horizon_ms: int | None, deflate: Deflate = deflate
) -> bytearray:
    """A batch, which fills the buffer, with only the records ``kept``, and perhaps with a delete horizon.

    Its offsets, its leader epoch and its producer's numbers stay (``MemoryRecords.filterTo``).
    """
    base_timestamp = kept[0].timestamp if horizon_ms is None else horizon_ms
    attributes = header.attributes | (0 if horizon_ms is None else DELETE_HORIZON)
    newest = max(record.timestamp for record in kept)
    body = b"".join(_encode(record, header.base_offset, base_timestamp) for record in kept)
    return _remade(
        batch, header, (attributes, base_timestamp, newest, len(kept)), deflate(body, attributes & COMPRESSION)
    )


def emptied(batch: Buffer, header: BatchHeader) -> bytearray:
    """A batch, which fills the buffer, without records (``DefaultRecordBatch.writeEmptyHeader``)."""
    attributes = header.attributes & ~(COMPRESSION | DELETE_HORIZON)
    return _remade(batch, header, (attributes, header.max_timestamp, header.max_timestamp, 0), b"")


def _remade(batch: Buffer, header: BatchHeader, numbers: tuple[int, int, int, int], body: bytes) -> bytearray:
    attributes, base_timestamp, max_timestamp, count = numbers
    fields = list(HEADER.unpack_from(batch, header.position))
    fields[1] = HEADER_BYTES - 12 + len(body)
    fields[5], fields[7], fields[8], fields[12] = attributes, base_timestamp, max_timestamp, count
    made = bytearray(HEADER.pack(*fields)) + body
    seal(made)
    return made


def build_marker(marker: Marker, *, timestamp_ms: int, producer_id: int, producer_epoch: int) -> bytearray:
    """Make the control batch that ends the transaction of a producer."""
    key, value = _KEY.pack(0, marker.commits), _VALUE.pack(0, marker.coordinator_epoch)
    return build(
        [Record(0, timestamp_ms, key, value)],
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def _encode(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [b"\0", encode_varint(record.timestamp - base_timestamp), encode_varint(record.offset - base_offset)]
    parts += [_encode_blob(record.key), _encode_blob(record.value), encode_varint(len(record.headers))]
    for name, content in record.headers:
        parts += [_encode_blob(name.encode()), _encode_blob(content)]
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_blob(blob: bytes | None) -> bytes:
    return encode_varint(-1) if blob is None else encode_varint(len(blob)) + blob
