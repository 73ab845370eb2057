"""Proves that one *directed* link is cut: a probe over it does not arrive, and its bytes are held back.

A missing answer alone proves nothing: the reverse link may have held it back.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from harness.model import Link
from harness.target import Receipt
from harness.targets.addresses import Address

_POLL_S = 0.005
API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""A whole ApiVersions request, version 0, with no client id."""


Ping = Callable[[Callable[[], int]], int | None]
"""Sends a probe on a new connection. None: it arrived; else the result of the given function, called while the
connection was still open."""


def probe_link(link: Link, held_bytes: Callable[[], int], ping: Ping) -> Receipt:
    """Whether ``link`` is cut; ``held_bytes`` returns how many bytes are held back on it now."""
    before = held_bytes()
    after = ping(held_bytes)
    if after is None:
        return Receipt(False, f"{link}: a probe got through")
    if after > before:
        return Receipt(True, f"{link}: a probe got lost, and {after - before} more bytes are withheld")
    return Receipt(False, f"{link}: a probe got lost, but nothing is withheld on this link")


def try_link(link: Link, held_bytes: Callable[[], int], ping: Ping) -> Receipt:
    """Whether ``link`` carries bytes; other than in :func:`probe_link`, a lost probe proves nothing."""
    through = ping(held_bytes) is None
    return Receipt(through, f"{link}: a probe {'got through' if through else 'got lost'}")


def ping_as_client(listener: Address, timeout_s: float, held_bytes: Callable[[], int]) -> int | None:
    """Send an ApiVersions request to the broker at ``listener``; a :data:`Ping`."""
    with socket.socket() as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(listener)
            connection.sendall(API_VERSIONS_REQUEST)
            if connection.recv(1):
                return None
        except OSError:
            pass  # refused, reset or silent: the held bytes show which
        return held_bytes()


def nudge_as_client(
    listener: Address, timeout_s: float, held_bytes: Callable[[], int], nudge: Callable[[Address], bool]
) -> int | None:
    """Make the broker at ``listener`` send a frame without a request; a :data:`Ping` that needs no reverse link.

    ``nudge`` asks the broker, over its control channel, to send one to the client at the given address; it returns
    whether the broker has accepted that client's connection yet.
    """
    with socket.socket() as connection:
        connection.settimeout(timeout_s)
        deadline = time.monotonic() + timeout_s
        try:
            connection.connect(listener)
            while not nudge(connection.getsockname()) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            if connection.recv(1):
                return None
        except OSError:
            pass  # refused, reset or silent: the held bytes show which
        return held_bytes()
