"""Faults as bars below their names: hollow from injected to proven, full from there until healed.

A thin line runs on both sides, from when the fault was aimed to when its healing was proven. Of faults
that are too many to be named each kind has a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from reports.lanes.frame import GLYPH, LEFT, RIGHT, Frame, Lane
from reports.rows import Fault
from reports.svg import join, tag, text

_MOST_ROWS = 10
_ROW = 22.0
_BAR = 13.0
"""How far below a row's top its bar begins."""
_THICK = 6.0
_KIND_ROW = 15.0


def lane(frame: Frame, faults: Sequence[Fault]) -> Lane:
    """Every fault that overlaps the window, in as few rows as keep bars and names apart, or in one for each kind."""
    shown = [f for f in faults if frame.window.overlaps(f.aimed_ns, ends_ns(frame, f))]
    rows: list[float] = []
    of_faults = [_row(rows, *_extent(frame, fault)) for fault in shown]
    if len(rows) > _MOST_ROWS:
        return _by_kind(frame, shown)
    drawn = [_named(frame, fault, _ROW * row) for fault, row in zip(shown, of_faults, strict=True)]
    return Lane("faults", _ROW * max(1, len(rows)), join(drawn) or text(LEFT + 2, 12, "none", class_="quiet"))


def _by_kind(frame: Frame, shown: Sequence[Fault]) -> Lane:
    counts = Counter(fault.kind for fault in shown)
    tops = {kind: _KIND_ROW * (1 + row) - _BAR for row, kind in enumerate(sorted(counts))}
    names = [text(LEFT - 6, tops[kind] + _BAR + _THICK, f"{counts[kind]:,} {kind}", class_="row-name") for kind in tops]
    bars = [tag("g", *_bar(frame, one, tops[one.kind]), title=title(frame, one), class_="fault") for one in shown]
    return Lane("faults", _KIND_ROW * (1 + len(tops)), join(bars), join(names))


def ends_ns(frame: Frame, fault: Fault) -> int:
    """When a fault ended: healed, or never, which is the end of the window."""
    return max(frame.window.end_ns, fault.aimed_ns) if fault.healed_ns is None else fault.healed_ns


def label(fault: Fault) -> str:
    """Its name, kind and nodes, and a warning where it was not proven: ``cut partition 0,1``."""
    words = f"{fault.name} {fault.kind} {','.join(fault.nodes)}"
    return words if fault.proven else f"⚠ {words} UNPROVEN"


def title(frame: Frame, fault: Fault) -> str:
    """All its times and proofs."""
    return "\n".join(_lines(frame, fault))


def _lines(frame: Frame, fault: Fault) -> Iterator[str]:
    yield f"{fault.name}: {fault.kind} on {', '.join(fault.nodes)} {fault.parameters}"
    steps = (("aimed", fault.aimed_ns, None), ("injected", fault.injected_ns, None))
    proofs = (("proven", fault.proven_ns, fault.proof), ("healed", fault.healed_ns, None))
    for name, time_ns, seen in (*steps, *proofs, ("healing proven", fault.heal_proven_ns, fault.heal_proof)):
        when = "never" if time_ns is None else frame.window.seconds(time_ns)
        yield f"{name} {when}" + (f": {seen}" if seen else "")


def _row(rows: list[float], left: float, right: float) -> int:
    """The first row that is free from ``left`` on; it is taken up to ``right``."""
    for number, taken in enumerate(rows):
        if taken <= left:
            rows[number] = right
            return number
    rows.append(right)
    return len(rows) - 1


def _extent(frame: Frame, fault: Fault) -> tuple[float, float]:
    right = frame.x(max(fault.last_ns, ends_ns(frame, fault)))
    return frame.x(fault.aimed_ns), max(right, _name_x(frame, fault) + _name_width(fault)) + 8


def _name_x(frame: Frame, fault: Fault) -> float:
    """Where the name begins: where the bar does, unless it would leave the strip."""
    return min(frame.x(fault.injected_ns or fault.aimed_ns), RIGHT - _name_width(fault))


def _name_width(fault: Fault) -> float:
    return len(label(fault)) * GLYPH


def _named(frame: Frame, fault: Fault, y: float) -> Markup:
    class_ = "label" if fault.proven else "label unproven-word"
    name = text(_name_x(frame, fault), y + 9, label(fault), class_=class_)
    return tag("g", *_bar(frame, fault, y), name, title=title(frame, fault), class_="fault")


def _bar(frame: Frame, fault: Fault, y: float) -> Iterator[Markup]:
    yield _whisker(frame, fault.aimed_ns, fault.last_ns, y)
    if fault.injected_ns is None:
        return
    end_ns = ends_ns(frame, fault)
    if fault.proven_ns is None:
        yield frame.bar(fault.injected_ns, end_ns, y + _BAR, _THICK, class_="fault-unproven")
        return
    yield frame.bar(fault.injected_ns, end_ns, y + _BAR, _THICK, class_="fault-injected")
    yield frame.bar(min(fault.proven_ns, end_ns), end_ns, y + _BAR, _THICK, class_="fault-proven")


def _whisker(frame: Frame, start_ns: int, end_ns: int, y: float) -> Markup:
    level = y + _BAR + _THICK / 2
    return tag("line", x1=frame.x(start_ns), x2=frame.x(end_ns), y1=level, y2=level, class_="whisker")
