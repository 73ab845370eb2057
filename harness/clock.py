"""The clocks as a port: no module above this one reads the operating system's clock."""

from __future__ import annotations

import time
from typing import Protocol

MAX_OFFSET_MS = 100 * 365 * 86_400_000
"""The greatest offset of a wall clock, either way: a century. Much larger ones do not fit into timestamps."""


class Clock(Protocol):
    """Two clocks. Durations and the history use the monotonic one; the wall clock may jump."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of ``CLOCK_MONOTONIC``: comparable between processes of one host, never faulted."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch by this node's clock, which clock faults move."""
        ...


class PacedClock(Clock, Protocol):
    """A clock on which the driver of a run can wait: virtual time passes only during waits."""

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass; 0 runs what is due now."""
        ...


class SystemClock:
    """The machine's clocks, with an offset that the clock fault moves.

    Attributes:
        wall_offset_ms: added to the machine's wall clock; 0 means true time.
    """

    def __init__(self, wall_offset_ms: int = 0) -> None:
        self.wall_offset_ms = wall_offset_ms

    def monotonic_ns(self) -> int:
        """See :meth:`Clock.monotonic_ns`."""
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        """See :meth:`Clock.wall_ms`."""
        return time.time_ns() // 1_000_000 + self.wall_offset_ms

    def sleep(self, seconds: float) -> None:
        """See :meth:`PacedClock.sleep`."""
        time.sleep(seconds)
