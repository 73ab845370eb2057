"""Relays the bytes of a TCP connection over links that can be cut one direction at a time.

Each direction of a connection has a pump, which waits at the gate of its directed link. While a gate is shut its pumps
read and write nothing: bytes stay in the buffers until the sender blocks, as on a path that loses every packet. The end
of a stream, a reset and a new connection wait, too. When the gate opens they continue in order. A gate can also stall
its present connections: they wait at a gate of their own, and new ones pass. A relay may have a wire tap, which looks
at what was read before it is forwarded.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harness.broker.wire_tap import StreamTap, WireTap
from harness.model import Link
from harness.targets.addresses import Address

_CHUNK_BYTES = 1 << 16
_INT = struct.Struct("i")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Gate:
    """One directed link: open, or shut while it is cut."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.pumps: set[Pump] = set()
        self._opened = asyncio.Event()
        self._opened.set()

    @property
    def is_open(self) -> bool:
        """Whether bytes pass."""
        return self._opened.is_set()

    async def passes(self) -> None:
        """Wait until bytes pass."""
        await self._opened.wait()

    def open(self) -> None:
        """Let bytes pass."""
        self._opened.set()

    def shut(self) -> None:
        """Let none pass."""
        self._opened.clear()

    def held_bytes(self) -> int:
        """How many bytes wait at it; 0 while it is open."""
        return 0 if self.is_open else sum(pump.held_bytes() for pump in self.pumps)

    def stalled(self) -> Gate:
        """A new shut gate of the same link, at which the present connections wait."""
        apart = Gate(self.link)
        apart.shut()
        apart.take_over(self)
        return apart

    def take_over(self, other: Gate) -> None:
        """Move the connections of ``other`` to this gate."""
        for pump in other.pumps:
            pump.gate = self
        self.pumps |= other.pumps
        other.pumps.clear()


class Pump:
    """One direction of one connection: from ``source`` through the gate; ``tap`` is given what is about to pass."""

    def __init__(self, gate: Gate, source: socket.socket, tap: StreamTap | None = None) -> None:
        self.gate = gate
        self._source = source
        self._tap = tap
        self._chunk = memoryview(b"")

    def held_bytes(self) -> int:
        """How many bytes it has read and not written."""
        with suppress(OSError):
            return len(self._chunk) + int(_INT.unpack(fcntl.ioctl(self._source, termios.FIONREAD, bytes(4)))[0])
        return len(self._chunk)

    async def run(self, sink: socket.socket) -> None:
        """Forward all bytes, and then the end of the stream.

        Raises:
            OSError: the source has broken the connection off.
        """
        while chunk := await self._read():
            if self._tap is not None:
                self._tap.feed(chunk)
            self._chunk = memoryview(chunk)
            while self._chunk:
                await self._write(sink)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    async def _read(self) -> bytes:
        while True:
            await _ready(asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader, self._source)
            if not self.gate.is_open:
                await self._passes()
                continue
            with suppress(BlockingIOError):
                return self._source.recv(_CHUNK_BYTES)

    async def _passes(self) -> None:
        """Wait until bytes pass the gate, which may become another one meanwhile."""
        while not self.gate.is_open:
            await self.gate.passes()

    async def _write(self, sink: socket.socket) -> None:
        await self._passes()
        try:
            self._chunk = self._chunk[sink.send(self._chunk) :]
        except BlockingIOError:
            await _ready(asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer, sink)
        except OSError:  # the far end has reset the connection; the pump of the other direction raises
            self._chunk = memoryview(b"")


class Relay:
    """Forwards connections to one destination.

    Args:
        there: the gate towards the destination; ``back``: the other direction.
        leads_to: the destination.
        dials_from: the source host of the connections to it.
        tap: the wire tap of the destination; None: there is none.
    """

    def __init__(self, there: Gate, back: Gate, leads_to: Address, dials_from: str, tap: WireTap | None = None) -> None:
        self._tap = tap
        self._there = there
        self._back = back
        self._leads_to = leads_to
        self._dials_from = dials_from

    async def serve(self, near: socket.socket, *, probes_back: bool) -> None:
        """Forward the connection ``near``, and close both ends when it is over.

        One that ``probes_back`` tests the way back only: its way there ignores the gate.
        """
        near.setblocking(False)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with near, socket.socket() as far:
            far.setblocking(False)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked, answered = self._taps()
            there = Pump(Gate(self._there.link) if probes_back else self._there, near, asked)
            back = Pump(self._back, far, answered)
            for pump in (there, back):
                pump.gate.pumps.add(pump)
            try:
                await self._lead(there, back, near, far)
            finally:
                for pump in (there, back):
                    pump.gate.pumps.discard(pump)

    def _taps(self) -> tuple[StreamTap, StreamTap] | tuple[None, None]:
        if self._tap is None:
            return None, None
        one = self._tap.connection(self._there.link.source)
        return StreamTap(one.requested, one.lost), StreamTap(one.answered, one.lost)

    async def _lead(self, there: Pump, back: Pump, near: socket.socket, far: socket.socket) -> None:
        try:
            await there.gate.passes()
            far.bind((self._dials_from, 0))
            await asyncio.get_running_loop().sock_connect(far, self._leads_to)
        except OSError:
            await back.gate.passes()
            _break_off(near)
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(there.run(far))
                both.create_task(back.run(near))
        except* OSError:
            _break_off(near)
            _break_off(far)


def _break_off(end: socket.socket) -> None:
    """Make closing it a reset."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


async def _ready(watch: Callable[..., Any], forget: Callable[[socket.socket], bool], end: socket.socket) -> None:
    """Wait until there is something to read, or room to write."""
    seen = asyncio.get_running_loop().create_future()
    watch(end, lambda: None if seen.done() else seen.set_result(None))
    try:
        await seen
    finally:
        forget(end)
