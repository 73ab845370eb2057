"""Latency of acknowledged sends: percentiles of each partition, and a heat strip of the run on bands for the faults."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from harness.model import TopicPartition
from reports.lanes.frame import LEFT, RIGHT, Frame, Lane
from reports.run import Run
from reports.strip import stacked
from reports.svg import join, tag, text

_ROW: Final = 12.0
_COLUMNS: Final = 160
_EDGES_MS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True, slots=True)
class Latency:
    """From a send's invocation to its acknowledgement, in milliseconds. ``partition`` is None for all together."""

    partition: TopicPartition | None
    count: int
    p50: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """All together first, then by partition; and the heat strip. ``most``: the slowest of all, and when it ended."""

    rows: Sequence[Latency]
    strip: Markup


def latencies(run: Run, frame: Frame) -> Latencies | None:
    """The latencies of the run; None: no send whose invocation is recorded was acknowledged."""
    sends = run.sends()
    sends = sends.filter(pc.is_valid(sends["invoked_ns"]))
    if not len(sends):
        return None
    took = pc.divide(pc.cast(pc.subtract(sends["time_ns"], sends["invoked_ns"]), pa.float64()), 1e6)
    sends = sends.append_column("took_ms", took)
    places = sends.group_by(["topic", "partition"]).aggregate([])
    named = sorted(TopicPartition(row["topic"], row["partition"]) for row in places.to_pylist())
    rows = [_latency(None, sends), *(_latency(place, sends) for place in named if len(named) > 1)]
    return Latencies(rows, _heat(run, frame, sends))


def _latency(place: TopicPartition | None, sends: pa.Table) -> Latency:
    if place is not None:
        here = pc.and_(pc.equal(sends["topic"], place.topic), pc.equal(sends["partition"], place.partition))
        sends = sends.filter(here)
    half, nearly, most = pc.quantile(sends["took_ms"], [0.5, 0.99, 1.0], interpolation="nearest").to_pylist()
    return Latency(place, len(sends), half, nearly, most)


def _heat(run: Run, frame: Frame, sends: pa.Table) -> Markup:
    window = frame.window
    cells: Counter[tuple[int, int]] = Counter()
    for time_ns, took in zip(sends["time_ns"].to_pylist(), sends["took_ms"].to_pylist(), strict=True):
        column = min(_COLUMNS - 1, (time_ns - window.start_ns) * _COLUMNS // window.span_ns)
        cells[column, bisect_right(_EDGES_MS, max(0.0, took)) - 1] += 1
    low, high = min(row for _, row in cells), max(row for _, row in cells)
    most = max(cells.values())
    height = _ROW * (high - low + 1)
    tops = {row: height - (row - low + 1) * _ROW for row in range(low, high + 1)}
    bars = [_cell(frame, cell, tops[cell[1]], number, most) for cell, number in sorted(cells.items())]
    names = [text(LEFT - 6, y + 10, f"from {_words(_EDGES_MS[row])}", class_="row-name") for row, y in tops.items()]
    scale = [text(RIGHT + 6, 9, f"darkest: {most:,}", class_="quiet")]
    lane = Lane("latency", height, join(bars), join(names, scale))
    label = f"Heat strip of the latency of {len(sends):,} acknowledged sends over the time of their acknowledgement."
    return stacked(frame, [lane], run.faults, label=label)


def _cell(frame: Frame, cell: tuple[int, int], y: float, number: int, most: int) -> Markup:
    window, (column, row) = frame.window, cell
    start, end = (window.start_ns + edge * window.span_ns // _COLUMNS for edge in (column, column + 1))
    upper = f" to {_words(_EDGES_MS[row + 1])}" if row + 1 < len(_EDGES_MS) else " or more"
    title = f"{frame.span(start, end)}: {number:,} acknowledged after {_words(_EDGES_MS[row])}{upper}"
    shade = f"{0.25 + 0.75 * math.log1p(number) / math.log1p(most):.2f}"
    x, right = frame.x(start), frame.x(end)
    box = {"x": x, "y": y, "width": right - x, "height": _ROW - 1}
    return tag("rect", title=title, **box, class_="heat", fill_opacity=shade)


def _words(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds // 1000} s"
