"""A clock for tests, whose time passes only during ``sleep``, and at once."""

from __future__ import annotations

from collections.abc import Callable


class LeapingClock:
    """Implements :class:`harness.clock.PacedClock`.

    Attributes:
        now_ns: its time.
        on_sleep: called after each sleep, for a test to change the cluster.
    """

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic_ns(self) -> int:
        """See :class:`harness.clock.Clock`."""
        return self.now_ns

    def wall_ms(self) -> int:
        """See :class:`harness.clock.Clock`."""
        return self.now_ns // 1_000_000

    def sleep(self, seconds: float) -> None:
        """See :class:`harness.clock.PacedClock`."""
        self.now_ns += max(1, int(seconds * 1e9))
        self.on_sleep()
