"""``history.jsonl``: the results of past nights in one file, bounded, which the next nights and their shards read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.nightly import results_file
from harness.nightly.conclusion import FAILURES
from harness.nightly.result import CellResult
from harness.nightly.standing import nights_of

NAME = "history.jsonl"

MOST_NIGHTS = 90
MOST_CELLS = 100_000
"""Of all nights together; the oldest nights are left out first. 100,000 cells take some 80 MB."""


def read(path: Path) -> list[CellResult]:
    """The results of past nights; none if there is no such file.

    Raises:
        InvalidRun: see :func:`harness.nightly.results_file.read`.
    """
    return results_file.read(path) if path.exists() else []


def updated(known: Sequence[CellResult], night: Sequence[CellResult]) -> list[CellResult]:
    """The history with the results of ``night``, which replace what it had of the same night.

    Stories, tries, and the commands of cells that did not fail are left out; ``results.jsonl`` of the night has them.
    """
    names = {one.night for one in night}
    every = [one for one in known if one.night not in names] + [_brief(one) for one in night]
    kept: list[CellResult] = []
    for name in reversed(nights_of(every)[-MOST_NIGHTS:]):
        cells = [one for one in every if one.night == name]
        if kept and len(kept) + len(cells) > MOST_CELLS:
            break
        kept = cells + kept
    return kept


def _brief(result: CellResult) -> CellResult:
    left_out = {} if result.outcome in FAILURES else {"reproduce": ""}
    return result.model_copy(update={"story": (), "tries": (), **left_out})
