"""The bytes of a workload's record: its unique value, where it was sent to, and a hash over both.

A record read back anywhere, by a client or from a broker's disk, says which write it is and whether it is
intact. The text is ``seawall <topic> <partition> <value> <filler> <crc32>``, so a person sees it in any tool.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

FOREIGN_VALUE = 2**62
"""What the first record of a foreign batch says, and the others the numbers behind it: no workload counts that far."""

_MAGIC = b"seawall "


class Payload(NamedTuple):
    """A decoded record. ``intact`` is False when the hash is wrong."""

    value: int
    topic: str
    partition: int
    intact: bool


def encode(value: int, topic: str, partition: int, size: int = 0) -> bytes:
    """The record's bytes, filled up to ``size`` bytes where they would be fewer."""
    head = b"%s%s %d %d " % (_MAGIC, topic.encode(), partition, value)
    body = head + b"." * max(0, size - len(head) - 9) + b" "
    return body + b"%08x" % zlib.crc32(body)


def decode(data: bytes | bytearray | memoryview | None) -> Payload | None:
    """The inverse of :func:`encode`; None when the bytes are not a workload's record at all."""
    text = bytes(data or b"")
    fields = text.split(b" ")
    if not text.startswith(_MAGIC) or len(fields) < 5:
        return None
    try:
        value, partition, crc = int(fields[3]), int(fields[2]), int(text[-8:], 16)
    except ValueError:
        return None
    return Payload(value, fields[1].decode(errors="replace"), partition, crc == zlib.crc32(text[:-8]))
