"""Proof that one *directed* link is cut: a probe sent over it does not get through, and its bytes pile up.

Silence alone would not do: where the probe is a request, the reverse link may have swallowed the answer.
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
"""Sends a probe on a fresh connection. None: it got through; else what the given function said, asked while the
connection was still open and waiting."""


def probe_link(link: Link, held_bytes: Callable[[], int], ping: Ping) -> Receipt:
    """Whether ``link`` is cut; ``held_bytes`` says how many bytes are withheld on it now."""
    before = held_bytes()
    after = ping(held_bytes)
    if after is None:
        return Receipt(False, f"{link}: a probe got through")
    if after > before:
        return Receipt(True, f"{link}: a probe got lost, and {after - before} more bytes are withheld")
    return Receipt(False, f"{link}: a probe got lost, but nothing is withheld on this link")


def try_link(link: Link, held_bytes: Callable[[], int], ping: Ping) -> Receipt:
    """Whether ``link`` carries bytes: other than :func:`probe_link`, a probe that got lost proves nothing here."""
    through = ping(held_bytes) is None
    return Receipt(through, f"{link}: a probe {'got through' if through else 'got lost'}")


def ping_as_client(listener: Address, timeout_s: float, held_bytes: Callable[[], int]) -> int | None:
    """Ask the broker at ``listener`` for its API versions, as any client may; a :data:`Ping`."""
    with socket.socket() as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(listener)
            connection.sendall(API_VERSIONS_REQUEST)
            if connection.recv(1):
                return None
        except OSError:
            pass  # refused, reset or silent: what is withheld tells which
        return held_bytes()


def nudge_as_client(
    listener: Address, timeout_s: float, held_bytes: Callable[[], int], nudge: Callable[[Address], bool]
) -> int | None:
    """Have the broker at ``listener`` send a frame unasked; a :data:`Ping` that needs nothing from the reverse link.

    ``nudge`` asks the broker, over its control channel, to send one to the client at the given address; it says
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
            pass  # refused, reset or silent: what is withheld tells which
        return held_bytes()
