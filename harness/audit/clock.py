"""The time of an audit: nanoseconds since the Unix epoch that never run backwards, also across its restarts."""

from __future__ import annotations

from datetime import UTC, datetime

from harness.clock import Clock


class AuditClock:
    """A monotonic clock that shows the wall clock's time of the audit's start; implements ``Clock``.

    Args:
        clock: whose monotonic time passes.
        not_before_ns: the latest time that is known of an earlier life of the audit.
    """

    def __init__(self, clock: Clock, not_before_ns: int = 0) -> None:
        self._clock = clock
        self._offset_ns = max(clock.wall_ms() * 1_000_000, not_before_ns) - clock.monotonic_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._clock.monotonic_ns() + self._offset_ns

    def wall_ms(self) -> int:
        """The same in milliseconds."""
        return self.monotonic_ns() // 1_000_000


def as_text(time_ns: int) -> str:
    """A time of an audit in UTC, ``2026-11-29T10:00:00Z``."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
