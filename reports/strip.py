"""One partition's time strip: every lane on one axis of seconds since the run's start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from markupsafe import Markup

from reports.glossary import is_gone
from reports.lanes import faults, isr, leadership, sends, watermarks
from reports.lanes.frame import LEFT, RIGHT, WIDTH, Frame, Lane, Outage
from reports.rows import Fault
from reports.run import PartitionRows
from reports.scale import NS, label, ticks
from reports.svg import shifted, tag, text
from reports.thinning import binned

_GAP = 9.0
_AXIS = 30.0
_TOP = 16.0


@dataclass(frozen=True, slots=True)
class Scene:
    """What a strip shows besides its partition's own rows.

    Attributes:
        starts: by node: when it was started, ascending.
        accused: by value: the kinds of anomalies that its send takes part in.
        final_read_ns: when the final read began; None if it did not.
        watermark_height: of the watermark lane, in pixels.
        sampled: whether the timeline consists of samples of the brokers' states.
    """

    faults: Sequence[Fault]
    outages: Sequence[Outage]
    starts: Mapping[int, Sequence[int]]
    accused: Mapping[int, AbstractSet[str]]
    final_read_ns: int | None
    watermark_height: float
    sampled: bool


def drawn(frame: Frame, rows: PartitionRows, scene: Scene) -> Markup:
    """The strip as an ``svg`` element."""
    lanes = _lanes(frame, rows, scene)
    tops = _tops(lanes)
    floor = tops[-1]
    accused = [s for s in rows.sends if s.value in scene.accused]
    gone = [s.time_ns for s in accused if any(map(is_gone, scene.accused[s.value or 0]))]
    behind = [*_bands(frame, scene.faults, floor), *_grid(frame, floor)]
    stacked = [_lane(lane, top) for lane, top in zip(lanes, tops, strict=False)]
    above = [*_hairlines(frame, gone, floor), *_final_read(frame, scene.final_read_ns, floor)]
    height = floor + _AXIS
    return tag(
        "svg",
        *behind,
        *stacked,
        *above,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        width=WIDTH,
        role="img",
        aria_label=described(frame, rows, len(accused), sampled=scene.sampled),
        class_="strip",
    )


def described(frame: Frame, rows: PartitionRows, accused: int, *, sampled: bool) -> str:
    """The strip in one sentence, for screen readers."""
    elections = sum(c.kind == "election" for c in rows.changes)
    cuts = "truncations not recorded" if sampled else f"{len(rows.truncations)} truncations"
    return (
        f"Time strip of {rows.partition}, {frame.span(frame.window.start_ns, frame.window.end_ns)}: "
        f"{len(rows.sends)} sends, {accused} of them in anomalies, {elections} elections, {cuts}."
    )


def _lanes(frame: Frame, rows: PartitionRows, scene: Scene) -> Sequence[Lane]:
    return (
        faults.lane(frame, scene.faults),
        leadership.lane(frame, rows, scene.outages, scene.starts),
        isr.lane(frame, rows),
        watermarks.lane(frame, rows, scene.outages, scene.watermark_height),
        watermarks.truncations(frame, rows.truncations, sampled=scene.sampled),
        sends.lane(frame, rows.sends, scene.accused),
    )


def _tops(lanes: Sequence[Lane]) -> Sequence[float]:
    """Where each lane begins, and below the last one where the axis does."""
    tops = [_TOP]
    for lane in lanes:
        tops.append(tops[-1] + lane.height + _GAP)
    return tops


def _lane(lane: Lane, top: float) -> Markup:
    rule = tag("line", x1=0, x2=RIGHT, y1=-_GAP / 2, y2=-_GAP / 2, class_="lane-rule")
    return shifted(top, rule, text(0, 11, lane.name, class_="lane-name"), lane.body)


def _bands(frame: Frame, shown: Sequence[Fault], floor: float) -> Sequence[Markup]:
    return [
        frame.bar(f.injected_ns, faults.ends_ns(frame, f), _TOP, floor - _TOP, class_="fault-band")
        for f in shown
        if f.injected_ns is not None and frame.window.overlaps(f.injected_ns, faults.ends_ns(frame, f))
    ]


def _grid(frame: Frame, floor: float) -> Sequence[Markup]:
    window = frame.window
    low, high = ((t - window.zero_ns) / NS for t in (window.start_ns, window.end_ns))
    marks = [(second, frame.x(window.zero_ns + round(second * NS))) for second in ticks(low, high, 12)]
    lines = [tag("line", x1=x, x2=x, y1=_TOP - 4, y2=floor, class_="grid") for _, x in marks]
    labels = [text(x, floor + 12, label(second), class_="tick") for second, x in marks]
    unit = text(LEFT - 6, floor + 12, "seconds since start", class_="row-name")
    return [*lines, *labels, unit]


def _hairlines(frame: Frame, times_ns: Sequence[int], floor: float) -> Sequence[Markup]:
    """A red line through all lanes where a lost record was acknowledged; one a bin, however many it stands for."""
    first = [b.items[0] for b in binned(times_ns, lambda t: t, frame.window, min(frame.bins, 40))]
    lines = [tag("line", x1=x, x2=x, y1=_TOP, y2=floor, class_="hairline") for x in map(frame.x, first)]
    words = "lost record acknowledged" if len(times_ns) == 1 else f"{len(times_ns)} lost records acknowledged"
    return [*lines, text(min(frame.x(first[0]) + 3, RIGHT - 150), 9, words, class_="lost-word")] if first else []


def _final_read(frame: Frame, time_ns: int | None, floor: float) -> Sequence[Markup]:
    if time_ns is None or not frame.window.overlaps(time_ns, time_ns):
        return []
    x = frame.x(time_ns)
    line = tag("line", x1=x, x2=x, y1=_TOP - 4, y2=floor, class_="final-read")
    return [line, text(x, floor + 25, "final read", class_="tick")]
