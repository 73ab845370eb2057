"""Proves that a *directed* link is stalled, by a connection that was open before and by a new one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from harness.model import Link
from harness.target import Receipt
from harness.targets.addresses import Address
from harness.targets.link_probe import API_VERSIONS_REQUEST, Ping

PATIENCE_S = 0.15
"""How long a request in a stalled connection is waited for."""

_ANSWER_TIMEOUT_S = 5.0
_EXCHANGE_TIMEOUT_S = 5.0
_SIZE_BYTES = 4


class Witness(Protocol):
    """A connection that was open, and in which something has arrived, before the link was stalled."""

    def is_answered(self, within_s: float) -> bool:
        """Whether what was sent in it arrives; it is sent once, however often this is called."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def probe_stall(link: Link, witness: Witness | None, stalled_bytes: Callable[[], int], ping: Ping) -> Receipt:
    """Whether a request gets stuck in the witness's connection, and none in a new one.

    Args:
        link: the link.
        witness: None: there is none, so that nothing has been stalled.
        stalled_bytes: returns how many bytes are withheld now in connections from before.
        ping: sends a request in a new connection.
    """
    if witness is None:
        return Receipt(False, f"{link}: no connection has been stalled")
    if witness.is_answered(PATIENCE_S):
        return Receipt(False, f"{link}: a request in a connection from before was answered")
    held = stalled_bytes()
    if not held:
        return Receipt(False, f"{link}: a request in a connection from before got lost, but nothing is withheld")
    if ping(stalled_bytes) is not None:
        return Receipt(False, f"{link}: a request in a new connection got lost, too")
    return Receipt(True, f"{link}: {held} bytes are withheld in connections from before; a new one gets through")


def try_stalled(link: Link, witness: Witness | None) -> Receipt:
    """Whether what was sent in the witness's connection has arrived."""
    through = witness is None or witness.is_answered(_ANSWER_TIMEOUT_S)
    return Receipt(through, f"{link}: a request that was stalled {'got through' if through else 'is still stuck'}")


class ClientWitness:
    """A :class:`Witness` from a client to a node, or to the proxy before it.

    Args:
        address: of the node.
        nudge: makes the node at the other end send something to the client at an address; None: the client asks.

    Raises:
        OSError: the node does not answer.
    """

    def __init__(self, address: Address, nudge: Callable[[Address], bool] | None = None) -> None:
        self._end = socket.create_connection(address, _EXCHANGE_TIMEOUT_S)
        self._nudge = nudge
        self._asked = self._answered = False
        try:
            self._end.sendall(API_VERSIONS_REQUEST)
            self._receive(int.from_bytes(self._receive(_SIZE_BYTES)))
        except OSError:
            self.close()
            raise

    def is_answered(self, within_s: float) -> bool:
        """See :class:`Witness`. The end of the connection is an answer, too: it takes the same way."""
        if not self._asked:
            self._asked = True
            self._ask()
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
        """See :class:`Witness`."""
        self._end.close()

    def _ask(self) -> None:
        if self._nudge is not None:
            self._nudge(self._end.getsockname())
            return
        with suppress(OSError):  # the connection is closed, which the answer shows
            self._end.sendall(API_VERSIONS_REQUEST)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (more := self._end.recv(size - len(data))):
                raise ConnectionResetError("the connection has ended")
            data += more
        return data
