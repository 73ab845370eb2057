"""Collects the nights below a directory and shows them as static pages, which ``reports/index.py`` renders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import reports.index as pages
from harness.errors import InvalidRun
from harness.nightly import history_file, prose, results_file
from harness.nightly.bank import Bank, seeds
from harness.nightly.conclusion import ERRORS, FAILURES, PASSES, gravity
from harness.nightly.result import CellResult
from harness.nightly.standing import Finding, findings, key_of, nights_of

NAME = "index.html"

MOST_NIGHTS = 45
"""Nights in the matrix and the trends."""

MOST_SERIES = 10_000
MOST_STORIES = 50

MOST_ROWS = 4_000
"""Rows of the table of a night."""

MOST_TARGETS = 40

_MEASURES = (
    ("longest outage", "s", "longest_outage_s"),
    ("recovery", "s", "recovery_s"),
    ("p99", "ms", "p99_ms"),
    ("acked", "per s", "acknowledged_per_s"),
)


@dataclass(frozen=True, slots=True)
class Nights:
    """The cells of some nights.

    Attributes:
        results: with reports relative to the index; those of past nights whose files are elsewhere have none.
        here: the nights whose own results are here, and which get a page each.
    """

    results: Sequence[CellResult]
    here: frozenset[str]

    @classmethod
    def of_one(cls, results: Sequence[CellResult], history: Sequence[CellResult]) -> Nights:
        """One night, whose directory the index is in, and those that the history knows."""
        here = frozenset(one.night for one in results)
        return cls([*(_elsewhere(one) for one in history if one.night not in here), *results], here)

    @classmethod
    def below(cls, directory: Path) -> Nights:
        """Every night below a directory, at most two levels down, and those in its ``history.jsonl``.

        Of a cell that is in several files the one in the newest file counts: that of the merged night.

        Raises:
            InvalidRun: there is none, or a file cannot be read.
        """
        patterns = ("", "*/", "*/*/")
        files = {path for one in patterns for path in directory.glob(f"{one}{results_file.NAME}")}
        known = history_file.read(directory / history_file.NAME)
        if not files and not known:
            raise InvalidRun(
                f"{directory} holds no {results_file.NAME}, nor does a directory in it.", "Name that of the nights."
            )
        found = {(one.night, one.cell): _elsewhere(one) for one in known}
        here = set()
        for path in sorted(files, key=lambda one: (one.stat().st_mtime_ns, one)):
            for one in results_file.read(path):
                found[one.night, one.cell] = _moved(one, path.parent, directory)
                here.add(one.night)
        return cls(list(found.values()), frozenset(here))


def write(directory: Path, nights: Nights, bank: Bank = ()) -> Path:
    """Write the index and a page for each night that is here; return the path of the index.

    Raises:
        EnvironmentFault: a page cannot be written.
    """
    names = nights_of(nights.results)
    found = findings(nights.results, seeds(bank))
    by_night: dict[str, list[CellResult]] = {name: [] for name in names}
    for one in sorted(nights.results, key=gravity):
        by_night[one.night].append(one)
    rows = {name: _night_row(name, cells, name in nights.here) for name, cells in by_night.items()}
    for name in nights.here:
        pages.write_night(directory / _page(name), _night(rows[name], by_night[name], found))
    path = directory / NAME
    pages.write_index(path, _index(rows, by_night, found))
    return path


# ------------------------------------------------------------------------------------------------------- all nights


def _index(
    rows: Mapping[str, pages.NightRow], by_night: Mapping[str, Sequence[CellResult]], found: Sequence[Finding]
) -> pages.Index:
    shown = list(rows)[-MOST_NIGHTS:]
    cells = {name: by_night[name] for name in shown}
    series = _series(cells, found)
    notes = []
    if len(shown) < len(rows):
        notes.append(f"The matrix and the trends show the latest {len(shown)} of {len(rows)} nights.")
    if len(series) > MOST_SERIES:
        notes.append(f"The matrix shows {MOST_SERIES:,} of {len(series):,} series, those that failed first.")
    return pages.Index(
        nights=[rows[name] for name in shown],
        findings=[_finding_row(one) for one in found],
        series=series[:MOST_SERIES],
        trends=_trends(cells),
        notes=notes,
    )


def _night_row(night: str, cells: Sequence[CellResult], is_here: bool) -> pages.NightRow:
    outcomes = {one.outcome for one in cells}
    css = next((css for css, group in (("f", FAILURES), ("e", ERRORS), ("p", PASSES)) if outcomes & group), "n")
    started = min((one.started for one in cells if one.started), default="")
    page = pages.link(_page(night)) if is_here else None
    return pages.NightRow(night, started[:16].replace("T", " "), prose.counts(cells), len(cells), css, page)


def _finding_row(found: Finding) -> pages.FindingRow:
    drawn = sorted(found.seeds)
    words = ", ".join(map(str, drawn[:3])) + (f" and {len(drawn) - 3} more" if len(drawn) > 3 else "")
    return pages.FindingRow(
        standing=found.standing.value,
        name=_name(found.latest),
        incidents=prose.incidents(found.latest.incidents) or found.latest.outcome.value,
        first_seen=found.first_seen,
        last_seen=found.last_seen,
        passes=found.passes,
        seeds=words,
        reproduce=found.latest.reproduce,
        link=_link(found.latest),
    )


def _series(by_night: Mapping[str, Sequence[CellResult]], found: Sequence[Finding]) -> list[pages.SeriesRow]:
    """A row each: those with findings first, the most urgent at the top, then by name."""
    squares: dict[str, dict[str, list[CellResult]]] = {}
    for night, cells in by_night.items():
        for one in cells:
            squares.setdefault(one.series, {}).setdefault(night, []).append(one)
    urgency: dict[str, tuple[int, str]] = {}
    for number, finding in enumerate(found):
        urgency.setdefault(finding.key[0], (number, finding.standing.value))
    nothing = (len(found), "")
    rows = []
    for series in sorted(squares, key=lambda one: (urgency.get(one, nothing)[0], one)):
        nights = squares[series]
        name = _name(next(iter(nights.values()))[0])
        rows.append(
            pages.SeriesRow(name, urgency.get(series, nothing)[1], [_square(nights.get(one)) for one in by_night])
        )
    return rows


def _square(cells: Sequence[CellResult] | None) -> pages.Square | None:
    if not cells:
        return None
    gravest = min(cells, key=gravity)
    count = sum(one.outcome is gravest.outcome for one in cells)
    link = _link(gravest) if gravest.outcome not in PASSES else None
    return pages.Square(gravest.outcome.value, count, len(cells), link)


def _trends(by_night: Mapping[str, Sequence[CellResult]]) -> Mapping[str, Sequence[pages.Trend]]:
    measured: dict[str, dict[str, dict[str, list[float]]]] = {}
    for night, cells in by_night.items():
        for one in cells:
            for _, _, field in _MEASURES:
                if (value := getattr(one.measures, field)) is not None:
                    measured.setdefault(prose.system(one), {}).setdefault(field, {}).setdefault(night, []).append(value)
    return {
        system: [
            pages.Trend(name, unit, [_median(measured[system].get(field, {}).get(night)) for night in by_night])
            for name, unit, field in _MEASURES
        ]
        for system in sorted(measured)[:MOST_TARGETS]
    }


def _median(values: Sequence[float] | None) -> float | None:
    return median(values) if values else None


# -------------------------------------------------------------------------------------------------------- one night


def _night(row: pages.NightRow, cells: Sequence[CellResult], found: Sequence[Finding]) -> pages.Night:
    standings = {one.key: one.standings[row.night].value for one in found if row.night in one.standings}
    failures = [one for one in cells if one.outcome in FAILURES]
    versions = sorted({f"{name} {version}" for one in cells for name, version in one.versions.items()})
    rows = _folded(cells)
    return pages.Night(
        row=row,
        stories=[_story(one, standings.get(key_of(one) or ("", ""), "")) for one in failures[:MOST_STORIES]],
        stories_hidden=max(0, len(failures) - MOST_STORIES),
        cells=[_cell_row(some, standings.get(key_of(some[0]) or ("", ""), "")) for some in rows[:MOST_ROWS]],
        cells_hidden=max(0, len(rows) - MOST_ROWS),
        measures=[f"{name}, {unit}" for name, unit, _ in _MEASURES],
        versions=prose.shortened(", ".join(versions), 400),
        back=pages.link(NAME),
    )


def _story(result: CellResult, standing: str) -> pages.StoryRow:
    return pages.StoryRow(
        title=prose.named(result),
        headline=prose.headline(result),
        standing=standing,
        story=[prose.shortened(sentence, 1_000) for sentence in result.story[:20]],
        reproduce=result.reproduce,
        link=_link(result),
    )


def _folded(cells: Sequence[CellResult]) -> list[list[CellResult]]:
    """The cells in their order, with those of a series that passed in one place."""
    rows: dict[tuple[str, str], list[CellResult]] = {}
    for one in cells:
        is_folded = one.outcome in PASSES and not one.bank
        rows.setdefault((one.outcome.value, one.series if is_folded else f"cell {one.cell}"), []).append(one)
    return list(rows.values())


def _cell_row(cells: Sequence[CellResult], standing: str) -> pages.CellRow:
    first = cells[0]
    measured = [[getattr(one.measures, field) for one in cells] for _, _, field in _MEASURES]
    values = [_median([value for value in some if value is not None]) for some in measured]
    seed = "" if first.seed is None else str(first.seed)
    return pages.CellRow(
        outcome=first.outcome.value,
        standing=standing,
        name=_name(first),
        seed=f"{len(cells):,} cells" if len(cells) > 1 else f"{seed} (bank)" if first.bank else seed,
        detail=prose.shortened(prose.incidents(first.incidents) or first.reason, 300),
        measures=["" if value is None else f"{value:,.4g}" for value in values],
        seconds=prose.seconds(sum(one.seconds for one in cells)),
        link=_link(first) if len(cells) == 1 else None,
    )


# ------------------------------------------------------------------------------------------------------------ names


def _name(result: CellResult) -> pages.Name:
    return pages.Name(result.target, result.generation or "", result.scenario or result.kind, prose.settings(result))


def _link(result: CellResult) -> str | None:
    return pages.link(result.report) if result.report else None


def _page(night: str) -> str:
    """The file of a night's page; a digest where its name cannot be that of a file."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}", night):
        return f"night-{night}.html"
    return f"night-{hashlib.sha256(night.encode(errors='replace')).hexdigest()[:16]}.html"


def _elsewhere(result: CellResult) -> CellResult:
    return result.model_copy(update={"run": None, "report": None})


def _moved(result: CellResult, source: Path, directory: Path) -> CellResult:
    if result.report is None or not (report := source / result.report).is_file():
        return result.model_copy(update={"report": None})
    return result.model_copy(update={"report": Path(os.path.relpath(report, directory)).as_posix()})
