"""The codecs of all message formats: what pyarrow brings, in the framings that Kafka's clients use.

* snappy: raw, or in the blocks of snappy-java (``SnappyOutputStream``), which Java clients write;
* lz4: the frame format; what clients wrote into format 0 has a header checksum over the wrong bytes (KAFKA-3160), so
  there it is not looked at;
* zstd: frames, since Kafka 2.1;
* gzip: see :func:`harness.wire.batches.record.inflate`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from harness.wire.batches.record import GZIP, MAX_INFLATED_BYTES, NONE
from harness.wire.batches.record import deflate as deflate_simply
from harness.wire.batches.record import inflate as inflate_simply
from harness.wire.errors import CorruptBatch

SNAPPY, LZ4, ZSTD = 2, 3, 4
_ARROW = {SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
"""By codec, Arrow's name: ``lz4`` is the frame format."""

CODECS: Mapping[str, int] = MappingProxyType({"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD})
"""By the name that clients' configurations have, the bits of a batch's attributes."""

_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_BLOCK_LENGTH = struct.Struct(">i")
_MAX_VARINT_BYTES = 5
_LZ4_FLAGS_AT, _LZ4_CONTENT_SIZE = 4, 0b1000
_WORD = 0xFFFFFFFF


def inflate(data: memoryview, codec: int, magic: int) -> memoryview:
    """What was compressed with ``codec`` (the bits of a batch's attributes) in the message format ``magic``.

    Raises:
        CorruptBatch: it was not, there is no such codec, or there are more than ``MAX_INFLATED_BYTES`` of it.
    """
    if codec not in (SNAPPY, LZ4, ZSTD):
        return inflate_simply(data, codec, magic)
    # Imported on first use: it takes a tenth of a second, which a broker whose clients do not compress need not pay.
    import pyarrow as pa  # noqa: PLC0415

    try:
        if codec == SNAPPY:
            return _bounded(b"".join(map(_snappy, _snappy_blocks(data))))
        if codec == LZ4:
            return _stream(_with_header_checksum(data) if magic == 0 else data, "lz4")
        return _stream(data, "zstd")
    except (pa.ArrowException, OSError, struct.error) as error:
        raise CorruptBatch(f"the records cannot be inflated: {error}") from error


def deflate(data: bytes, codec: int) -> bytes:
    """``data`` compressed with ``codec``, as clients do in message format v2: snappy in one block."""
    if codec not in _ARROW:
        return deflate_simply(data, codec)
    import pyarrow as pa  # noqa: PLC0415

    return bytes(pa.Codec(_ARROW[codec]).compress(data, asbytes=True))


def _stream(data: memoryview | bytearray, codec: str) -> memoryview:
    import pyarrow as pa  # noqa: PLC0415

    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), codec) as stream:
        return _bounded(stream.read(MAX_INFLATED_BYTES + 1))


def _bounded(plain: bytes) -> memoryview:
    if len(plain) > MAX_INFLATED_BYTES:
        raise CorruptBatch(f"the records are more than {MAX_INFLATED_BYTES} bytes")
    return memoryview(plain)


# -------------------------------------------------------------------------------------------------------------- snappy


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        yield data
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - position:
            raise CorruptBatch(f"a snappy block of {length} bytes where {len(data) - position} are left")
        yield data[position : position + length]
        position += length


def _snappy(block: memoryview) -> bytes:
    size = _plain_size(block)
    if size > MAX_INFLATED_BYTES:
        raise CorruptBatch(f"a snappy block claims {size} bytes")
    import pyarrow as pa  # noqa: PLC0415

    return bytes(pa.Codec("snappy").decompress(pa.py_buffer(block), decompressed_size=size))


def _plain_size(block: memoryview) -> int:
    """What a snappy block begins with: the size of what it holds, as an unsigned varint."""
    size = 0
    for shift, byte in enumerate(block[:_MAX_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return size
    raise CorruptBatch("a snappy block does not say how large it is")


# ----------------------------------------------------------------------------------------------------------------- lz4


def _with_header_checksum(frame: memoryview) -> bytearray:
    """The lz4 frame with the header checksum that it should have."""
    mended = bytearray(frame)
    if len(mended) > _LZ4_FLAGS_AT:
        end = _LZ4_FLAGS_AT + (10 if mended[_LZ4_FLAGS_AT] & _LZ4_CONTENT_SIZE else 2)
        mended[end : end + 1] = bytes([_xxh32(mended[_LZ4_FLAGS_AT:end]) >> 8 & 0xFF])
    return mended


def _xxh32(data: bytes | bytearray) -> int:
    """xxHash, 32 bits, seed 0, of fewer than 16 bytes: such is the header of an lz4 frame."""
    assert len(data) < 16
    value = 374761393 + len(data)
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * 3266489917, 17) * 668265263
    for byte in data[whole:]:
        value = _rotated(value + byte * 374761393, 11) * 2654435761
    for shift, prime in ((15, 2246822519), (13, 3266489917), (16, 1)):
        value = ((value & _WORD) ^ (value & _WORD) >> shift) * prime
    return value & _WORD


def _rotated(value: int, bits: int) -> int:
    value &= _WORD
    return (value << bits | value >> 32 - bits) & _WORD
