"""What past nights say of a series: how long its cells take, when it last ran, and whether it failed then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from harness.nightly.conclusion import FAILURES, SKIPS
from harness.nightly.result import CellOutcome, CellResult

_REMEMBERED = 20
"""How many of the last durations of a series count."""


@dataclass(slots=True)
class _Series:
    durations: list[float] = field(default_factory=list)
    last: int = -1
    is_failing: bool = False


class Past:
    """The results of past nights, oldest first.

    Attributes:
        nights: how many.
    """

    def __init__(self, results: Iterable[CellResult] = ()) -> None:
        self._series: dict[str, _Series] = defaultdict(_Series)
        nights: dict[str, int] = {}
        for one in results:
            number = nights.setdefault(one.night, len(nights))
            if one.outcome not in SKIPS:
                self._add(one, number)
            elif one.outcome is CellOutcome.SKIPPED:
                self._series[one.series].durations.append(0.0)
        self.nights = len(nights)

    def _add(self, one: CellResult, night: int) -> None:
        series = self._series[one.series]
        series.durations.append(one.seconds)
        fails = one.outcome in FAILURES
        series.is_failing = fails or (series.is_failing and series.last == night)
        series.last = night

    def seconds(self, series: str) -> float | None:
        """The median of the last durations of its cells; None: it never ran."""
        known = self._series.get(series)
        return median(known.durations[-_REMEMBERED:]) if known is not None and known.durations else None

    def unseen(self, series: str) -> int:
        """For how many nights it has not run: 0 if it ran in the last one, more than any if it never ran."""
        known = self._series.get(series)
        return self.nights - 1 - known.last if known is not None else self.nights

    def is_failing(self, series: str) -> bool:
        """Whether any of its cells failed in the last night in which it ran."""
        known = self._series.get(series)
        return known is not None and known.is_failing
