"""Rate-limited log lines about peers whose requests a node refuses."""

from __future__ import annotations

from collections.abc import Callable

from harness.clock import Clock

INTERVAL_NS = 1_000_000_000
"""At most one line in this time; those that were left out are counted in the next one."""


class Complaints:
    """Writes at most one line a second, so that hostile peers cannot fill the disk with the log."""

    def __init__(self, say: Callable[[str], None], clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._said_ns: int | None = None
        self._left_out = 0

    def about(self, sentence: str) -> None:
        """Write ``sentence``, or count it."""
        now_ns = self._clock.monotonic_ns()
        if self._said_ns is not None and now_ns - self._said_ns < INTERVAL_NS:
            self._left_out += 1
            return
        others = f" {self._left_out} such lines before it were left out." if self._left_out else ""
        self._said_ns, self._left_out = now_ns, 0
        self._say(sentence + others)
