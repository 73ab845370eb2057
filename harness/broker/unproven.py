"""Limits connections from nodes' addresses that are not authenticated yet; see :mod:`.introductions`.

Any user of the machine can open one and send nothing. So it is closed after a while, and when too many are open, each
new one closes the oldest of which nothing waits to be read: a node begins a connection with its introduction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from harness.broker.ports import Timer
from harness.broker.stream import Stream

MAX_UNPROVEN_CONNECTIONS = 100
"""From the address of one node."""

INTRODUCTION_TIMEOUT_S = 2.0
"""How long a connection may stay without an introduction; while the link from its peer is cut, none can arrive."""


class Unproven:
    """Keeps account of them, for each node by age.

    Args:
        call_later: see :meth:`harness.broker.ports.Network.call_later`.
        is_cut_from: whether bytes from a node are held.
        complain: takes a sentence about a connection that was closed.
    """

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], Timer],
        is_cut_from: Callable[[str], bool],
        complain: Callable[[str], None],
    ) -> None:
        self._call_later = call_later
        self._is_cut_from = is_cut_from
        self._complain = complain
        self._timers: defaultdict[str, dict[Stream, Timer]] = defaultdict(dict)

    def add(self, stream: Stream) -> None:
        """Give a new connection its time; close an older one if it is one too many."""
        older = self._timers[stream.peer]
        if len(older) >= MAX_UNPROVEN_CONNECTIONS:
            silent = next((one for one in older if not one.unread_bytes()), next(iter(older)))
            self._refuse(silent, f"{MAX_UNPROVEN_CONNECTIONS} others have not, either")
        self._await(stream)

    def remove(self, stream: Stream) -> None:
        """A connection has introduced itself, or is lost; harmless for any other."""
        if (timer := self._timers[stream.peer].pop(stream, None)) is not None:
            timer.cancel()

    def _await(self, stream: Stream) -> None:
        timer = self._call_later(INTRODUCTION_TIMEOUT_S, lambda: self._expire(stream))
        self._timers[stream.peer][stream] = timer

    def _expire(self, stream: Stream) -> None:
        """Close the connection unless it is not its peer's fault that nothing was read; that keeps its age, too."""
        if self._is_cut_from(stream.peer) or stream.unread_bytes():
            self._await(stream)
        else:
            self._refuse(stream, f"it had {INTRODUCTION_TIMEOUT_S:g} s for that")

    def _refuse(self, stream: Stream, why: str) -> None:
        self.remove(stream)
        self._complain(f"Disconnected a peer at the address of node {stream.peer} without an introduction: {why}.")
        stream.refuse()
