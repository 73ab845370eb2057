"""The real network: asyncio streams of length-prefixed frames, with a gate on every directed link.

A cut link ``X->Y`` is enforced where its bytes arrive: Y stops reading whatever comes from X, so the bytes stay
in Y's socket buffer, in order, and are delivered after mending if the connection still lives. The far end of
``Y->clients`` is not ours, so that link is enforced where its bytes leave: frames are withheld and sent in order
after mending. A closed connection is not noticed over a cut link either. Bytes that the kernel had taken for a
client before the cut are in flight and may still arrive. A stalled link is cut in those connections alone that there
are when it is stalled.

What peers may occupy is limited: the number of their connections (as Kafka's ``max.connections``), and the bytes
that are held for all of them, received and not yet whole frames, or sent and not yet taken. Beyond the first a new
connection is closed, beyond the second the connection for which most is held; either is a line in the log. Connections
from a node's address that have not introduced themselves count apart; see :mod:`.unproven`.

Nothing else in the broker knows asyncio. Exceptions that escape a frame handler or a timer reach the loop's
exception handler, which ends the process: they are bugs.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping

from harness.broker.introductions import expecting, introducing, open_listener
from harness.broker.ports import Connection, FrameHandler, Timer
from harness.broker.secret import Secret
from harness.broker.stream import RECEIVE_BYTES, Stream
from harness.broker.unproven import Unproven
from harness.model import CLIENTS, Link

MAX_CLIENT_CONNECTIONS = 1_000
"""Further clients are disconnected at once, as Kafka does beyond ``max.connections.per.ip``."""

MAX_NODE_CONNECTIONS = 100
"""Of one node, which have introduced themselves: a node opens a few."""

MAX_HELD_BYTES = 512 * 1_048_576
"""What may be held for all connections, in all: Kafka's ``queued.max.request.bytes``, and answers count, too."""

HANGUP_INTERVAL_S = 1.0
"""How often connections that are not read from are looked at, whether their peers have hung up."""

CONNECT_TIMEOUT_S = 1.0
"""How long the kernel may take to connect: a stopped process stops accepting once its backlog is full."""

_BACKLOG = 512
_NUDGE = bytes(4)
_HUNG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)
"""What ``poll`` calls the end of a stream, without reading up to it; only Linux tells."""


class AsyncioNetwork:
    """:class:`harness.broker.ports.Network` on the running asyncio loop.

    Args:
        name: the node's own name as the end of a link.
        address: the node's own IP address; connections are made from it, and peers authenticate the caller.
        names: which link end each IP address of the cluster is; others are clients.
        secret: a peer with one of those addresses must know it.
        complain: takes a sentence about a peer that was disconnected because it takes too much.

    Attributes:
        streams: every connection, in the order of their making.
        shared_buffer: what is received first, from any connection.
        bytes_held: what is held for all of them, beyond 64 KiB for what is torn of each.
    """

    def __init__(
        self,
        name: str,
        address: str,
        names: Mapping[str, str],
        secret: Secret,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.streams: dict[Stream, None] = {}
        self.shared_buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._complain = complain
        self._accepted: defaultdict[str, set[Stream]] = defaultdict(set)
        self.bytes_held = 0
        self._name = name
        self._address = address
        self._names = names
        self._secret = secret
        self._cut: frozenset[Link] = frozenset()
        self._loop = asyncio.get_running_loop()
        self._unproven = Unproven(self.call_later, self.is_cut_from, complain)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    # ------------------------------------------------------------------------------------ ports.Network

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        """See :class:`harness.broker.ports.Network`."""
        listener, since_ns = open_listener(address, _BACKLOG)
        expected = expecting(self._secret, self._name, since_ns, accept, self._introduced)
        self._start(self._serve(listener, expected))
        self._start(self._look_for_hangups())

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

    def stall(self, links: Iterable[Link], *, stalled: bool) -> None:
        """Let no byte pass on these links in the connections of now; or let what was stalled on them go on."""
        wanted = frozenset(links)
        for stream in list(self.streams):
            if Link(stream.peer, self._name) in wanted:
                stream.stall_inward(stalled=stalled)
            if Link(self._name, stream.peer) in wanted:
                stream.stall_outward(stalled=stalled)

    def stalled_bytes(self) -> dict[str, int]:
        """Bytes held back now on each stalled link: ``{"2->0": 123}``."""
        held: defaultdict[str, int] = defaultdict(int)
        for stream in self.streams:
            inward, outward = stream.stalled_bytes()
            held[str(Link(stream.peer, self._name))] += inward
            held[str(Link(self._name, stream.peer))] += outward
        return {link: size for link, size in sorted(held.items()) if size}

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
        """Send an unsolicited frame to the peer at ``address``; False when it has no connection here.

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

    # ------------------------------------------------------------------------------------ limits

    def admit(self, stream: Stream) -> None:
        """Count a new connection; disconnect the peer if it has opened one too many."""
        self.streams[stream] = None
        if stream.is_accepted:
            if stream.peer == CLIENTS:
                self._count(stream, MAX_CLIENT_CONNECTIONS)
            else:
                self._unproven.add(stream)

    def _introduced(self, connection: Connection) -> None:
        """Count a connection that is proven to be a node's."""
        assert isinstance(connection, Stream)
        self._unproven.remove(connection)
        self._count(connection, MAX_NODE_CONNECTIONS)

    def _count(self, stream: Stream, most: int) -> None:
        self._accepted[stream.peer].add(stream)
        if len(self._accepted[stream.peer]) > most:
            self._complain(f"Disconnected {stream.peer}: {most} other connections are open.")
            stream.refuse()

    def forget(self, stream: Stream) -> None:
        """A connection is lost, and frees what it held."""
        del self.streams[stream]
        self._accepted[stream.peer].discard(stream)
        self._unproven.remove(stream)
        self.bytes_held -= stream.held_bytes

    def hold(self, grown: int) -> None:
        """``grown`` more bytes are held than before; disconnect the peer with the most when it is too much."""
        self.bytes_held += grown
        if grown > 0 and self.bytes_held > MAX_HELD_BYTES:
            accepted = [stream for stream in self.streams if stream.is_accepted and not stream.is_closing]
            largest = max(accepted, key=lambda stream: stream.held_bytes, default=None)
            if largest is not None:
                self._complain(
                    f"Disconnected {largest.peer}: {self.bytes_held} bytes are held for all connections, "
                    f"{largest.held_bytes} for this one; the limit is {MAX_HELD_BYTES}."
                )
                largest.refuse()

    async def _look_for_hangups(self) -> None:
        """Tell the owners of paused connections whose peers have hung up: they would find out when they read on."""
        while True:
            await asyncio.sleep(HANGUP_INTERVAL_S)
            paused = {stream.descriptor_to_watch: stream for stream in self.streams}
            paused.pop(-1, None)
            if paused:
                poll = select.poll()
                for descriptor in paused:
                    poll.register(descriptor, _HUNG_UP)
                for descriptor, _ in poll.poll(0):
                    paused[descriptor].hung_up()

    # ------------------------------------------------------------------------------------ life

    def soon(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` after everything that is already due."""
        self._loop.call_soon(callback)

    async def close(self) -> None:
        """Stop listening, send what may be sent, close every stream; what is begun from now on does nothing."""
        self._is_closed = True
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
        if self._is_closed:  # a task that outlives its loop ends the process as a bug would
            coroutine.close()
            return
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
