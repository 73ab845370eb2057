"""Maps times and offsets to pixels, and chooses round numbers for ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

NS = 1_000_000_000
"""Nanoseconds per second."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A line from a domain to pixels. ``low`` lands on ``near``, ``high`` on ``far``; an empty domain lands midway."""

    low: float
    high: float
    near: float
    far: float

    def at(self, value: float) -> float:
        """Where ``value`` lands, held within the range: what lies outside sits on its edge."""
        if self.high <= self.low:
            return (self.near + self.far) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.near + min(1.0, max(0.0, share)) * (self.far - self.near)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run's time, in monotonic nanoseconds; ``zero_ns`` is where the run's seconds count from."""

    zero_ns: int
    start_ns: int
    end_ns: int

    @property
    def span_ns(self) -> int:
        """How long it lasts, in nanoseconds; at least 1."""
        return max(1, self.end_ns - self.start_ns)

    def overlaps(self, start_ns: int, end_ns: int) -> bool:
        """Whether any instant of ``start_ns..end_ns`` lies in the window."""
        return start_ns <= self.end_ns and end_ns >= self.start_ns

    def seconds(self, time_ns: int) -> str:
        """``time_ns`` as seconds since the run's start, to the millisecond: ``12.345 s``."""
        return seconds(time_ns - self.zero_ns)


def seconds(duration_ns: int) -> str:
    """A duration to the millisecond: ``12.345 s``."""
    return f"{duration_ns / NS:,.3f} s"


def ticks(low: float, high: float, about: int) -> Sequence[float]:
    """Round numbers from ``low`` to ``high``, both inclusive, roughly ``about`` of them; one if there is no room."""
    if high <= low:
        return [low]
    step = _round_step((high - low) / max(1, about))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def whole_ticks(low: int, high: int, about: int) -> Sequence[int]:
    """Like :func:`ticks`, for offsets: whole numbers only."""
    return sorted({int(t) for t in ticks(low, high, about) if float(t).is_integer()}) or [low]


def label(value: float) -> str:
    """A tick's label without needless zeros: ``12``, ``12.5``, ``12,000``."""
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _round_step(rough: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(m * magnitude for m in (1.0, 2.0, 5.0, 10.0) if m * magnitude >= rough * (1 - 1e-9))
