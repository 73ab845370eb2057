"""A probe connection that was open before a link was stalled, and shows whether it still is."""

from __future__ import annotations

import socket
from contextlib import suppress

from harness.targets.addresses import Address
from harness.targets.link_probe import API_VERSIONS_REQUEST

_EXCHANGE_TIMEOUT_S = 5.0
_SIZE_BYTES = 4


class Witness:
    """A connection through a proxy in which a request has been answered, so that it reaches the node.

    Args:
        address: of the proxy.

    Raises:
        OSError: the node does not answer.
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
        """Whether the answer to a request arrives; the request is sent once, however often this is called.

        The end of the connection is an answer, too: it takes the same way.
        """
        with suppress(OSError):  # the connection is closed, which the answer shows
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
