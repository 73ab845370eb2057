"""The real network: asyncio streams of length-prefixed frames, with a gate on every directed link.

A cut link ``X->Y`` is enforced where its bytes arrive: Y stops reading whatever comes from X, so the bytes stay
in Y's socket buffer, in order, and are delivered after mending if the connection still lives. The far end of
``Y->clients`` is not ours, so that link is enforced where its bytes leave: frames are withheld and sent in order
after mending. A closed connection is not noticed over a cut link either. Bytes that the kernel had taken for a
client before the cut are in flight and may still arrive.

Nothing else in the broker knows asyncio. Exceptions that escape a frame handler or a timer reach the loop's
exception handler, which ends the process: they are bugs.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import Flag, auto
from typing import cast

from harness.broker.introductions import expecting, introducing
from harness.broker.ports import Buffer, Connection, FrameHandler, Timer
from harness.broker.secret import Secret
from harness.model import CLIENTS, Link

MAX_FRAME_BYTES = 104_857_600
"""Kafka's ``socket.request.max.bytes``: a peer that announces a longer frame is disconnected."""

MAX_UNSENT_BYTES = 4 * 1_048_576
"""A connection with more unsent bytes than this is not read from until the peer has caught up."""

CONNECT_TIMEOUT_S = 1.0
"""How long the kernel may take to connect: a stopped process stops accepting once its backlog is full."""

_RECEIVE_BYTES = 65_536
_RECEIVE_AT_LEAST_BYTES = 4_096
_SHRINK_ABOVE_BYTES = 32 * _RECEIVE_BYTES
_BACKLOG = 512
_JOIN_BELOW_BYTES = 131_072
_NUDGE = bytes(4)
_PREFIX = struct.Struct(">i")


class _Muted(Flag):
    """Why a stream is not being read; it is read again when every reason is gone."""

    NO = 0
    CUT = auto()
    UNSENT = auto()
    OWNER = auto()


class Stream(asyncio.BufferedProtocol):
    """One connection: received into one reused buffer, frames handed out as writable views of it."""

    def __init__(self, network: AsyncioNetwork, accept: Callable[[Connection], FrameHandler], peer: str | None) -> None:
        self.peer = peer or CLIENTS
        self._peer_is_known = peer is not None
        self._network = network
        self._accept = accept
        self._view = memoryview(bytearray(_RECEIVE_BYTES))
        self._start = 0
        self._end = 0
        self._muted = _Muted.NO
        self._delivering = False
        self._withholding = False
        self._kernel_is_full = False
        self._closing = False
        self._unsent: list[Buffer] = []
        self._unsent_bytes = 0
        self._flush_is_due = False

    # ------------------------------------------------------------------------------------ asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        if not self._peer_is_known:
            self.peer = self._network.name_of(transport.get_extra_info("peername")[0])
        self._network.streams[self] = None
        # Not now: until 3.11.4 asyncio begins to read after this, whether reading has been paused or not. It comes
        # before anything is read, and before what is sent from now on leaves.
        self._network.soon(self.obey_gates)
        self._handler = self._accept(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See :class:`asyncio.BufferedProtocol`."""
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._end += nbytes
        self._deliver()

    def pause_writing(self) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._kernel_is_full = True

    def resume_writing(self) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._kernel_is_full = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._closing = True
        self._network.streams.pop(self, None)
        self._handler.on_lost()

    # ------------------------------------------------------------------------------------ ports.Connection

    def send(self, segments: list[Buffer]) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        if self._closing:
            return
        size = sum(map(len, segments))
        self._unsent.append(_PREFIX.pack(size))
        self._unsent += segments
        self._unsent_bytes += 4 + size
        if not self._flush_is_due:
            self._flush_is_due = True
            self._network.soon(self._flush)
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._mute(_Muted.UNSENT)

    def close(self) -> None:
        """See :class:`harness.broker.ports.Connection`. Over a cut link to a client, it closes when mended."""
        if self._closing:
            return
        self._flush()
        self._closing = True
        if not self._withholding:
            self._hang_up()

    def pause(self) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._mute(_Muted.OWNER)

    def resume(self) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._unmute(_Muted.OWNER)

    @property
    def remote_address(self) -> tuple[str, int]:
        """Where the peer's end is."""
        host, port = self._transport.get_extra_info("peername")[:2]
        return str(host), int(port)

    # ------------------------------------------------------------------------------------ gates

    def obey_gates(self) -> None:
        """Hold or release bytes after the set of cut links changed."""
        self._withholding = self.peer == CLIENTS and self._network.is_cut_to(CLIENTS)
        if self._network.is_cut_from(self.peer):
            self._mute(_Muted.CUT)
        else:
            self._unmute(_Muted.CUT)
        if not self._withholding:
            self._flush()
            if self._closing:
                self._hang_up()

    def inbound_bytes(self) -> int:
        """Bytes that have arrived and were not delivered, those in the socket's buffer included."""
        waiting = bytearray(4)
        descriptor = self._transport.get_extra_info("socket").fileno()
        if descriptor >= 0:
            fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
        return self._end - self._start + int.from_bytes(waiting, "little")

    def outbound_bytes(self) -> int:
        """Bytes that were sent and not given to the kernel."""
        return self._unsent_bytes

    # ------------------------------------------------------------------------------------ receiving

    def _deliver(self) -> None:
        """Hand out whole frames while nobody objects; keeps a torn one for later."""
        if self._delivering:
            return
        self._delivering = True
        while not self._muted and not self._closing:
            body = self._start + 4
            if body > self._end:
                break
            size = _PREFIX.unpack_from(self._view, self._start)[0]
            if not 0 < size <= MAX_FRAME_BYTES:
                self.close()
                break
            if body + size > self._end:
                break
            self._start = body + size
            self._handler.on_frame(self._view[body : body + size])
        self._delivering = False
        self._make_room()

    def _make_room(self) -> None:
        """Keep room to receive into: move the torn frame to the front, of a larger buffer when it needs one.

        The buffer doubles only as bytes arrive, so announcing a huge frame costs its sender as much as us.
        """
        rest = self._view[self._start : self._end]
        if not rest:
            self._start = self._end = 0
            if len(self._view) > _SHRINK_ABOVE_BYTES:
                self._view = memoryview(bytearray(_RECEIVE_BYTES))
        elif len(self._view) - self._end < _RECEIVE_AT_LEAST_BYTES:
            grown = self._view if 2 * len(rest) <= len(self._view) else memoryview(bytearray(2 * len(self._view)))
            grown[: len(rest)] = rest
            self._view, self._start, self._end = grown, 0, len(rest)

    def _mute(self, reason: _Muted) -> None:
        if not self._muted and not self._transport.is_closing():
            self._transport.pause_reading()
        self._muted |= reason

    def _unmute(self, reason: _Muted) -> None:
        if reason not in self._muted:
            return
        self._muted &= ~reason
        if not self._muted:
            # Later, not now: whoever unmutes may be in the middle of handling a frame of this very stream.
            self._network.soon(self._read_again)

    def _read_again(self) -> None:
        if not self._muted and not self._transport.is_closing():
            self._deliver()
        if not self._muted and not self._transport.is_closing():
            self._transport.resume_reading()

    # ------------------------------------------------------------------------------------ sending

    def _flush(self) -> None:
        """Give the kernel what was queued, unless the link is cut or the kernel is still busy with the last lot."""
        self._flush_is_due = False
        if self._withholding or self._kernel_is_full or not self._unsent or self._transport.is_closing():
            return
        segments, size = self._unsent, self._unsent_bytes
        self._unsent, self._unsent_bytes = [], 0
        for part in [b"".join(segments)] if size < _JOIN_BELOW_BYTES else segments:
            if len(part):
                self._transport.write(part)
        self._unmute(_Muted.UNSENT)

    def _hang_up(self) -> None:
        """Close for real; a peer that does not read what it asked for does not delay it."""
        if self._kernel_is_full:
            self._transport.abort()
        else:
            self._transport.close()


class AsyncioNetwork:
    """:class:`harness.broker.ports.Network` on the running asyncio loop.

    Args:
        name: the node's own name as the end of a link.
        address: the node's own IP address; connections are made from it, and peers ask who calls for a proof.
        names: which link end each IP address of the cluster is; others are clients.
        secret: what who speaks from one of those addresses must know.
    """

    def __init__(self, name: str, address: str, names: Mapping[str, str], secret: Secret) -> None:
        self.streams: dict[Stream, None] = {}
        self._name = name
        self._address = address
        self._names = names
        self._secret = secret
        self._cut: frozenset[Link] = frozenset()
        self._loop = asyncio.get_running_loop()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------ ports.Network

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        """See :class:`harness.broker.ports.Network`."""
        listener = socket.create_server(address, backlog=_BACKLOG)
        expected = expecting(self._secret, self._name, time.monotonic_ns(), accept)
        self._start(self._serve(listener, expected))

    def connect(
        self,
        address: tuple[str, int],
        peer: str,
        connected: Callable[[Connection], FrameHandler],
        failed: Callable[[], None],
    ) -> None:
        """See :class:`harness.broker.ports.Network`."""
        introduced = introducing(self._secret, self._name, peer, connected)
        self._start(self._open(address, peer, introduced, failed))

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """See :class:`harness.broker.ports.Network`."""
        return self._loop.call_later(delay_s, callback)

    # ------------------------------------------------------------------------------------ gates

    @property
    def cut_links(self) -> tuple[Link, ...]:
        """The cut links of this node, sorted."""
        return tuple(sorted(self._cut))

    def cut(self, links: Iterable[Link]) -> None:
        """Make ``links`` the complete set of cut links; what is no longer among them is mended."""
        self._cut = frozenset(links)
        for stream in list(self.streams):
            stream.obey_gates()

    def is_cut_from(self, peer: str) -> bool:
        """Whether bytes from ``peer`` are held."""
        return Link(peer, self._name) in self._cut

    def is_cut_to(self, peer: str) -> bool:
        """Whether bytes to ``peer`` are held."""
        return Link(self._name, peer) in self._cut

    def held_bytes(self) -> dict[str, int]:
        """Bytes held back now on each cut link: ``{"2->0": 123}``."""
        held = {str(link): 0 for link in self.cut_links}
        for stream in self.streams:
            for link, size in (
                (Link(stream.peer, self._name), stream.inbound_bytes),
                (Link(self._name, stream.peer), stream.outbound_bytes),
            ):
                if link in self._cut:
                    held[str(link)] += size()
        return held

    def nudge(self, address: tuple[str, int]) -> bool:
        """Send a frame that nobody asked for to the peer at ``address``; False when it has no connection here.

        The proof of a link to clients: it needs nothing from the reverse link, which may be cut, too.
        """
        for stream in self.streams:
            if stream.remote_address == address:
                stream.send([_NUDGE])
                return True
        return False

    def name_of(self, address: str) -> str:
        """The link end behind an IP address."""
        return self._names.get(address, CLIENTS)

    # ------------------------------------------------------------------------------------ life

    def soon(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` after everything that is already due."""
        self._loop.call_soon(callback)

    async def close(self) -> None:
        """Stop listening, send what may be sent, close every stream."""
        opening = list(self._tasks)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for server in self._servers:
            server.close()
        for stream in list(self.streams):
            stream.close()
        await asyncio.sleep(0)

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "network task failed", "exception": error})

    async def _serve(self, listener: socket.socket, accept: Callable[[Connection], FrameHandler]) -> None:
        server = await self._loop.create_server(lambda: Stream(self, accept, None), sock=listener, backlog=_BACKLOG)
        self._servers.append(server)

    async def _open(
        self,
        address: tuple[str, int],
        peer: str,
        connected: Callable[[Connection], FrameHandler],
        failed: Callable[[], None],
    ) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._loop.create_connection(
                    lambda: Stream(self, connected, peer), *address, local_addr=(self._address, 0)
                )
        except (OSError, TimeoutError):
            failed()
