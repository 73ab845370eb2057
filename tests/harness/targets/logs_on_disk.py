"""Logs for tests to read: record batches, and messages of the formats 0 and 1 with every codec."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from harness.model import TopicPartition
from harness.payload import Carried
from harness.wire import batches
from harness.wire.batches import HEADER_BYTES
from tests.records import record, stored

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
MESSAGE_MS = 5
"""The timestamp of messages of format 1."""


def data_dir(parent: Path, log: bytes) -> Path:
    """A data directory with the log of ``ledger-0``."""
    (parent / "ledger-0").mkdir(parents=True, exist_ok=True)
    (parent / "ledger-0" / f"{0:020d}.log").write_bytes(log)
    return parent


def batch(base_offset: int, *values: int, leader_epoch: int = 0, partition: int = 0) -> bytes:
    """A record batch."""
    built = batches.build(stored(record(value, TopicPartition("ledger", partition)) for value in values))
    batches.patch(built, 0, base_offset, leader_epoch)
    return bytes(built)


def compressed_batch(codec: int, *values: int) -> bytes:
    """A record batch with the offsets from 0."""
    plain = bytearray(batch(0, *values))
    small = COMPRESSED[codec](bytes(plain[HEADER_BYTES:]))
    built = plain[:HEADER_BYTES] + small
    struct.pack_into(">i", built, 8, len(built) - 12)
    struct.pack_into(">h", built, 21, codec)
    batches.seal(built)
    return bytes(built)


def message(offset: int, value: int, magic: int = 1) -> bytes:
    """A message of format 0 or 1 as it lies in a log."""
    one = record(value, carried=Carried(headers=False, timestamp=magic == 1), timestamp_ms=MESSAGE_MS)
    return entry(offset, one.value or b"", magic, key=one.key)


def wrapper(codec: int, first: int, *values: int, magic: int = 1) -> bytes:
    """Compressed messages of format 0 or 1 with the offsets from ``first``."""
    numbers = range(len(values)) if magic else range(first, first + len(values))
    inside = b"".join(message(number, value, magic) for number, value in zip(numbers, values, strict=True))
    framed = OF_FORMAT_0 if magic == 0 else COMPRESSED
    return entry(first + len(values) - 1, framed[codec](inside), magic, codec)


def entry(offset: int, value: bytes, magic: int, attributes: int = 0, key: bytes | None = None) -> bytes:
    """What lies at one offset."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", MESSAGE_MS) if magic else b"")
    body += struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    body += struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _of_snappy_java(data: bytes) -> bytes:
    """The blocks of snappy-java, here of 50 bytes each."""
    blocks = [pa.Codec("snappy").compress(data[start : start + 50], asbytes=True) for start in range(0, len(data), 50)]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(one)) + one for one in blocks)


def _lz4_of_format_0(data: bytes) -> bytes:
    """A frame whose header checksum is another than it should be."""
    frame = bytearray(pa.Codec("lz4").compress(data, asbytes=True))
    frame[14 if frame[4] & 0b1000 else 6] ^= 0x5A
    return bytes(frame)


COMPRESSED: Mapping[int, Callable[[bytes], bytes]] = {
    GZIP: gzip.compress,
    SNAPPY: _of_snappy_java,
    LZ4: lambda data: bytes(pa.Codec("lz4").compress(data, asbytes=True)),
    ZSTD: lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
}
OF_FORMAT_0: Mapping[int, Callable[[bytes], bytes]] = {**COMPRESSED, LZ4: _lz4_of_format_0}
