"""What clients might produce, sound or not, one case for each way in which a batch can be wrong."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from harness.broker.codecs import _xxh32
from harness.wire import batches as wire
from harness.wire.batches import Record
from harness.wire.primitives import encode_varint

Batch = bytes | bytearray | None

NOW_MS = 1_700_000_000_000
"""Any time at which Kafka does not think that a record comes from the future."""

_LENGTH_AT, _MAGIC_AT, _ATTRIBUTES_AT, _LAST_DELTA_AT, _COUNT_AT = 8, 16, 21, 23, 57
_SNAPPY, _LZ4, _ZSTD = 2, 3, 4


class Case(NamedTuple):
    """One Produce request for one partition.

    Attributes:
        records: what it carries.
        version: of the request.
    """

    records: Batch
    version: int = 7


def sound(*values: bytes, **fields: Any) -> bytearray:
    return wire.build(list(values) or [b"value"], timestamp_ms=NOW_MS, **fields)


def changed(at: int, form: str, value: int, batch: bytearray | None = None) -> bytearray:
    """A batch with one field changed, and the right checksum."""
    batch = sound(b"one", b"two") if batch is None else batch
    struct.pack_into(f">{form}", batch, at, value)
    wire.seal(batch)
    return batch


def claiming(count: int, last_delta: int, *values: bytes) -> bytearray:
    return changed(_LAST_DELTA_AT, "i", last_delta, changed(_COUNT_AT, "i", count, sound(*values)))


def carrying(payload: bytes, *, count: int = 1, codec: int = 0) -> bytearray:
    """A batch of ``payload``, as it is, in place of records."""
    batch = sound(*[b"value"] * count)[: wire.HEADER_BYTES] + payload
    struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - 12)
    return changed(_ATTRIBUTES_AT, "h", codec, batch)


def record(
    *, delta: int = 0, key: bytes = b"\x01", value: bytes = b"\x0avalue", headers: bytes = b"\0", attributes: int = 0,
    timestamp: int = 0, size: int | None = None,
) -> bytes:  # fmt: skip
    """One record, of parts that are encoded already; null key by default."""
    body = bytes([attributes]) + encode_varint(timestamp) + encode_varint(delta) + key + value + headers
    return encode_varint(len(body) if size is None else size) + body


def payload(batch: bytearray) -> bytes:
    return bytes(batch[wire.HEADER_BYTES :])


def packed(codec: int, plain: bytes) -> bytes:
    """Compressed as clients do."""
    if codec == wire.GZIP:
        return gzip.compress(plain, mtime=0)
    if codec == _LZ4:
        return _lz4(plain)
    return bytes(pa.compress(plain, codec="snappy" if codec == _SNAPPY else "zstd", asbytes=True))


def _lz4(plain: bytes) -> bytes:
    """One frame of one independent block."""
    descriptor = bytes([0b0110_0000, 0x40])
    block = bytes(pa.compress(plain, codec="lz4_raw", asbytes=True))
    header = b"\x04\x22\x4d\x18" + descriptor + bytes([_xxh32(descriptor) >> 8 & 0xFF])
    return header + struct.pack("<I", len(block)) + block + bytes(4)


def dependent_lz4(plain: bytes) -> bytes:
    """One frame whose blocks refer to those before them."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(plain)
    return bytes(sink.getvalue())


def message(magic: int, value: bytes = b"value", attributes: int = 0) -> bytes:
    """An entry in the format 0 or 1."""
    body = bytes([magic, attributes]) + (struct.pack(">q", NOW_MS) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(body)) + body


ONE, TWO = payload(sound()), payload(sound(b"one", b"two"))


def _last_byte(batch: bytearray, change: Callable[[int], int]) -> bytearray:
    batch[-1] = change(batch[-1])
    return batch


CASES: dict[str, Case] = {
    "sound": Case(sound()),
    "two records": Case(sound(b"one", b"two")),
    "with a base offset": Case(sound(base_offset=7)),
    "with a leader epoch": Case(sound(leader_epoch=3)),
    "null": Case(None),
    "empty": Case(b""),
    "garbage": Case(b"garbage"),
    "zeros": Case(bytes(100)),
    "torn": Case(sound()[:-1]),
    "torn header": Case(sound()[:40]),
    "garbage behind it": Case(sound() + b"garbage"),
    "two batches": Case(sound() + sound()),
    "wrong checksum": Case(_last_byte(sound(), lambda byte: byte ^ 1)),
    "length below a header's": Case(changed(_LENGTH_AT, "i", 20)),
    "negative length": Case(changed(_LENGTH_AT, "i", -1)),
    "magic -1": Case(changed(_MAGIC_AT, "b", -1)),
    "magic 3": Case(changed(_MAGIC_AT, "b", 3)),
    "format 0": Case(message(0)),
    "format 1": Case(message(1)),
    "format 1 in Produce v2": Case(message(1), 2),
    "format 0 in Produce v0": Case(message(0), 0),
    "no records": Case(claiming(0, 0)),
    "no records, and no bytes": Case(changed(_LAST_DELTA_AT, "i", -1, changed(_COUNT_AT, "i", 0, carrying(b"")))),
    "negative count": Case(claiming(-1, 0)),
    "negative last offset delta": Case(claiming(1, -1)),
    "count and last offset disagree": Case(claiming(2, 5, b"one", b"two")),
    "claims a record too many": Case(claiming(3, 2, b"one", b"two")),
    "claims a record too few": Case(claiming(1, 0, b"one", b"two")),
    "payload garbage": Case(carrying(b"\xff" * 40)),
    "payload random": Case(carrying(bytes(range(1, 60)))),
    "payload empty": Case(carrying(b"")),
    "record too long": Case(carrying(record(size=100))),
    "record too short": Case(carrying(record(size=3))),
    "record of no bytes": Case(carrying(b"\0")),
    "record of negative size": Case(carrying(b"\x01")),
    "bytes behind the records": Case(carrying(ONE + b"\0\0")),
    "key beyond the record": Case(carrying(record(key=encode_varint(90)))),
    "value beyond the record": Case(carrying(record(value=encode_varint(90)))),
    "negative key length": Case(carrying(record(key=encode_varint(-5)))),
    "negative value length": Case(carrying(record(value=encode_varint(-5)))),
    "negative header count": Case(carrying(record(headers=encode_varint(-1)))),
    "claims a header too many": Case(carrying(record(headers=encode_varint(1)))),
    "header without a name": Case(carrying(record(headers=encode_varint(1) + encode_varint(-1) + encode_varint(-1)))),
    "header with a name that is not UTF-8": Case(
        carrying(record(headers=encode_varint(1) + encode_varint(1) + b"\xff" + encode_varint(-1)))
    ),
    "record attributes": Case(carrying(record(attributes=1))),
    "varint without an end": Case(carrying(b"\xff" * 12)),
    "offset deltas 0 0": Case(carrying(record() + record(), count=2)),
    "offset deltas 1 0": Case(carrying(record(delta=1) + record(), count=2)),
    "offset deltas 0 5": Case(carrying(record() + record(delta=5), count=2)),
    "offset delta -1": Case(carrying(record(delta=-1))),
    "timestamp delta -1000": Case(carrying(record(timestamp=-1000))),
    "max timestamp wrong": Case(changed(35, "q", NOW_MS + 5)),
    "max timestamp -1": Case(changed(35, "q", -1)),
    "timestamps -1": Case(wire.build([b"value"], timestamp_ms=-1)),
    "timestamps -5": Case(wire.build([b"value"], timestamp_ms=-5)),
    "log append time": Case(sound(attributes=wire.LOG_APPEND_TIME)),
    "control": Case(sound(attributes=wire.CONTROL)),
    "transactional": Case(sound(attributes=wire.TRANSACTIONAL)),
    "transactional with a producer": Case(
        sound(attributes=wire.TRANSACTIONAL, producer_id=5, producer_epoch=0, base_sequence=0)
    ),
    "attribute 6": Case(sound(attributes=1 << 6)),
    "attribute 7": Case(sound(attributes=1 << 7)),
    "attribute 14": Case(sound(attributes=1 << 14)),
    "producer without a sequence": Case(sound(producer_id=77, producer_epoch=0)),
    "producer without an epoch": Case(sound(producer_id=78, base_sequence=0)),
    "producer -5": Case(sound(producer_id=-5, producer_epoch=0, base_sequence=0)),
    "sequence without a producer": Case(sound(base_sequence=3)),
    "codec 5": Case(carrying(ONE, codec=5)),
    "codec 6": Case(carrying(ONE, codec=6)),
    "codec 7": Case(carrying(ONE, codec=7)),
    "gzip": Case(sound(b"one", b"two", codec=wire.GZIP)),
    "snappy": Case(carrying(packed(_SNAPPY, ONE), codec=_SNAPPY)),
    "lz4": Case(carrying(packed(_LZ4, ONE), codec=_LZ4)),
    "lz4 of dependent blocks": Case(carrying(dependent_lz4(ONE), codec=_LZ4)),
    "zstd": Case(carrying(packed(_ZSTD, ONE), codec=_ZSTD)),
    "zstd in Produce v6": Case(carrying(packed(_ZSTD, ONE), codec=_ZSTD), 6),
    "gzip of garbage": Case(carrying(packed(wire.GZIP, b"\xff" * 40), codec=wire.GZIP)),
    "gzip of nothing": Case(carrying(packed(wire.GZIP, b""), codec=wire.GZIP)),
    "gzip of a record too few": Case(carrying(packed(wire.GZIP, ONE), count=2, codec=wire.GZIP)),
    "gzip of a record too many": Case(carrying(packed(wire.GZIP, TWO), count=1, codec=wire.GZIP)),
    "gzip with offset deltas 0 0": Case(carrying(packed(wire.GZIP, record() + record()), count=2, codec=wire.GZIP)),
    "gzip with offset deltas 1 0": Case(
        carrying(packed(wire.GZIP, record(delta=1) + record()), count=2, codec=wire.GZIP)
    ),
    "gzip with offset deltas 0 5": Case(
        carrying(packed(wire.GZIP, record() + record(delta=5)), count=2, codec=wire.GZIP)
    ),
    "gzip torn": Case(carrying(packed(wire.GZIP, TWO)[:-9], count=2, codec=wire.GZIP)),
    "gzip torn in its trailer": Case(carrying(packed(wire.GZIP, TWO)[:-4], count=2, codec=wire.GZIP)),
    "gzip with a wrong checksum": Case(
        carrying(packed(wire.GZIP, TWO)[:-8] + bytes(4) + packed(wire.GZIP, TWO)[-4:], count=2, codec=wire.GZIP)
    ),
    "gzip with bytes behind it": Case(carrying(packed(wire.GZIP, TWO) + b"more", count=2, codec=wire.GZIP)),
    "not gzip": Case(carrying(ONE, codec=wire.GZIP)),
    "gzip empty": Case(carrying(b"", codec=wire.GZIP)),
    "not snappy": Case(carrying(ONE, codec=_SNAPPY)),
    "not lz4": Case(carrying(ONE, codec=_LZ4)),
    "not zstd": Case(carrying(ONE, codec=_ZSTD)),
    "gzip with a key beyond the record": Case(
        carrying(packed(wire.GZIP, record(key=encode_varint(90))), codec=wire.GZIP)
    ),
    "gzip with a record too long": Case(carrying(packed(wire.GZIP, record(size=100)), codec=wire.GZIP)),
    "too large": Case(sound(b"x" * 1_100_000)),
    "with a key and headers": Case(wire.build([Record(0, NOW_MS, b"key", b"value", (("name", b"content"),))])),
}
"""By name. What each is answered with, by a real broker and by ours, is in ``test_validation.py``."""
