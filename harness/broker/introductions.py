"""Authentication between nodes: the first frame in each direction of a connection; see :mod:`.secret`.

A node closes a connection from another node's address that does not begin with that node's introduction, and one to
another node that does not begin with its reply, before it has read a request or a response. Clients connect from other
addresses, and introductions do not concern them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from time import monotonic_ns

from harness.broker.ports import Connection, FrameHandler
from harness.broker.secret import Secret
from harness.model import CLIENTS

Owner = Callable[[Connection], FrameHandler]
"""Makes the owner of a connection."""


def open_listener(address: tuple[str, int], backlog: int) -> tuple[socket.socket, int]:
    """A socket that listens at ``address``, and the ``CLOCK_MONOTONIC`` time at which it could not yet be reached.

    Every introduction over one of its connections is made later, and every earlier one was meant for another listener.

    Raises:
        OSError: the address is taken or not ours.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        since_ns = monotonic_ns()
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener, since_ns


class _FirstFrame:
    """Hands frames to ``owner`` once ``is_right`` has accepted the first one, and otherwise closes the connection."""

    def __init__(self, connection: Connection, owner: FrameHandler, is_right: Callable[[bytes], bool]) -> None:
        self._connection = connection
        self._owner = owner
        self._is_right = is_right
        self._is_known = False

    def on_frame(self, frame: memoryview) -> None:
        """See :class:`harness.broker.ports.FrameHandler`."""
        if self._is_known:
            self._owner.on_frame(frame)
        elif self._is_right(bytes(frame)):
            self._is_known = True
        else:
            self._connection.close()

    def on_lost(self) -> None:
        """See :class:`harness.broker.ports.FrameHandler`."""
        self._owner.on_lost()


def expecting(
    secret: Secret, name: str, since_ns: int, accept: Owner, introduced: Callable[[Connection], None]
) -> Owner:
    """``accept`` for a listener of node ``name`` that has listened since ``since_ns``: nodes must introduce themselves.

    ``introduced`` takes each connection of a node that has. The owner is made when the connection is, so that owners
    know in which order their connections came.
    """

    def accepted(connection: Connection) -> FrameHandler:
        peer = connection.peer

        def is_right(frame: bytes) -> bool:
            is_known = secret.knows(frame, peer, name, since_ns)
            if is_known:
                introduced(connection)
                connection.send([secret.reply(frame, peer, name)])
            return is_known

        owner = accept(connection)
        return owner if peer == CLIENTS else _FirstFrame(connection, owner, is_right)

    return accepted


def introducing(secret: Secret, name: str, peer: str, connected: Owner) -> Owner:
    """``connected`` for a connection that node ``name`` is about to open to ``peer``: an introduction comes first."""

    def opened(connection: Connection) -> FrameHandler:
        introduction = secret.introduction(name, peer)
        connection.send([introduction])
        return _FirstFrame(
            connection, connected(connection), lambda frame: secret.is_reply(frame, introduction, name, peer)
        )

    return opened
