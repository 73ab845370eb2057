"""The network port in virtual time, with the same gates on directed links as the real one.

A cut link ``X->Y`` is enforced where its frames arrive: they wait at Y, in order, the end of the connection among
them, and are handed over after mending. ``Y->clients`` is enforced where its frames leave, as in
:mod:`harness.broker.network`: they wait at Y, and die with it. A stalled link is cut in those connections alone that
there are when it is stalled. Connecting is the business of two kernels and works over a cut link. What was handed to a
connection before its node died still arrives, and then its end.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from harness.broker.ports import Buffer, Connection, FrameHandler, Timer
from harness.model import CLIENTS, Link
from harness.simulation.stack.links import Address
from harness.simulation.stack.scheduler import Act, VirtualScheduler

Accept = Callable[[Connection], FrameHandler]

_PREFIX_BYTES = 4
_NUDGE = bytes(4)


class Stream:
    """One end of a connection; implements :class:`harness.broker.ports.Connection`.

    Attributes:
        far: the other end.
        held: whether what arrives is held because the link from the peer is cut.
    """

    far: Stream

    def __init__(self, network: SimulatedNetwork, peer: str) -> None:
        self.peer = peer
        self.held = False
        self._stalled: frozenset[Link] = frozenset()
        self._network = network
        self._world = network.world
        self._inward = Link(peer, network.name)
        self._outward = Link(network.name, peer)
        self._handler: FrameHandler | None = None
        self._hung_up: Callable[[], None] | None = None
        self._inbox: deque[bytearray | None] = deque()
        self._outbox: list[bytearray] = []
        self._withholding = False
        self._owner_objects = False
        self._closing = False
        self._lost = False
        self._severed = False
        self._delivering = False
        self._last_arrival_ns = 0
        network.streams[self] = None
        self.obey_gates()

    # ------------------------------------------------------------------------------------ ports.Connection

    @property
    def host(self) -> str:
        """See :class:`harness.broker.ports.Connection`: in a simulation, the name of the other end."""
        return self.peer

    def send(self, segments: list[Buffer]) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        if self._closing:
            return
        frame = bytearray().join(segments)
        if self._withholding:
            self._outbox.append(frame)
        else:
            self._transmit(frame)

    def close(self) -> None:
        """See :class:`harness.broker.ports.Connection`. Over a cut link to a client, it closes when mended."""
        if self._closing:
            return
        self._closing = True
        if not self._withholding:
            self._hang_up()

    def pause(self) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._owner_objects = True

    def resume(self) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._owner_objects = False
        self._deliver_soon()

    def watch_hangup(self, hung_up: Callable[[], None]) -> None:
        """See :class:`harness.broker.ports.Connection`."""
        self._hung_up = hung_up

    @property
    def is_paused(self) -> bool:
        """Whether its owner wants no frames now."""
        return self._owner_objects

    # ------------------------------------------------------------------------------------ the network calls these

    def opened(self, connected: Accept) -> None:
        """Give the stream its owner."""
        if not self._lost:
            self._handler = connected(self)
            self.deliver()

    def obey_gates(self) -> None:
        """Hold or release frames after the set of cut links changed."""
        to_client = self.peer == CLIENTS
        closed = self._network.cut_links | self._stalled
        self._withholding = to_client and self._outward in closed
        self.held = self._inward in closed and self._network.name != CLIENTS
        if not self._withholding:
            self._release()
        if not self.held:
            self._deliver_soon()

    def stall(self, links: frozenset[Link], *, stalled: bool) -> None:
        """Hold what comes and goes on these links in this connection, or let it go on."""
        self._stalled = self._stalled | links if stalled else self._stalled - links
        self.obey_gates()

    def deliver(self) -> None:
        """Hand out frames while no cut and no pause holds them."""
        if self._delivering:
            return
        self._delivering = True
        while self._inbox and not (self.held or self._owner_objects or self._closing) and self._network.runs:
            if self._handler is None:
                break
            frame = self._inbox.popleft()
            if frame is None:
                self._closing = True
                self._lose()
            else:
                self._hand_over(self._handler, memoryview(frame))
        self._delivering = False
        self._look_for_hangup()

    def sever(self) -> None:
        """End the connection for both ends, with all that is under way."""
        for end in (self, self.far):
            end.be_severed()

    def be_severed(self) -> None:
        """Learn, when the link is not cut, that the connection is gone; what is under way will not arrive."""
        self._severed = True
        self._inbox.append(None)
        self._deliver_soon()

    def vanish(self) -> None:
        """This end is gone, and the far one does not learn of it; what has left here still arrives there."""
        self._severed = True
        self._inbox.clear()

    def die(self) -> None:
        """The node is gone: its end of the connection is closed after what had left it."""
        self._closing = self._lost = True
        self._inbox.clear()
        if not self._severed:
            self._transmit(None)

    def held_bytes(self) -> dict[Link, int]:
        """What waits here, by the link it is on, whether that is cut or not."""
        return {
            self._inward: sum(_PREFIX_BYTES + len(frame) for frame in self._inbox if frame is not None),
            self._outward: sum(_PREFIX_BYTES + len(frame) for frame in self._outbox),
        }

    def stalled_bytes(self, link: Link) -> int:
        """What waits here on ``link`` if that is stalled in this connection."""
        return self.held_bytes().get(link, 0) if link in self._stalled else 0

    # ------------------------------------------------------------------------------------ internals

    def _transmit(self, frame: bytearray | None) -> None:
        """Send a frame, or the end of the stream, on its way; it arrives after what was sent before."""
        links = self._world.links
        conditions = links.conditions_of(self._outward)
        if frame is not None and links.is_lost(conditions):
            self.sever()
            return
        arrival_ns = max(self._world.now_ns + links.travel_ns(conditions), self._last_arrival_ns)
        self._last_arrival_ns = arrival_ns
        self._world.at(arrival_ns, partial(self.far.arrive, frame))

    def arrive(self, frame: bytearray | None) -> None:
        """A frame, or the end of the stream, has come over the link."""
        if not self._severed and not self._lost:
            self._inbox.append(frame)
            self.deliver()
            self._look_for_hangup()

    def _look_for_hangup(self) -> None:
        """Tell the owner, which has paused this end, that the peer's end of the stream has arrived."""
        ended = bool(self._inbox) and self._inbox[-1] is None
        if ended and self._hung_up is not None and self._owner_objects and not self.held and self._network.runs:
            report, self._hung_up = self._hung_up, None
            self._world.at(self._world.now_ns, report, self._network)

    def _hand_over(self, handler: FrameHandler, frame: memoryview) -> None:
        watch = self._world.links.watch
        if watch is not None:
            watch(self._inward, frame)
        handler.on_frame(frame)

    def _deliver_soon(self) -> None:
        """Later, not now: the caller may be handling a frame of this very stream."""
        if self._inbox:
            self._world.at(self._world.now_ns, self.deliver, self._network)

    def _release(self) -> None:
        outbox, self._outbox = self._outbox, []
        for frame in outbox:
            self._transmit(frame)
        if self._closing and not self._lost:
            self._hang_up()

    def _hang_up(self) -> None:
        if not self._severed:
            self._transmit(None)
        self._world.at(self._world.now_ns, self._lose, self._network)

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._inbox.clear()
            self._network.streams.pop(self, None)
            if self._handler is not None:
                self._handler.on_lost()


class SimulatedNetwork:
    """:class:`harness.broker.ports.Network` of one life of the node ``name``; of its clients, it may be any number.

    Attributes:
        runs: whether the life goes on: it is neither dead nor frozen.
        alive: whether it is not dead.
        cut_links: the directed links of this node over which no frame may pass.
        streams: its ends of connections, in the order of their making.
    """

    def __init__(self, world: VirtualScheduler, name: str = CLIENTS) -> None:
        self.world = world
        self.name = name
        self.runs = True
        self.alive = True
        self.cut_links: frozenset[Link] = frozenset()
        self.streams: dict[Stream, None] = {}
        self._postponed: list[Act] = []
        self._addresses: list[Address] = []

    # ------------------------------------------------------------------------------------ ports.Network

    def listen(self, address: Address, accept: Accept) -> None:
        """See :class:`harness.broker.ports.Network`."""
        listeners = self.world.links.listeners
        if address in listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listeners[address] = partial(self._accept, accept)
        self._addresses.append(address)

    def connect(self, address: Address, peer: str, connected: Accept, failed: Callable[[], None]) -> None:
        """See :class:`harness.broker.ports.Network`."""
        self.world.at(self._arrival_ns(Link(self.name, peer)), partial(self._knock, address, peer, connected, failed))

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """See :class:`harness.broker.ports.Network`."""
        return self.world.alarm(delay_s, callback, self)

    # ------------------------------------------------------------------------------------ life

    def postpone(self, act: Act) -> None:
        """See :class:`harness.simulation.stack.scheduler.Life`."""
        if self.alive:
            self._postponed.append(act)

    def freeze(self) -> None:
        """What SIGSTOP does: nothing of this node runs; what arrives, and what is due, waits."""
        self.runs = False

    def thaw(self) -> None:
        """What SIGCONT does: what has arrived is handed over first, then comes what was due."""
        if self.alive and not self.runs:
            self.runs = True
            postponed, self._postponed = self._postponed, []
            for stream in list(self.streams):
                self.world.at(self.world.now_ns, stream.deliver, self)
            for act in postponed:
                self.world.at(self.world.now_ns, act, self)

    def die(self) -> None:
        """The end of the process: nothing more is sent from here, and peers see their connections end."""
        if self.alive:
            self.alive = self.runs = False
            self._stop_listening()
            for stream in list(self.streams):
                stream.die()
            self.streams.clear()

    def vanish(self) -> None:
        """What a machine's loss of power does to its connections: peers wait at theirs, and nothing comes.

        What runs here is not ended: that is for the owner of the connections to do.
        """
        for stream in self.streams:
            stream.vanish()

    # ------------------------------------------------------------------------------------ gates

    def cut(self, links: Iterable[Link]) -> None:
        """Make ``links`` the complete set of cut links; what is no longer among them is mended."""
        self.cut_links = frozenset(links)
        for stream in list(self.streams):
            stream.obey_gates()

    def stall(self, links: Iterable[Link], *, stalled: bool) -> None:
        """Let no frame pass on these links in the connections of now; or let what was stalled on them go on."""
        concerned = frozenset(links)
        for stream in list(self.streams):
            stream.stall(concerned, stalled=stalled)

    def stalled_bytes(self, link: Link) -> int:
        """Bytes that wait here now on ``link`` in connections in which it is stalled."""
        return sum(stream.stalled_bytes(link) for stream in self.streams)

    def held_bytes(self, link: Link) -> int:
        """Bytes that wait here now on ``link``; none unless it is cut."""
        if link not in self.cut_links:
            return 0
        return sum(stream.held_bytes().get(link, 0) for stream in self.streams)

    def sever(self, peer: str) -> int:
        """Break every connection with ``peer``, with all that is under way on them; returns how many."""
        broken = [stream for stream in self.streams if stream.peer == peer]
        for stream in broken:
            stream.sever()
        return len(broken)

    def nudge(self, near: Stream) -> bool:
        """Send an unsolicited frame to the client that holds ``near``; False: not connected here."""
        for stream in self.streams:
            if stream.far is near:
                stream.send([_NUDGE])
                return True
        return False

    # ------------------------------------------------------------------------------------ connecting

    def _stop_listening(self) -> None:
        for address in self._addresses:
            del self.world.links.listeners[address]

    def _knock(self, address: Address, peer: str, connected: Accept, failed: Callable[[], None]) -> None:
        """A request to connect has arrived; the kernels do the rest, whatever becomes of the processes."""
        if not self.alive:
            return
        back_ns = self._arrival_ns(Link(peer, self.name))
        listener = self.world.links.listeners.get(address)
        if listener is None:
            self.world.at(back_ns, failed, self)
            return
        near = Stream(self, peer)
        listener(near, self.name)
        self.world.at(back_ns, partial(near.opened, connected), self)

    def _accept(self, accept: Accept, near: Stream, name: str) -> None:
        """Give a connection that the node ``name`` has opened its far end, here."""
        far = Stream(self, name)
        near.far, far.far = far, near
        self.world.at(self.world.now_ns, partial(far.opened, accept), self)

    def _arrival_ns(self, link: Link) -> int:
        links = self.world.links
        return self.world.now_ns + links.travel_ns(links.conditions_of(link))
