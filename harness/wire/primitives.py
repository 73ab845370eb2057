"""Varints and tagged fields: the part of the encoding that is not fixed-size (KIP-482, and Kafka's ``ByteUtils``).

The functions that generated codecs call take the position behind the first byte and that byte itself, because
generated code has read it already: nearly every length fits into one.
"""

from __future__ import annotations

from typing import NoReturn

from harness.wire.declaration import MAX_STRING_BYTES
from harness.wire.errors import WireError

_MORE = 0x80
_UVARINT_BYTES = 5
_VARLONG_BYTES = 10

MAX_TAGGED_FIELDS = 64
"""Of one struct, among those that are not known here: no message of Kafka's has a tenth as many."""


def encode_uvarint(value: int) -> bytes:
    """An unsigned varint: seven bits per byte, lowest first, the high bit says that more follow."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def rest_of_uvarint(buffer: memoryview, position: int, first: int) -> tuple[int, int]:
    """Decode an unsigned varint whose ``first`` byte, of more than one, is already read.

    Returns:
        The value, below 2**32, and the position behind it.

    Raises:
        WireError: longer than five bytes, or larger than 32 bits.
        IndexError: the buffer ends inside it.
    """
    value = first & 127
    for shift in range(7, 7 * _UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < _MORE:
            if value >> 32:
                break
            return value, position
    raise WireError("an unsigned varint is longer than 32 bits")


def decode_uvarint(buffer: memoryview, position: int) -> tuple[int, int]:
    """Decode the unsigned varint at ``position``; see :func:`rest_of_uvarint`."""
    first = buffer[position]
    return (first, position + 1) if first < _MORE else rest_of_uvarint(buffer, position + 1, first)


def encode_varint(value: int) -> bytes:
    """A signed (zigzag) varint of up to 64 bits, as records use it."""
    return encode_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_varint(buffer: memoryview | bytes, position: int) -> tuple[int, int]:
    """Decode a signed (zigzag) varint of up to 64 bits.

    Raises:
        WireError: longer than ten bytes, or larger than 64 bits.
        IndexError: the buffer ends inside it.
    """
    byte = buffer[position]
    if byte < _MORE:  # nearly always
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = 0
    for shift in range(0, 7 * _VARLONG_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < _MORE:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), position
    raise WireError("a varint is longer than 64 bits")


def skip_tagged_fields(buffer: memoryview, position: int, first: int) -> int:
    """Skip tagged fields that we do not know; ``first`` is the first byte of their count.

    Returns:
        The position behind them: at most the end of the buffer.

    Raises:
        WireError: they reach beyond the end of the buffer, or are more than ``MAX_TAGGED_FIELDS``.
        IndexError: one of their varints reaches beyond the end of the buffer.
    """
    count, position = (first, position) if first < _MORE else rest_of_uvarint(buffer, position, first)
    if count > MAX_TAGGED_FIELDS:
        raise WireError(f"a struct has {count} tagged fields; at most {MAX_TAGGED_FIELDS} are read")
    for _ in range(count):
        _, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        position += size
    if position > len(buffer):
        raise WireError("a tagged field reaches beyond the end of the message")
    return position


def cut_text(text: bytes) -> bytes:
    """UTF-8 ``text`` cut to what a string may be long, between two characters."""
    if len(text) <= MAX_STRING_BYTES:
        return text
    return text[:MAX_STRING_BYTES].decode(errors="ignore").encode()


def refuse_length(field: str, length: int) -> NoReturn:
    """Refuse the ``length`` of a field: negative, null where null is not allowed, or beyond the message's end.

    Raises:
        WireError: always.
    """
    raise WireError(f"{field}: a length of {length} cannot be")


def refuse_elements(field: str, limit: int) -> NoReturn:
    """Refuse a request whose arrays have more elements than it may have in all; ``field`` exceeded the ``limit``.

    Raises:
        WireError: always.
    """
    raise WireError(f"{field}: the arrays of the request have more than {limit} elements")
