"""SVG as text: one function makes an element, everything else is arithmetic on strings.

Every string that goes in is escaped unless it already is markup, so a topic called ``<script>`` stays text.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

Number = int | float


def number(value: Number) -> str:
    """A coordinate with at most one decimal: a tenth of a pixel is finer than any screen."""
    return f"{value:.1f}".removesuffix(".0")


def tag(name: str, *children: Markup | str, title: str | None = None, **attributes: Number | str | None) -> Markup:
    """An element. ``stroke_width`` becomes ``stroke-width``, ``class_`` becomes ``class``; None is left out.

    Args:
        name: the element's name.
        children: its content, in order; plain strings are escaped.
        title: what a pointer resting on the element reads, as its first child ``<title>``.
        attributes: the element's attributes; numbers are rounded to a tenth.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = (f"<title>{escape(title)}</title>" if title else "") + "".join(map(escape, children))
    element = f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"
    return Markup(element)  # noqa: S704 - what came in has been escaped, and a Markup for each piece would be slow


def join(*groups: Sequence[Markup]) -> Markup:
    """The pieces of all groups, one after the other."""
    return Markup("").join(piece for group in groups for piece in group)


def text(x: Number, y: Number, words: str, class_: str | None = None, title: str | None = None) -> Markup:
    """Words whose baseline starts at (x, y)."""
    return tag("text", words, x=x, y=y, class_=class_, title=title)


def shifted(down: Number, *children: Markup) -> Markup:
    """The children, moved down."""
    return tag("g", *children, transform=f"translate(0,{number(down)})")


def steps(points: Sequence[tuple[Number, Number]], until: Number) -> str:
    """Path data of a line that holds each value until the next point, and the last one until x = ``until``."""
    first, rest = points[0], points[1:]
    pieces = [f"M{number(first[0])} {number(first[1])}", *(f"H{number(x)}V{number(y)}" for x, y in rest)]
    return "".join(pieces) + f"H{number(until)}"


def cross(x: Number, y: Number, arm: Number) -> str:
    """Path data of a cross around (x, y)."""
    x0, x1, y0, y1 = (number(v) for v in (x - arm, x + arm, y - arm, y + arm))
    return f"M{x0} {y0}L{x1} {y1}M{x0} {y1}L{x1} {y0}"


def wedge(x: Number, y: Number, width: Number, height: Number) -> str:
    """Path data of a triangle that stands on its tip at (x, y)."""
    top = number(y - height)
    return f"M{number(x)} {number(y)}L{number(x - width / 2)} {top}H{number(x + width / 2)}Z"


def _text(value: Number | str) -> str:
    return value if isinstance(value, str) else number(value)
