"""Renders nights of runs as static pages: an index of all nights, and one page for each.

Every table has a filter for each column where scripts run; without them everything can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from reports import static_page
from reports.scale import Scale
from reports.svg import number, tag

LETTERS: Final[Mapping[str, str]] = {
    "violation": "V",
    "disagreement": "D",
    "not-reproduced": "R",
    "error": "E",
    "invalid": "I",
    "inconclusive": "?",
    "timeout": "T",
    "environment": "M",
    "not-run": "-",
    "skipped": "s",
    "as-predicted": "p",
    "pass": "·",
}
"""How the matrix abbreviates outcomes."""

_CLASSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("violation", "disagreement", "not-reproduced"), "f"),
    **dict.fromkeys(("error", "invalid", "inconclusive", "timeout", "environment"), "e"),
    **dict.fromkeys(("not-run", "skipped"), "n"),
    **dict.fromkeys(("as-predicted", "pass"), "p"),
}

_SPARK_WIDTH, _SPARK_HEIGHT = 150, 30


@dataclass(frozen=True, slots=True)
class Name:
    """What ran: a series without its seeds."""

    target: str
    generation: str
    scenario: str
    settings: str


@dataclass(frozen=True, slots=True)
class Square:
    """The cells of one series on one night.

    Attributes:
        outcome: the gravest.
        count: how many have it, of ``cells``.
        link: a report, relative to the page; None: there is none.
    """

    outcome: str
    count: int
    cells: int
    link: str | None = None

    @property
    def letter(self) -> str:
        """See :data:`LETTERS`."""
        return LETTERS.get(self.outcome, "?")

    @property
    def css(self) -> str:
        """The class of its colour."""
        return _CLASSES.get(self.outcome, "e")


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A row of the matrix; None where the series had no cell on a night."""

    name: Name
    standing: str
    squares: Sequence[Square | None]


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One way in which a series failed, across nights.

    Attributes:
        passes: cells of the series that have passed since it was seen last.
        seeds: those that have shown it, in words.
    """

    standing: str
    name: Name
    incidents: str
    first_seen: str
    last_seen: str
    passes: int
    seeds: str
    reproduce: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Trend:
    """The medians of a measure of one target by night; None where no cell measured it."""

    measure: str
    unit: str
    points: Sequence[float | None]

    @property
    def latest(self) -> str:
        """The last value in words."""
        known = [one for one in self.points if one is not None]
        return f"{known[-1]:,.4g} {self.unit}" if known else ""

    @property
    def drawn(self) -> Markup:
        """A line with a dot at its end; gaps where nothing was measured."""
        return _spark(self.points, self.measure)


@dataclass(frozen=True, slots=True)
class NightRow:
    """A night in a line; ``link`` is its page."""

    night: str
    started: str
    counts: str
    cells: int
    css: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Index:
    """All nights, the latest last.

    Attributes:
        nights: those that the matrix shows, a column each.
        trends: by target, those of each measure.
        notes: what the page leaves out, a sentence each.
    """

    nights: Sequence[NightRow]
    findings: Sequence[FindingRow]
    series: Sequence[SeriesRow]
    trends: Mapping[str, Sequence[Trend]]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell of a night, or all cells of a series that passed."""

    outcome: str
    standing: str
    name: Name
    seed: str
    detail: str
    measures: Sequence[str]
    seconds: str
    link: str | None

    @property
    def css(self) -> str:
        """The class of its colour."""
        return _CLASSES.get(self.outcome, "e")


@dataclass(frozen=True, slots=True)
class StoryRow:
    """A failure with its story."""

    title: str
    headline: str
    standing: str
    story: Sequence[str]
    reproduce: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Night:
    """A night with all its cells, gravest first."""

    row: NightRow
    stories: Sequence[StoryRow]
    stories_hidden: int
    cells: Sequence[CellRow]
    cells_hidden: int
    measures: Sequence[str]
    versions: str
    back: str


def write_index(path: Path, index: Index) -> None:
    """Replace the page of all nights.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    static_page.write(path, "index.html.j2", index=index, letters=LETTERS, classes=_CLASSES)


def write_night(path: Path, night: Night) -> None:
    """Replace the page of one night.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    static_page.write(path, "night.html.j2", night=night)


def link(path: str) -> str:
    """A path as a relative reference: no scheme, no host, nothing that would run."""
    return "./" + quote(path.encode(errors="replace"), safe="/.-_~")


def _spark(points: Sequence[float | None], name: str) -> Markup:
    known = [one for one in points if one is not None]
    if not known:
        return Markup("")
    down = Scale(0, max(known) or 1, _SPARK_HEIGHT - 3, 3)
    across = Scale(0, max(1, len(points) - 1), 3, _SPARK_WIDTH - 4)
    places = [None if one is None else (across.at(i), down.at(one)) for i, one in enumerate(points)]
    last = next(place for place in reversed(places) if place is not None)
    return tag(
        "svg",
        tag("path", d=_line(places), class_="line"),
        tag("circle", cx=last[0], cy=last[1], r=2.5),
        title=f"{name}, by night: {', '.join('none' if one is None else f'{one:,.4g}' for one in points)}",
        viewBox=f"0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}",
        class_="spark",
        role="img",
    )


def _line(places: Sequence[tuple[float, float] | None]) -> str:
    pieces, is_drawn = [], False
    for place in places:
        if place is not None:
            pieces.append(f"{'L' if is_drawn else 'M'}{number(place[0])} {number(place[1])}")
            if not is_drawn:
                pieces.append("h0")
        is_drawn = place is not None
    return "".join(pieces)
