"""One connection of the real network: frames in, frames out, and the bytes that are held in between."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from enum import Flag, auto
from typing import Protocol, cast

from harness.broker.ports import Buffer, Connection, FrameHandler
from harness.model import CLIENTS

MAX_FRAME_BYTES = 104_857_600
"""Kafka's ``socket.request.max.bytes``: a peer that announces a longer frame is disconnected."""

MAX_UNSENT_BYTES = 4 * 1_048_576
"""A connection with more unsent bytes than this is not read from until the peer has caught up."""

RECEIVE_BYTES = 65_536
"""How much is received at once, into a buffer that all connections share: only what is torn is kept for each."""

_RECEIVE_AT_LEAST_BYTES = 4_096
_SHRINK_ABOVE_BYTES = 32 * RECEIVE_BYTES
_NOTHING = memoryview(b"")
_JOIN_BELOW_BYTES = 131_072
_PREFIX = struct.Struct(">i")


class _Muted(Flag):
    """Why a stream is not being read; it is read again when every reason is gone."""

    NO = 0
    CUT = auto()
    UNSENT = auto()
    OWNER = auto()


class StreamOwner(Protocol):
    """What a stream needs of the network that it is a connection of.

    Attributes:
        shared_buffer: where every stream receives that has no torn frame of its own.
    """

    shared_buffer: memoryview

    def name_of(self, address: str) -> str:
        """The node that connects from this address, or ``clients``."""
        ...

    def soon(self, act: Callable[[], None]) -> None:
        """Call ``act`` once the callback that runs now has returned."""
        ...

    def admit(self, stream: Stream) -> None:
        """Take a new stream, unless there are too many."""
        ...

    def forget(self, stream: Stream) -> None:
        """Drop a stream that is lost."""
        ...

    def hold(self, grown: int) -> None:
        """Count ``grown`` bytes more (negative: fewer) that are held for a peer."""
        ...

    def is_cut_from(self, peer: str) -> bool:
        """Whether bytes from ``peer`` are not to be read."""
        ...

    def is_cut_to(self, peer: str) -> bool:
        """Whether bytes to ``peer`` are not to be sent."""
        ...


class Stream(asyncio.BufferedProtocol):
    """One connection: received into reused buffers, frames handed out as writable views of them."""

    def __init__(self, network: StreamOwner, accept: Callable[[Connection], FrameHandler], peer: str | None) -> None:
        self.peer = peer or CLIENTS
        self._peer_is_known = peer is not None
        self._network = network
        self._accept = accept
        self._view = _NOTHING
        self._start = 0
        self._end = 0
        self._muted = _Muted.NO
        self._stalled_in = self._stalled_out = False
        self._delivering = False
        self._withholding = False
        self._kernel_is_full = False
        self._closing = False
        self._unsent: list[Buffer] = []
        self._unsent_bytes = 0
        self._flush_is_due = False
        self._held_bytes = 0
        self._hung_up: Callable[[], None] | None = None

    # ------------------------------------------------------------------------------------ asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        if not self._peer_is_known:
            self.peer = self._network.name_of(transport.get_extra_info("peername")[0])
        # Not now: until 3.11.4 asyncio begins to read after this, whether reading has been paused or not. It comes
        # before anything is read, and before what is sent from now on leaves.
        self._network.soon(self._begin)
        self._handler = self._accept(self)
        self._network.admit(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See :class:`asyncio.BufferedProtocol`."""
        if not self._view:
            self._view = self._network.shared_buffer
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
        self._account()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._closing = True
        self._network.forget(self)
        self._unsent.clear()
        self._view = _NOTHING
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
        self._account()
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

    def watch_hangup(self, hung_up: Callable[[], None]) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._hung_up = hung_up

    @property
    def host(self) -> str:
        """See :class:`harness.broker.ports.Connection`."""
        return self.remote_address[0]

    @property
    def remote_address(self) -> tuple[str, int]:
        """Where the peer's end is."""
        host, port = self._transport.get_extra_info("peername")[:2]
        return str(host), int(port)

    # ------------------------------------------------------------------------------------ limits

    @property
    def is_accepted(self) -> bool:
        """Whether the peer has opened it."""
        return not self._peer_is_known

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._closing

    @property
    def held_bytes(self) -> int:
        """What is held for the peer beyond the buffer that every connection has."""
        return self._held_bytes

    @property
    def descriptor_to_watch(self) -> int:
        """The descriptor of a stream whose end its owner would not see because it has paused it; -1 otherwise."""
        if self._hung_up is None or _Muted.OWNER not in self._muted or _Muted.CUT in self._muted:
            return -1
        return int(self._transport.get_extra_info("socket").fileno())

    def hung_up(self) -> None:
        """The peer has hung up, and what it sent before has not been read."""
        report, self._hung_up = self._hung_up, None
        if report is not None:
            report()

    def refuse(self) -> None:
        """Close at once: nothing more is read, and nothing more is sent."""
        self._closing = True
        self._transport.abort()

    def _account(self) -> None:
        """Tell the network how much is held now."""
        held = max(len(self._view) - RECEIVE_BYTES, 0) + self._unsent_bytes
        if self._kernel_is_full:
            held += self._transport.get_write_buffer_size()
        if held != self._held_bytes:
            grown, self._held_bytes = held - self._held_bytes, held
            self._network.hold(grown)

    # ------------------------------------------------------------------------------------ gates

    def _begin(self) -> None:
        if self._muted and not self._transport.is_closing():
            self._transport.pause_reading()
        self.obey_gates()

    def obey_gates(self) -> None:
        """Hold or release bytes after the set of cut links changed."""
        self._withholding = self.peer == CLIENTS and (self._stalled_out or self._network.is_cut_to(CLIENTS))
        if self._stalled_in or self._network.is_cut_from(self.peer):
            self._mute(_Muted.CUT)
        else:
            self._unmute(_Muted.CUT)
        if not self._withholding:
            self._flush()
            if self._closing:
                self._hang_up()

    def stall_inward(self, *, stalled: bool) -> None:
        """Hold what the peer sends in this connection, or let it go on."""
        self._stalled_in = stalled
        self.obey_gates()

    def stall_outward(self, *, stalled: bool) -> None:
        """Hold what a client is sent in this connection, or let it go on."""
        self._stalled_out = stalled
        self.obey_gates()

    def stalled_bytes(self) -> tuple[int, int]:
        """Bytes that have arrived, and that were sent, and wait because their direction is stalled here."""
        return (
            self.inbound_bytes() if self._stalled_in else 0,
            self.outbound_bytes() if self._stalled_out else 0,
        )

    def inbound_bytes(self) -> int:
        """Bytes that have arrived and were not delivered, those in the socket's buffer included."""
        return self._end - self._start + self.unread_bytes()

    def unread_bytes(self) -> int:
        """Bytes that have arrived in the socket's buffer and were not read from it."""
        waiting = bytearray(4)
        descriptor = self._transport.get_extra_info("socket").fileno()
        if descriptor >= 0:
            fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
        return int.from_bytes(waiting, "little")

    def outbound_bytes(self) -> int:
        """Bytes that were sent and not given to the kernel."""
        return self._unsent_bytes

    # ------------------------------------------------------------------------------------ receiving

    def _deliver(self) -> None:
        """Hand out whole frames until the handler mutes the stream; keeps a torn one for later."""
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
        """Keep what is torn, with room to receive into behind it, in a buffer of its own; give back the shared one.

        The buffer doubles only as bytes arrive, so announcing a huge frame costs its sender as much as us.
        """
        rest, room = self._view[self._start : self._end], len(self._view)
        is_shared = self._view is self._network.shared_buffer
        if not rest:
            if is_shared or room > _SHRINK_ABOVE_BYTES:
                self._view = _NOTHING
            self._start = self._end = 0
            self._account()
        elif is_shared or room - self._end < _RECEIVE_AT_LEAST_BYTES:
            fits = not is_shared and 2 * len(rest) <= room
            view = self._view if fits else memoryview(bytearray(max(2 * len(rest), RECEIVE_BYTES)))
            view[: len(rest)] = rest
            self._view, self._start, self._end = view, 0, len(rest)
            self._account()

    def _mute(self, reason: _Muted) -> None:
        if not self._muted and not self._transport.is_closing():
            self._transport.pause_reading()
        self._muted |= reason

    def _unmute(self, reason: _Muted) -> None:
        if reason not in self._muted:
            return
        self._muted &= ~reason
        if not self._muted:
            # Later, not now: the caller may be handling a frame of this very stream.
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
        self._account()
        self._unmute(_Muted.UNSENT)

    def _hang_up(self) -> None:
        """Close for real; a peer that does not read its answers does not delay it."""
        if self._kernel_is_full:
            self._transport.abort()
        else:
            self._transport.close()
