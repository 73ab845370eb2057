"""The ports in memory: nodes on one network in virtual time, which delivers in order and only when told to."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

from harness.broker.ports import Buffer, Connection, FrameHandler
from harness.model import CLIENTS


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeConnection:
    """One end; ``other`` is the far end. Frames wait in ``inbox`` until the world pumps."""

    other: FakeConnection
    handler: FrameHandler

    def __init__(self, world: World, owner: str, peer: str) -> None:
        self.world = world
        self.owner = owner
        self.peer = peer
        self.inbox: deque[bytes] = deque()
        self.closed = False
        self.paused = False

    def send(self, segments: list[Buffer]) -> None:
        if not self.closed:
            self.other.inbox.append(b"".join(segments))

    def close(self) -> None:
        for end in (self, self.other):
            if not end.closed:
                end.closed = True
                self.world.due.append(lambda end=end: end.handler.on_lost())  # type: ignore[misc]

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def is_ready(self) -> bool:
        return bool(self.inbox) and not self.paused and not self.closed and self.owner not in self.world.deaf


class World:
    """Everything between the nodes. A node in ``deaf`` receives nothing: frames to it wait."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: deque[Callable[[], None]] = deque()
        self.deaf: set[str] = set()
        self.listeners: dict[tuple[str, int], tuple[str, Callable[[Connection], FrameHandler]]] = {}
        self.connections: list[FakeConnection] = []
        self.timers: list[tuple[float, int, FakeTimer]] = []
        self.order = count()

    def monotonic_ns(self) -> int:
        return int(self.now_s * 1e9)

    def wall_ms(self) -> int:
        return int(self.now_s * 1e3)

    def pump(self) -> None:
        """Deliver everything that is under way, and whatever follows from it."""
        while self.due or any(end.is_ready() for end in self.connections):
            while self.due:
                self.due.popleft()()
            for end in list(self.connections):
                if end.is_ready():
                    end.handler.on_frame(memoryview(bytearray(end.inbox.popleft())))
            self.connections = [end for end in self.connections if not end.closed]

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        until = self.now_s + seconds
        self.pump()
        while self.timers and self.timers[0][0] <= until:
            self.now_s, _, timer = heapq.heappop(self.timers)
            if timer.callback is not None:
                timer.callback()
            self.pump()
        self.now_s = until


class FakeNetwork:
    """:class:`harness.broker.ports.Network` of the node ``name`` in ``world``."""

    def __init__(self, world: World | None = None, name: str = CLIENTS) -> None:
        self.world = world or World()
        self.name = name
        self.alive = True

    def die(self) -> None:
        """What SIGKILL does: nothing more is heard from here, and peers see their connections end."""
        self.alive = False
        self.world.listeners = {a: entry for a, entry in self.world.listeners.items() if entry[0] != self.name}
        for end in self.world.connections:
            if end.owner == self.name:
                end.closed = True
                end.other.close()

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        self.world.listeners[address] = (self.name, accept)

    def connect(
        self,
        address: tuple[str, int],
        peer: str,
        connected: Callable[[Connection], FrameHandler],
        failed: Callable[[], None],
    ) -> None:
        def join() -> None:
            if not self.alive:
                return
            if address not in self.world.listeners:
                failed()
                return
            owner, accept = self.world.listeners[address]
            near, far = FakeConnection(self.world, self.name, peer), FakeConnection(self.world, owner, self.name)
            near.other, far.other = far, near
            far.handler = accept(far)
            near.handler = connected(near)
            self.world.connections += [near, far]

        self.world.due.append(join)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(lambda: callback() if self.alive else None)
        heapq.heappush(self.world.timers, (self.world.now_s + delay_s, next(self.world.order), timer))
        return timer
