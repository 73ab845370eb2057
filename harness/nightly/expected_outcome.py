"""Compares the run of a scenario with what the scenario expects of its generation, as ``seawall scenario matrix`` does.

The verdict of a run considers which anomalies the scenario predicts; the comparison also considers the words for the
outcome, the final logs, and the known differences of a release of Kafka.
"""

from __future__ import annotations

import re
from dataclasses import replace

from harness.errors import InvalidRun
from harness.history.run_directory import RunDirectory
from harness.history.table_file import TooManyRows
from harness.nightly.cells import Cell
from harness.nightly.conclusion import VERDICTS
from harness.nightly.reading import Reading
from harness.nightly.result import CellOutcome
from harness.runner import matrix
from harness.runner.expectation import expectations
from harness.runner.observation import Gathered, observe
from harness.scenario import load

_UNREAD = re.compile(
    r"There is no final read\."
    r"|The final read of \S+ ended at \d+, below the final high watermark \d+\."
)
"""The reasons of :mod:`checkers.completeness.history_is_complete` for a partition that cannot be read to its end."""


def compared(cell: Cell, found: Reading) -> Reading:
    """``found`` of the run of ``cell``, corrected by the prediction of its scenario.

    A run that differs exactly as is known of its release is as predicted, and so is one that is inconclusive only
    because a partition that is stuck, as predicted, could not be read to its end. One that differs otherwise did not
    reproduce the prediction. A violation stays one unless the difference is known. Settings that override the
    generation's make the prediction void.

    A run that lacks a table, or is too large for memory, stays what its verdict says.
    """
    if cell.scenario is None or cell.settings or found.run is None or found.outcome not in VERDICTS:
        return found
    scenario = load(cell.scenario)
    generation = RunDirectory(found.run).manifest().generation
    if generation not in expectations(scenario):
        return found
    try:
        observed = observe(Gathered.recorded(found.run))
    except (InvalidRun, TooManyRows):
        return found
    return _corrected(found, matrix.compared(scenario, generation, observed, found.kafka))


def _corrected(found: Reading, seen: matrix.Cell) -> Reading:
    if seen.agrees:
        if found.outcome is CellOutcome.INCONCLUSIVE and _UNREAD.fullmatch(found.reason or ""):
            return replace(found, outcome=CellOutcome.AS_PREDICTED)
        return found
    if seen.known is not None:
        why = f"It differs as is known of Kafka {seen.release}: {seen.known}"
        return replace(found, outcome=CellOutcome.AS_PREDICTED, reason=why, incidents=(), story=())
    if seen.proves_nothing or found.outcome is CellOutcome.VIOLATION:
        return found
    return replace(found, outcome=CellOutcome.NOT_REPRODUCED, reason=" ".join(seen.differences))
