"""Sends by outcome: acknowledged, lost, unknown, refused; one row each, distinguished by place and not by colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from markupsafe import Markup

from reports.lanes.frame import LEFT, RIGHT, Frame, Lane
from reports.rows import ACKNOWLEDGED, Send
from reports.svg import cross, join, tag, text
from reports.thinning import Bin, binned

_BARS = 22.0
_ROW = 13.0


Accused = Mapping[int, AbstractSet[str]]
"""By value: the kinds of anomalies that its send takes part in."""


class _TickRow(NamedTuple):
    name: str
    class_: str
    sends: Sequence[Send]


def lane(frame: Frame, sends: Sequence[Send], accused: Accused) -> Lane:
    """Sends by when they completed.

    Args:
        frame: the window.
        sends: of one partition, by time.
        accused: the values in question; a row of its own shows their sends once more.
    """
    by_type = {name: [s for s in sends if s.type == name] for name in (ACKNOWLEDGED, "info", "fail")}
    marked = [s for s in sends if s.value in accused]
    rows = [_bars(frame, by_type[ACKNOWLEDGED])]
    lower = [_TickRow("info", "info", by_type["info"]), _TickRow("fail", "fail", by_type["fail"])]
    if accused:
        lower.insert(0, _TickRow("anomaly", "lost", marked))
    rows += [_ticks(frame, row, _BARS + 2 + n * _ROW, accused) for n, row in enumerate(lower)]
    return Lane("sends", _BARS + 2 + len(lower) * _ROW, join(rows))


def _bars(frame: Frame, sends: Sequence[Send]) -> Markup:
    """Acknowledgements per bin; a few are ticks of full height, many a histogram."""
    bins = list(binned(sends, lambda s: s.time_ns, frame.window, min(frame.bins, 330)))
    most = max((len(b.items) for b in bins), default=1)
    bars = [_bar(frame, b, most) for b in bins]
    scale = [text(RIGHT + 6, 9, f"max {most} / bar", class_="quiet")] if most > 1 else []
    return join([text(LEFT - 6, 15, "ok", class_="row-name")], bars, scale)


def _bar(frame: Frame, acks: Bin[Send], most: int) -> Markup:
    height = max(2.0, _BARS * len(acks.items) / most)
    x, right = frame.x(acks.start_ns), frame.x(acks.end_ns)
    if len(acks.items) == 1:
        x, right = frame.x(acks.items[0].time_ns) - 0.7, frame.x(acks.items[0].time_ns) + 0.7
    title = outcomes(frame, acks.items)
    width = max(1.2, right - x - 0.4)
    return tag("rect", title=title, x=x, y=_BARS - height, width=width, height=height, class_="ok")


def _ticks(frame: Frame, row: _TickRow, y: float, accused: Accused) -> Markup:
    bins = binned(row.sends, lambda s: s.time_ns, frame.window, min(frame.bins, 250))
    marks = [_tick(frame, b.items, row.class_, y, accused) for b in bins]
    count = [text(RIGHT + 6, y + 10, f"{len(row.sends):,} in all", class_="quiet")] if row.sends else []
    return join([text(LEFT - 6, y + 10, row.name, class_="row-name")], marks, count)


def _tick(frame: Frame, sends: Sequence[Send], class_: str, y: float, accused: Accused) -> Markup:
    x, title = frame.x(sends[0].time_ns), outcomes(frame, sends)
    if class_ != "lost":
        shape = {"info": f"M{x:.1f} {y + 2}v9", "fail": f"M{x - 3:.1f} {y + 6.5}h6"}[class_]
        return tag("path", d=shape, title=title, class_=class_)
    kinds = sorted({kind for s in sends if s.value is not None for kind in accused.get(s.value, ())})
    many = [text(x + 7, y + 10, f"{len(sends)}", class_="lost-word")] if len(sends) > 1 else []
    mark = tag("path", d=cross(x, y + 6.5, 4.5), class_="lost")
    return tag("g", mark, *many, title=f"{', '.join(kinds)}\n{title}")


def outcomes(frame: Frame, sends: Sequence[Send]) -> str:
    """The outcomes of sends, in words: of one send exactly, of several as a count with their ends."""
    first, last = sends[0], sends[-1]
    if len(sends) == 1:
        return f"{frame.window.seconds(first.time_ns)}: {_one(first)}"
    span = frame.span(first.time_ns, last.time_ns)
    return f"{span}: {len(sends)} sends\nfirst: {_one(first)}\nlast: {_one(last)}"


def _one(send: Send) -> str:
    place = "" if send.offset is None else f" at offset {send.offset}"
    error = f" ({send.error})" if send.error else ""
    return f"process {send.process}, {send.type}: value {send.value}{place}, acks={send.acks}{error}"
