"""Three nights, from the second on with a bug switched on in one series, and what becomes of four findings."""

from __future__ import annotations

from harness.nightly.result import CellResult
from tests.harness.nightly.cells import cell, lossy

FIRST, SECOND, THIRD = "2026-03-03", "2026-03-04", "2026-03-05"


def three_nights() -> list[CellResult]:
    """``new-bug`` fails on the third night, ``old-bug`` from the second on, ``at-times`` on the first and third,
    ``mended`` on the first; ``sound`` passes, and ``left-out`` fails on the first and does not run again.
    """
    return [
        *(lossy(FIRST, 1, scenario=name) for name in ("at-times", "mended", "left-out")),
        *(cell(FIRST, 1, scenario=name) for name in ("new-bug", "old-bug", "sound")),
        *(cell(SECOND, 2, scenario=name) for name in ("new-bug", "at-times", "sound")),
        lossy(SECOND, 2, scenario="old-bug"),
        *(cell(SECOND, seed, scenario="mended") for seed in (1, 2)),
        *(lossy(THIRD, 3, scenario=name) for name in ("new-bug", "old-bug", "at-times")),
        *(cell(THIRD, 3, scenario=name) for name in ("mended", "sound")),
    ]
