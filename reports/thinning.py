"""Fewer marks for the same picture: what a pixel cannot show apart is drawn once, and nothing rare is dropped.

Lines keep the first, least, greatest and last point of every bin (the M4 aggregation of Jugel et al., VLDB 2014),
so a dip of a watermark survives however short it was. Ticks become counts per bin. Anomalies, faults and
truncations never go through here without keeping at least one mark per bin and the number it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from reports.scale import Window

Point = tuple[int, int]
"""A time in nanoseconds and a value."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bin(Generic[T]):
    """What happened between ``start_ns`` and ``end_ns`` (exclusive), in order; never empty."""

    start_ns: int
    end_ns: int
    items: tuple[T, ...]


def binned(items: Sequence[T], time_of: Callable[[T], int], window: Window, bins: int) -> Iterator[Bin[T]]:
    """``items`` (ascending by time, those outside the window left out) by bins of equal length, empty ones skipped."""

    def bin_of(item: T) -> int:
        return min(bins - 1, (time_of(item) - window.start_ns) * bins // window.span_ns)

    inside = [item for item in items if window.start_ns <= time_of(item) <= window.end_ns]
    for number, group in groupby(inside, key=bin_of):
        start, end = (window.start_ns + edge * window.span_ns // bins for edge in (number, number + 1))
        yield Bin(start, end, tuple(group))


def thinned(points: Sequence[Point], window: Window, bins: int) -> list[Point]:
    """A step line with at most four points a bin; the value at the window's start is carried in from before it."""
    before = [p for p in points if p[0] < window.start_ns]
    carried = [(window.start_ns, before[-1][1])] if before else []
    kept = [p for b in binned(points, lambda p: p[0], window, bins) for p in _extremes(b.items)]
    return carried + kept


def _extremes(points: Sequence[Point]) -> list[Point]:
    indices = range(len(points))
    least = min(indices, key=lambda i: points[i][1])
    greatest = max(indices, key=lambda i: points[i][1])
    return [points[i] for i in sorted({0, least, greatest, len(points) - 1})]
