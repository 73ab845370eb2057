"""A node's clocks in virtual time."""

from __future__ import annotations

from harness.simulation.stack.scheduler import VirtualScheduler


class NodeClock:
    """Virtual monotonic time, and a wall clock that is off by ``wall_offset_ms``; a :class:`harness.clock.Clock`.

    Attributes:
        wall_offset_ms: what the clock fault moves; 0 means true time.
    """

    def __init__(self, world: VirtualScheduler, wall_offset_ms: int = 0) -> None:
        self.wall_offset_ms = wall_offset_ms
        self._world = world

    def monotonic_ns(self) -> int:
        """See :meth:`harness.clock.Clock.monotonic_ns`."""
        return self._world.monotonic_ns()

    def wall_ms(self) -> int:
        """See :meth:`harness.clock.Clock.wall_ms`."""
        return self._world.wall_ms() + self.wall_offset_ms
