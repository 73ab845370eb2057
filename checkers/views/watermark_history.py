"""When the leaders of a partition had first reported which high watermark."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from harness.model import TopicPartition


class WatermarkHistory:
    """The high watermarks in the rows of leaders in a run's timeline."""

    def __init__(self, timeline: Iterable[Mapping[str, Any]]) -> None:
        found: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        for row in timeline:
            if row["kind"] == "state" and row["role"] == "leader" and row["high_watermark"] is not None:
                found[TopicPartition(row["topic"], row["partition"])].append((row["high_watermark"], row["time_ns"]))
        self._known = {place: _in_order(steps) for place, steps in found.items()}

    def had_passed(self, place: TopicPartition, offset: int, time_ns: int) -> bool:
        """Whether a leader had reported a high watermark above ``offset`` by then."""
        marks, times = self._known.get(place, ([], []))
        at = bisect_right(marks, offset)
        return at < len(marks) and times[at] <= time_ns


def _in_order(steps: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The high watermarks, lowest first, and for each the time since when one at least as high had been reported."""
    steps.sort(reverse=True)
    times = [*accumulate((time_ns for _, time_ns in steps), min)]
    return [mark for mark, _ in reversed(steps)], times[::-1]
