"""All that is measured of how well the checkers detect, as one file: the matrix, and each bug by tier of evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.detection.by_tier import ByTier, tiers_from_json, tiers_to_json
from harness.detection.matrix import Matrix, from_json, to_json
from harness.detection.table import TABLE


class Figures(NamedTuple):
    """What was measured; ``tiers``: by the bug's name."""

    matrix: Matrix
    tiers: Mapping[str, ByTier]


def joined(known: Figures, measured: Figures) -> Figures:
    """The known figures, with new ones in place of old ones."""
    scores = {**known.matrix.scores, **measured.matrix.scores}
    tiers = {**known.tiers, **measured.tiers}
    return Figures(
        Matrix(
            {bug.name: scores[bug.name] for bug in TABLE if bug.name in scores},
            {**known.matrix.controls, **measured.matrix.controls},
        ),
        {bug.name: tiers[bug.name] for bug in TABLE if bug.name in tiers},
    )


def figures_to_json(figures: Figures) -> dict[str, Any]:
    """The figures as plain data, as ``reports/power.json`` has them."""
    return {**to_json(figures.matrix), "tiers": tiers_to_json(figures.tiers)}


def figures_from_json(document: Mapping[str, Any]) -> Figures:
    """The inverse of :func:`figures_to_json`."""
    return Figures(from_json(document), tiers_from_json(document["tiers"]))
