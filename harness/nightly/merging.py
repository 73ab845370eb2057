"""Puts the shards of a night together, once they are known to be of one night and plan, and complete."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness.errors import InvalidRun, UsageError
from harness.nightly import results_file
from harness.nightly.conclusion import gravity
from harness.nightly.result import CellResult

_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")


ByDirectory = dict[Path, list[CellResult]]


def shards(directories: Sequence[Path], *, partial: bool = False) -> tuple[ByDirectory, list[str]]:
    """The cells of all shards by their directory, and a sentence for each missing shard.

    Args:
        directories: those of the shards of a night, or that of a night that has none.
        partial: whether shards may be missing.

    Raises:
        UsageError: they are not of one night and plan, a cell is there twice, or a shard is missing.
        InvalidRun: a directory has no readable results, or all of them are empty.
    """
    by_directory = {place: results_file.read(place / results_file.NAME) for place in directories}
    if len(by_directory) < len(directories):
        raise UsageError("a directory is named twice.", "Name each shard once.")
    if not any(by_directory.values()):
        raise InvalidRun(f"there is no cell in {', '.join(map(str, directories))}.", "Run the night first.")
    for attribute, noun in (("night", "night"), ("plan", "plan")):
        _require_one(by_directory, attribute, noun)
    _require_distinct(by_directory)
    notes = [f"{one} of the night is missing: its cells are not in here." for one in _missing(by_directory)]
    if notes and not partial:
        raise UsageError(notes[0], "Name its directory, or merge what there is with --partial.")
    return by_directory, notes


def merged(by_directory: ByDirectory, out: Path) -> list[CellResult]:
    """The cells of all shards, gravest first, with paths relative to ``out``."""
    placed = (_placed(one, place, out) for place, cells in by_directory.items() for one in cells)
    return sorted(placed, key=gravity)


def copies(by_directory: ByDirectory, base: str) -> dict[str, str]:
    """By cell, where its run is, when the directories of all shards were copied to the URI ``base``."""
    found = (one for cells in by_directory.values() for one in cells)
    return {one.cell: f"{base.rstrip('/')}/{one.run}" for one in found if one.run is not None}


def _require_one(by_directory: ByDirectory, attribute: str, noun: str) -> None:
    known: dict[str, Path] = {}
    for place, cells in by_directory.items():
        for one in cells:
            known.setdefault(getattr(one, attribute), place)
    if len(known) > 1:
        (one_value, one_place), (other, other_place), *_ = known.items()
        told = f"{one_place} is of the {noun} {one_value[:20]!r}, {other_place} of {other[:20]!r}."
        raise UsageError(told, f"Merge the shards of one {noun}; see --night.")


def _require_distinct(by_directory: ByDirectory) -> None:
    known: dict[str, Path] = {}
    for place, cells in by_directory.items():
        for one in cells:
            if one.cell in known:
                raise UsageError(
                    f"the cell {one.cell!r} is in {known[one.cell]} and in {place}.",
                    "Run the shards with the same --history, --night and number of shards.",
                )
            known[one.cell] = place


def _missing(by_directory: ByDirectory) -> list[str]:
    """The shards that no directory is of; one without a cell does not say which it is."""
    named = {one.shard for cells in by_directory.values() for one in cells if one.shard}
    found = [match for name in sorted(named) if (match := _SHARD.fullmatch(name))]
    totals = {int(match[2]) for match in found}
    if len(totals) > 1:
        raise UsageError(
            f"these are shards of {' and of '.join(map(str, sorted(totals)))}.", "Merge shards of one division."
        )
    if not totals:
        return []
    [total] = totals
    absent = sorted(set(range(1, total + 1)) - {int(match[1]) for match in found})
    empty = sum(not cells for cells in by_directory.values())
    return [f"shard {number}/{total}" for number in absent[empty:]]


def _placed(result: CellResult, directory: Path, out: Path) -> CellResult:
    """The result with paths relative to ``out`` instead of ``directory``."""

    def moved(path: str | None) -> str | None:
        if path is None:
            return None
        return Path(os.path.relpath(directory / path, out)).as_posix()

    tries = tuple(one.model_copy(update={"run": moved(one.run)}) for one in result.tries)
    return result.model_copy(update={"run": moved(result.run), "report": moved(result.report), "tries": tries})
