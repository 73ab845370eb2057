"""Time as a port: nothing above this module asks the operating system what time it is."""

from __future__ import annotations

import time
from typing import Protocol

MAX_OFFSET_MS = 100 * 365 * 86_400_000
"""How far a wall clock may be moved, either way: a century. What lies much further off fits into no timestamp."""


class Clock(Protocol):
    """Two clocks. Durations and the history use the monotonic one; the wall clock may jump."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of ``CLOCK_MONOTONIC``: comparable between processes of one host, never faulted."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch, as this node believes: the target of clock faults."""
        ...


class PacedClock(Clock, Protocol):
    """A clock that whoever drives a run can wait on: real time passes by itself, virtual time while it is waited on."""

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass; 0 lets whatever is due now happen."""
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
