"""Splits a stream of bytes into the protocol's length-prefixed frames, for wire taps and relays."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_PREFIX = struct.Struct(">i")

MAX_FRAME_BYTES = 104_857_600
"""Kafka's ``socket.request.max.bytes``: a stream that announces a longer frame is not taken for one of Kafka's."""


class FrameSplitter:
    """One direction of a connection; holds what there is of a frame that is not whole yet.

    Attributes:
        is_lost: whether the stream has announced an impossible length: where its next frame begins is not known.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self._held = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[bytes]:
        """The frames that are whole with ``data``, without their length prefixes; none once the stream is lost."""
        if self.is_lost:
            return
        self._held += data
        start = 0
        while len(self._held) - start >= _PREFIX.size:
            size = int(_PREFIX.unpack_from(self._held, start)[0])
            if not 0 <= size <= MAX_FRAME_BYTES:
                self.is_lost = True
                self._held.clear()
                return
            end = start + _PREFIX.size + size
            if end > len(self._held):
                break
            yield bytes(self._held[start + _PREFIX.size : end])
            start = end
        del self._held[:start]
