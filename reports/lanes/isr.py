"""The in-sync replicas: a band as high as the ISR is large, with its members written in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from reports.lanes.frame import LEFT, RIGHT, Frame, Lane, ends
from reports.run import PartitionRows
from reports.svg import join, tag, text

_HEIGHT = 26.0


class Version(NamedTuple):
    """A stretch with one ISR; ``source`` names the node that reported it."""

    start_ns: int
    end_ns: int
    members: tuple[int, ...]
    source: str


def lane(frame: Frame, rows: PartitionRows) -> Lane:
    """The ISR as the controller decided it, or, where it has no rows, as the leaders knew it."""
    known = versions(rows, frame.window.end_ns)
    largest = max((len(v.members) for v in known), default=0) or 1  # a controller may have named no ISR at all
    seen = [_version(frame, v, largest) for v in known if frame.window.overlaps(v.start_ns, v.end_ns)]
    size = [text(LEFT - 6, 12, f"size 0-{largest}", class_="row-name")]
    floor = [tag("line", x1=LEFT, x2=RIGHT, y1=_HEIGHT - 2, y2=_HEIGHT - 2, class_="floor")]
    none = text(LEFT + 2, 12, "unknown", class_="quiet")
    return Lane("ISR", _HEIGHT, join(floor, seen) if known else none, join(size if known else []))


def versions(rows: PartitionRows, until_ns: int) -> Sequence[Version]:
    """Every version of the ISR, by time."""
    decided = [(c.time_ns, c.isr, "the controller") for c in rows.changes]
    believed = [
        (s.time_ns, s.isr, f"broker {s.node} as leader")
        for states in rows.states.values()
        for s in states
        if s.role == "leader" and s.isr is not None
    ]
    told = [(s.time_ns, s.isr, "as clients were told") for s in rows.told if s.isr is not None]
    source = decided or sorted(believed) or told
    firsts = [next(group) for _, group in groupby(source, key=lambda v: set(v[1]))]
    until = ends([t for t, _, _ in firsts], until_ns)
    return [Version(t, end, tuple(sorted(m)), by) for (t, m, by), end in zip(firsts, until, strict=True)]


def _version(frame: Frame, version: Version, largest: int) -> Markup:
    members = ",".join(map(str, version.members)) or "empty"
    title = f"ISR {{{members}}} ({version.source}), {frame.span(version.start_ns, version.end_ns)}"
    height = (_HEIGHT - 4) * len(version.members) / largest
    small = " shrunk" if len(version.members) < largest else ""
    area = frame.bar(version.start_ns, version.end_ns, _HEIGHT - 2 - height, height, title=title, class_=f"isr{small}")
    start, end = max(version.start_ns, frame.window.start_ns), min(version.end_ns, frame.window.end_ns)
    words = [text(frame.x(start) + 3, _HEIGHT - 6, members)] if frame.fits(members, start, end) else []
    return tag("g", area, *words)
