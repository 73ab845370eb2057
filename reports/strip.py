"""Draws time strips: lanes on one axis of seconds since the run's start, of a partition or of the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports.glossary import is_gone
from reports.lanes import faults, isr, leadership, sends, watermarks
from reports.lanes.frame import LEFT, RIGHT, WIDTH, Frame, Lane, Outage
from reports.rows import Fault
from reports.run import PartitionRows
from reports.scale import NS, label, ticks
from reports.svg import join, shifted, tag, text
from reports.thinning import binned

_GAP = 9.0
_AXIS = 30.0
_TOP = 16.0
_EDGE = 6.0
"""How far marks at the ends of the axis may reach beyond it."""


@dataclass(frozen=True, slots=True)
class StripContent:
    """What a strip shows besides its partition's own rows.

    Attributes:
        starts: by node: when it was started, ascending.
        accused: the sends that take part in anomalies.
        final_read_ns: when the final read began; None if it did not.
        watermark_height: of the watermark lane, in pixels.
        watched: whether brokers were observed; else their lanes are left out.
        sampled: whether the timeline consists of samples of the brokers' states.
        has_sends: whether the report has the history.
    """

    faults: Sequence[Fault]
    outages: Sequence[Outage]
    starts: Mapping[int, Sequence[int]]
    accused: sends.Charges
    final_read_ns: int | None
    watermark_height: float
    watched: bool
    sampled: bool
    has_sends: bool


def drawn(frame: Frame, rows: PartitionRows, content: StripContent) -> Markup:
    """A partition's strip as an ``svg`` element."""
    accused = [s for s in rows.sends if s.value in content.accused.kinds]
    gone = [s.time_ns for s in accused if any(map(is_gone, content.accused.kinds[s.value or 0]))]
    gone = [t for t in gone if frame.window.overlaps(t, t)]
    label = described(frame, rows, content, len(accused))
    lanes, read_ns = _lanes(frame, rows, content), content.final_read_ns
    return stacked(frame, lanes, content.faults, label=label, gone=gone, final_read_ns=read_ns)


def stacked(
    frame: Frame,
    lanes: Sequence[Lane],
    shown: Sequence[Fault],
    *,
    label: str,
    gone: Sequence[int] = (),
    final_read_ns: int | None = None,
) -> Markup:
    """Lanes above each other, on bands for the faults.

    What lies on the time axis is in the inner ``svg``, which clips it: the page's script moves it there.

    Args:
        frame: the window.
        lanes: from the top down.
        shown: the faults.
        label: the strip in one sentence, for screen readers.
        gone: when records that are gone were acknowledged.
        final_read_ns: when the final read began.
    """
    tops = _tops(lanes)
    floor = tops[-1]
    lines, words = _hairlines(frame, gone, floor)
    bodies = [shifted(top, lane.body) for lane, top in zip(lanes, tops, strict=False)]
    grid, labels = _grid(frame, floor)
    read = _final_read(frame, final_read_ns, floor)
    moving = [*_bands(frame, shown, floor), tag("g", *grid, class_="grids"), *bodies, *lines, *words, *read]
    x, width = LEFT - _EDGE, RIGHT - LEFT + 2 * _EDGE
    view = f"{x:.0f} 0 {width:.0f} {floor:.0f}"
    box: dict[str, Any] = {"x": x, "y": 0, "width": width, "height": floor, "viewBox": view}
    plot = tag("svg", tag("g", *moving, class_="pan"), **box, class_="plot", preserveAspectRatio="none")
    gutter = join([_gutter(lane, top) for lane, top in zip(lanes, tops, strict=False)])
    window = frame.window
    low, high = (f"{(t - window.zero_ns) / NS:.9f}" for t in (window.start_ns, window.end_ns))
    return tag(
        "svg",
        gutter,
        plot,
        tag("g", *labels, class_="axis", data_y=floor + 12),
        text(LEFT - 14, floor + 12, "seconds since start", class_="row-name"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {floor + _AXIS - 10:.0f}",
        width=WIDTH,
        role="group",
        aria_label=label,
        class_="strip",
        data_low=low,
        data_high=high,
        data_left=LEFT,
        data_right=RIGHT,
    )


def described(frame: Frame, rows: PartitionRows, content: StripContent, accused: int) -> str:
    """The strip in one sentence, for screen readers."""
    unseen = "leaders and high watermarks as clients were told" if rows.told else "brokers not observed"
    seen = _seen_of_brokers(rows, content) if content.watched else unseen
    sent = f"{len(rows.sends)} sends, {accused} of them in anomalies" if content.has_sends else "sends not drawn"
    return f"Time strip of {rows.partition}, {frame.span(frame.window.start_ns, frame.window.end_ns)}: {sent}, {seen}."


def _seen_of_brokers(rows: PartitionRows, content: StripContent) -> str:
    elections = sum(c.kind == "election" for c in rows.changes)
    cuts = "truncations not recorded" if content.sampled else f"{len(rows.truncations)} truncations"
    return f"{elections} elections, {cuts}"


def _lanes(frame: Frame, rows: PartitionRows, content: StripContent) -> Sequence[Lane]:
    of_brokers = (
        leadership.lane(frame, rows, content.outages, content.starts),
        isr.lane(frame, rows),
        watermarks.lane(frame, rows, content.outages, content.watermark_height),
        watermarks.truncations(frame, rows.truncations, sampled=content.sampled),
    )
    as_told = (
        leadership.told(frame, rows.told),
        isr.lane(frame, rows),
        watermarks.told(frame, rows.told, content.watermark_height),
    )
    return (
        faults.lane(frame, content.faults),
        *(of_brokers if content.watched else as_told if rows.told else ()),
        *([sends.lane(frame, rows.sends, content.accused)] if content.has_sends else []),
    )


def _tops(lanes: Sequence[Lane]) -> Sequence[float]:
    """Where each lane begins, and below the last one where the axis does."""
    tops = [_TOP]
    for lane in lanes:
        tops.append(tops[-1] + lane.height + _GAP)
    return tops


def _gutter(lane: Lane, top: float) -> Markup:
    rule = tag("line", x1=0, x2=RIGHT, y1=-_GAP / 2, y2=-_GAP / 2, class_="lane-rule")
    return shifted(top, rule, text(0, 11, lane.name, class_="lane-name"), lane.gutter)


def _bands(frame: Frame, shown: Sequence[Fault], floor: float) -> Sequence[Markup]:
    return [
        frame.bar(f.injected_ns, faults.ends_ns(frame, f), _TOP, floor - _TOP, class_="fault-band")
        for f in shown
        if f.injected_ns is not None and frame.window.overlaps(f.injected_ns, faults.ends_ns(frame, f))
    ]


def _grid(frame: Frame, floor: float) -> tuple[Sequence[Markup], Sequence[Markup]]:
    window = frame.window
    low, high = ((t - window.zero_ns) / NS for t in (window.start_ns, window.end_ns))
    marks = [(second, frame.x(window.zero_ns + round(second * NS))) for second in ticks(low, high, 12)]
    lines = [tag("line", x1=x, x2=x, y1=_TOP - 4, y2=floor, class_="grid") for _, x in marks]
    return lines, [text(x, floor + 12, label(second), class_="tick") for second, x in marks]


def _hairlines(frame: Frame, times_ns: Sequence[int], floor: float) -> tuple[Sequence[Markup], Sequence[Markup]]:
    """A red line through all lanes where a lost record was acknowledged; one a bin, however many it stands for."""
    first = [b.items[0] for b in binned(times_ns, lambda t: t, frame.window, min(frame.bins, 40))]
    lines = [tag("line", x1=x, x2=x, y1=_TOP, y2=floor, class_="hairline") for x in map(frame.x, first)]
    words = "lost record acknowledged" if len(times_ns) == 1 else f"{len(times_ns):,} lost records acknowledged"
    at = [text(min(frame.x(first[0]) + 3, RIGHT - 190), 9, words, class_="lost-word")] if first else []
    return lines, at


def _final_read(frame: Frame, time_ns: int | None, floor: float) -> Sequence[Markup]:
    if time_ns is None or not frame.window.overlaps(time_ns, time_ns):
        return []
    x = frame.x(time_ns)
    line = tag("line", x1=x, x2=x, y1=_TOP - 4, y2=floor, class_="final-read")
    return [line, text(min(x + 3, RIGHT - 50), 9, "final read", class_="tick-left")]
