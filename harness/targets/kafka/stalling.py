"""A connection that was there before others were stalled, and by which one sees whether they are."""

from __future__ import annotations

import socket
from contextlib import suppress

from harness.targets.addresses import Address
from harness.targets.link_probe import API_VERSIONS_REQUEST

_EXCHANGE_TIMEOUT_S = 5.0
_SIZE_BYTES = 4


class Witness:
    """A connection through a proxy in which a request has been answered, so that it leads all the way.

    Args:
        address: of the proxy.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(self, address: Address) -> None:
        self._end = socket.create_connection(address, _EXCHANGE_TIMEOUT_S)
        self._asked = self._answered = False
        try:
            self._end.sendall(API_VERSIONS_REQUEST)
            self._receive(int.from_bytes(self._receive(_SIZE_BYTES)))
        except OSError:
            self.close()
            raise

    def is_answered(self, within_s: float) -> bool:
        """Whether a request gets through, and its answer back; it is sent once, however often one asks.

        An end of the connection is an answer, too: it comes by the same way.
        """
        with suppress(OSError):  # it has been broken off, which the answer shows
            if not self._asked:
                self._asked = True
                self._end.sendall(API_VERSIONS_REQUEST)
        if not self._answered:
            self._end.settimeout(within_s)
            try:
                self._end.recv(1)
                self._answered = True
            except TimeoutError:
                pass
            except OSError:
                self._answered = True
        return self._answered

    def close(self) -> None:
        """End the connection."""
        self._end.close()

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (more := self._end.recv(size - len(data))):
                raise ConnectionResetError("the connection has ended")
            data += more
        return data
