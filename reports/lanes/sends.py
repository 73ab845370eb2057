"""Sends by outcome: acknowledged, lost, unknown, refused; one row each, distinguished by place and not by colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from reports.lanes.frame import LEFT, RIGHT, Frame, Lane
from reports.naming import NO_NAMES, Names
from reports.rows import ACKNOWLEDGED, Send
from reports.svg import cross, join, tag, text
from reports.thinning import Bin, binned

_BARS = 22.0
_ROW = 13.0


@dataclass(frozen=True, slots=True)
class Charges:
    """Which sends take part in anomalies.

    Attributes:
        kinds: by value: the kinds of these anomalies.
        incidents: by value: the number of the incident.
        names: of the records.
    """

    kinds: Mapping[int, Sequence[str]]
    incidents: Mapping[int, int] = field(default_factory=dict)
    names: Names = NO_NAMES

    def link(self, sends: Sequence[Send]) -> str | None:
        """Where the page tells of the first of these sends."""
        found = (self.incidents.get(send.value) for send in sends if send.value is not None)
        return next((f"#incident-{number}" for number in found if number), None)


class _TickRow(NamedTuple):
    name: str
    class_: str
    sends: Sequence[Send]


def lane(frame: Frame, sends: Sequence[Send], accused: Charges) -> Lane:
    """Sends by when they completed.

    Args:
        frame: the window.
        sends: of one partition, by time.
        accused: the values in question; a row of its own shows their sends once more.
    """
    by_type = {name: [s for s in sends if s.type == name] for name in (ACKNOWLEDGED, "info", "fail")}
    lower = [_TickRow("info", "info", by_type["info"]), _TickRow("fail", "fail", by_type["fail"])]
    if accused.kinds:
        lower.insert(0, _TickRow("anomaly", "lost", [s for s in sends if s.value in accused.kinds]))
    bars = list(binned(by_type[ACKNOWLEDGED], lambda s: s.time_ns, frame.window, min(frame.bins, 330)))
    most = max((len(b.items) for b in bars), default=1)
    drawn = [_bar(frame, b, most, accused.names) for b in bars]
    scale = [text(RIGHT + 6, 9, f"max {most} / bar", class_="quiet")] if most > 1 else []
    tops = [_BARS + 2 + n * _ROW for n in range(len(lower))]
    ticks = [_ticks(frame, row, y, accused) for row, y in zip(lower, tops, strict=True)]
    words = [text(LEFT - 6, y + 10, row.name, class_="row-name") for row, y in zip(lower, tops, strict=True)]
    words += [
        text(RIGHT + 6, y + 10, f"{len(row.sends):,} in all", class_="quiet")
        for row, y in zip(lower, tops, strict=True)
        if row.sends
    ]
    gutter = join([text(LEFT - 6, 15, "ok", class_="row-name")], scale, words)
    return Lane("sends", _BARS + 2 + len(lower) * _ROW, join(drawn, ticks), gutter)


def _bar(frame: Frame, acks: Bin[Send], most: int, names: Names) -> Markup:
    height = max(2.0, _BARS * len(acks.items) / most)
    x, right = frame.x(acks.start_ns), frame.x(acks.end_ns)
    if len(acks.items) == 1:
        x, right = frame.x(acks.items[0].time_ns) - 0.7, frame.x(acks.items[0].time_ns) + 0.7
    title = outcomes(frame, acks.items, names)
    width = max(1.2, right - x - 0.4)
    return tag("rect", title=title, x=x, y=_BARS - height, width=width, height=height, class_="ok")


def _ticks(frame: Frame, row: _TickRow, y: float, accused: Charges) -> Markup:
    bins = binned(row.sends, lambda s: s.time_ns, frame.window, min(frame.bins, 250))
    return join([_tick(frame, b.items, row.class_, y, accused) for b in bins])


def _tick(frame: Frame, sends: Sequence[Send], class_: str, y: float, accused: Charges) -> Markup:
    x, title = frame.x(sends[0].time_ns), outcomes(frame, sends, accused.names)
    if class_ != "lost":
        shape = {"info": f"M{x:.1f} {y + 2}v9", "fail": f"M{x - 3:.1f} {y + 6.5}h6"}[class_]
        return tag("path", d=shape, title=title, class_=f"glyph {class_}")
    kinds = sorted({kind for s in sends if s.value is not None for kind in accused.kinds.get(s.value, ())})
    many = [text(x + 7, y + 10, f"{len(sends)}", class_="lost-word")] if len(sends) > 1 else []
    mark = tag("path", d=cross(x, y + 6.5, 4.5), class_="glyph lost")
    group = tag("g", mark, *many, title=f"{', '.join(kinds)}\n{title}")
    link = accused.link(sends)
    return tag("a", group, href=link, aria_label=f"{len(sends)} in {', '.join(kinds)}") if link else group


def outcomes(frame: Frame, sends: Sequence[Send], names: Names) -> str:
    """The outcomes of sends, in words: of one send exactly, of several as a count with their ends."""
    first, last = sends[0], sends[-1]
    if len(sends) == 1:
        return f"{frame.window.seconds(first.time_ns)}: {_one(first, names)}"
    span = frame.span(first.time_ns, last.time_ns)
    return f"{span}: {len(sends)} sends\nfirst: {_one(first, names)}\nlast: {_one(last, names)}"


def _one(send: Send, names: Names) -> str:
    place = "" if send.offset is None else f" at offset {send.offset}"
    error = f" ({send.error})" if send.error else ""
    title = names.title(send.value)
    record = f"{names.short(send.value)} ({title})" if title else f"value {send.value}"
    return f"process {send.process}, {send.type}: {record}{place}, acks={send.acks}{error}"
