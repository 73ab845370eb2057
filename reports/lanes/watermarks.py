"""High watermark of every broker as a step line, its log end offset faint beside it, truncations as arrows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from markupsafe import Markup

from reports.lanes.frame import LEFT, RIGHT, Frame, Lane, Outage
from reports.rows import State, Truncation
from reports.run import PartitionRows
from reports.scale import Scale, Window, label, whole_ticks
from reports.svg import join, steps, tag, text, wedge
from reports.thinning import Point, binned, thinned

_MARGIN = 7.0
_COLUMNS = 110


def lane(frame: Frame, rows: PartitionRows, outages: Sequence[Outage], height: float) -> Lane:
    """The lines of all brokers over one axis of offsets, broken where a broker did not run."""
    low, high = _range(frame.window, rows)
    y = Scale(low, high, height - _MARGIN, _MARGIN)
    lines = [_broker(frame, y, states, outages) for states in rows.states.values() if states]
    cuts = [_arrow(frame, y, t) for t in rows.truncations if frame.window.overlaps(t.time_ns, t.time_ns)]
    rules, labels = _offsets(y, low, high, height)
    body = join(rules, lines, cuts, list(_columns(frame, rows, height)))
    return Lane("high watermark", height, body, join(labels, _names(frame, y, rows, outages)))


def told(frame: Frame, states: Sequence[State], height: float) -> Lane:
    """The high watermark that clients were told, in the colour of the leader that Metadata named."""
    known = [s for s in states if s.high_watermark is not None]
    seen = [(s.time_ns, s.high_watermark or 0) for s in _within(frame.window, known)]
    if not seen:
        return Lane("high watermark", 15, text(LEFT + 2, 11, "not told", class_="quiet"))
    y = Scale(min(mark for _, mark in seen), max(1, *(mark for _, mark in seen)), height - _MARGIN, _MARGIN)
    reigns = [list(group) for _, group in groupby(known, key=lambda s: (s.leader, s.leader_epoch))]
    until = [*(group[0].time_ns for group in reigns[1:]), frame.window.end_ns]
    lines = []
    for group, end_ns in zip(reigns, until, strict=True):
        window = Window(frame.window.zero_ns, frame.window.start_ns, max(frame.window.start_ns, end_ns))
        points = _changes([(s.time_ns, s.high_watermark or 0) for s in group if window.overlaps(s.time_ns, s.time_ns)])
        drawn = [(frame.x(t), y.at(mark)) for t, mark in thinned(points, frame.window, frame.bins)]
        title = f"told in epoch {group[0].leader_epoch}: {group[0].high_watermark} to {group[-1].high_watermark}"
        if drawn:
            path = steps(drawn, frame.x(min(end_ns, frame.window.end_ns)))
            lines.append(tag("path", d=path, class_=f"hw {frame.colour(group[0].leader)}", title=title))
    rules, labels = _offsets(y, round(y.low), round(y.high), height)
    end = text(RIGHT + 6, y.at(seen[-1][1]) + 3.5, f"told {seen[-1][1]:,}", class_="end")
    return Lane("high watermark", height, join(rules, lines), join(labels, [end]))


def truncations(frame: Frame, cuts: Sequence[Truncation], *, sampled: bool = False) -> Lane:
    """Every truncation once more in a lane of its own, where none can hide; those of one bin share a mark.

    A sampled timeline has no rows of truncations.
    """
    bins = list(binned(cuts, lambda t: t.time_ns, frame.window, min(frame.bins, 160)))
    if not bins:
        words = "not recorded: the timeline is sampled" if sampled else "none"
        return Lane("truncations", 15, text(LEFT + 2, 11, words, class_="quiet"))
    edges = [*(b.items[0].time_ns for b in bins[1:]), frame.window.end_ns]
    marks = [_mark(frame, b.items, edge) for b, edge in zip(bins, edges, strict=True)]
    return Lane("truncations", 15, join(marks))


def truncation_words(cut: Truncation) -> str:
    """What was cut, in words."""
    return f"broker {cut.node} truncated {cut.from_offset} to {cut.to_offset} ({cut.reason})"


def _mark(frame: Frame, cuts: Sequence[Truncation], room_until_ns: int) -> Markup:
    first = cuts[0]
    title = "\n".join(f"{frame.window.seconds(t.time_ns)}: {truncation_words(t)}" for t in cuts[:20])
    more = f"\nand {len(cuts) - 20} more" if len(cuts) > 20 else ""
    x = frame.x(first.time_ns)
    words = f"b{first.node} {first.from_offset}→{first.to_offset}" if len(cuts) == 1 else f"{len(cuts)} cuts"
    glyph = tag("path", d=wedge(x, 13, 9, 10), class_=f"glyph cut {frame.colour(first.node)}")
    named = [text(x + 6, 11.5, words, class_="label")] if frame.fits(words, first.time_ns, room_until_ns) else []
    return tag("g", glyph, *named, title=title + more)


def _range(window: Window, rows: PartitionRows) -> tuple[int, int]:
    seen = [s for states in rows.states.values() for s in _within(window, states)]
    values = [v for s in seen for v in (s.high_watermark, s.log_end_offset) if v is not None]
    cuts = [t.from_offset for t in rows.truncations if window.overlaps(t.time_ns, t.time_ns)]
    return min(values, default=0), max([*values, *cuts], default=1)


def _within(window: Window, states: Sequence[State]) -> Sequence[State]:
    first = bisect_right(states, window.start_ns, key=lambda s: s.time_ns)
    last = bisect_right(states, window.end_ns, key=lambda s: s.time_ns)
    return states[max(0, first - 1) : last]


def _broker(frame: Frame, y: Scale, states: Sequence[State], outages: Sequence[Outage]) -> Markup:
    node, colour = states[0].node, frame.colour(states[0].node)
    ends = [(s.time_ns, s.log_end_offset) for s in states if s.log_end_offset is not None]
    marks = [(s.time_ns, s.high_watermark) for s in states if s.high_watermark is not None]
    gaps = [o for o in outages if o.node == node and not o.is_alive]
    return join(
        [tag("path", d=d, class_=f"leo {colour}") for d in _paths(frame, y, ends, gaps)],
        [tag("path", d=d, class_=f"hw {colour}") for d in _paths(frame, y, marks, gaps)],
    )


def _paths(frame: Frame, y: Scale, points: Sequence[Point], gaps: Sequence[Outage]) -> Iterator[str]:
    for window, carry in _running(frame.window, gaps):
        first = bisect_left(points, window.start_ns, key=itemgetter(0))
        last = bisect_right(points, window.end_ns, key=itemgetter(0))
        known = points[max(0, first - carry) : last]
        drawn = [(frame.x(t), y.at(v)) for t, v in thinned(_changes(known), window, frame.bins)]
        if drawn:
            yield steps(drawn, frame.x(window.end_ns))


def _running(window: Window, gaps: Sequence[Outage]) -> Iterator[tuple[Window, bool]]:
    """The stretches of the window in which the broker ran, and whether its earlier values still held at their start."""
    start, carry = window.start_ns, True
    for gap in sorted(gaps, key=lambda g: g.start_ns):
        if start < gap.start_ns:
            yield Window(window.zero_ns, start, min(gap.start_ns, window.end_ns)), carry
        if gap.end_ns > start:
            start, carry = gap.end_ns, False
    if start < window.end_ns:
        yield Window(window.zero_ns, start, window.end_ns), carry


def _changes(points: Sequence[Point]) -> list[Point]:
    return [next(group) for _, group in groupby(points, key=itemgetter(1))]


def _offsets(y: Scale, low: int, high: int, height: float) -> tuple[list[Markup], list[Markup]]:
    marks = whole_ticks(low, high, max(2, round(height / 40)))
    rules = [tag("line", x1=LEFT, x2=RIGHT, y1=y.at(m), y2=y.at(m), class_="rule") for m in marks]
    return rules, [text(LEFT - 6, y.at(m) + 3.5, label(m), class_="row-name") for m in marks]


def _names(frame: Frame, y: Scale, rows: PartitionRows, outages: Sequence[Outage]) -> list[Markup]:
    """Each line's name at its right end, pushed apart where lines end together; in brackets where it is down."""
    lasts = [_within(frame.window, states)[-1:] for states in rows.states.values()]
    ends = [(y.at(s.high_watermark), s) for last in lasts for s in last if s.high_watermark is not None]
    down = {o.node for o in outages if not o.is_alive and o.start_ns < frame.window.end_ns <= o.end_ns}
    placed = _apart(sorted(ends, key=lambda end: (end[0], end[1].node)), 12.0, y.near + _MARGIN - 4)
    return [_name(frame, at, state, state.node in down) for at, state in placed]


def _name(frame: Frame, y: float, state: State, down: bool) -> Markup:
    words = f"b{state.node} {state.high_watermark:,}"
    title = "its last state before it went down" if down else None
    colour = frame.colour(state.node)
    return text(RIGHT + 6, y + 3.5, f"({words})" if down else words, f"end {colour}", title)


def _apart(ends: Sequence[tuple[float, State]], gap: float, floor: float) -> Iterator[tuple[float, State]]:
    """``ends`` (ascending) with at least ``gap`` between neighbours and none below ``floor``."""
    places: list[float] = []
    for at, _ in ends:
        places.append(max(at, places[-1] + gap) if places else at)
    overshoot = max(0.0, places[-1] - floor) if places else 0.0
    return zip((p - overshoot for p in places), (s for _, s in ends), strict=True)


def _arrow(frame: Frame, y: Scale, cut: Truncation) -> Markup:
    x, top, tip = frame.x(cut.time_ns), y.at(cut.from_offset), y.at(cut.to_offset)
    title = f"{frame.window.seconds(cut.time_ns)}: {truncation_words(cut)}"
    shaft = tag("line", x1=x, x2=x, y1=top, y2=tip, class_="cut-shaft")
    head = tag("path", d=wedge(x, max(tip, top + 5), 8, 5), class_="glyph cut-head")
    return tag("g", shaft, head, title=title)


def _columns(frame: Frame, rows: PartitionRows, height: float) -> Iterator[Markup]:
    """Invisible columns whose titles give every broker's exact watermark and log end as the column begins."""
    window = frame.window
    changes = sorted({s.time_ns for states in rows.states.values() for s in _within(window, states)})
    starts = [window.start_ns, *(t for t in changes if window.start_ns < t < window.end_ns)]
    if len(starts) > _COLUMNS:
        starts = [window.start_ns + i * window.span_ns // _COLUMNS for i in range(_COLUMNS)]
    times = {node: [s.time_ns for s in states] for node, states in rows.states.items()}
    for start, end in pairwise([*starts, window.end_ns]):
        title = _column_title(window, rows.states, times, start)
        yield frame.bar(start, end, 0, height, title=title, class_="column")


def _column_title(
    window: Window, states: Mapping[int, Sequence[State]], times: Mapping[int, Sequence[int]], at_ns: int
) -> str:
    lines = [window.seconds(at_ns)]
    for node, known in states.items():
        if place := bisect_right(times[node], at_ns):
            s = known[place - 1]
            lines.append(f"broker {node}: hw {s.high_watermark}, log end {s.log_end_offset}")
    return "\n".join(lines)
