"""How often each bug is found by the evidence of each tier: the same runs, judged again with evidence withheld.

Every bug is tried in the cell in which the whole evidence finds it most, with seeds that the matrix has not used, so
that the choice of the cell does not flatter. A seed counts whose run without the bug passes by the whole evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.checker import EvidenceTier
from harness.detection.matrix import Matrix, best_cell, cell_named, first_seed, name_of, performed
from harness.detection.table import TABLE
from harness.detection.trial import SCENARIO, Cell, Trial, attempt_in
from harness.model import STACK
from harness.replication.bugs import Bug

TIERS: Mapping[EvidenceTier, str] = {
    EvidenceTier.CLIENTS: "clients",
    EvidenceTier.METADATA: "metadata",
    EvidenceTier.LOGS: "logs",
    EvidenceTier.SAMPLES: "samples",
    EvidenceTier.BROKERS: "brokers",
}
"""How the figures of each tier that is measured are filed, the least evidence first."""

_BEHIND_THE_MATRIX = 500_000
_COUNTED = ("found", "doubted", "alarms", "unsound")


@dataclass(slots=True)
class ByTier:
    """What came of one bug in one cell.

    Attributes:
        cell: where it was tried.
        tried: runs that count.
        found: by tier, those in which the checkers found what nothing excuses; ``doubted``: those that did not pass for
            another reason, by which a run is known to have proven nothing.
        alarms: by tier, the same seeds without the bug that were accused; ``unsound``: those that did not pass.
    """

    cell: Cell
    tried: int = 0
    found: Counter[str] = field(default_factory=Counter)
    doubted: Counter[str] = field(default_factory=Counter)
    alarms: Counter[str] = field(default_factory=Counter)
    unsound: Counter[str] = field(default_factory=Counter)

    def add(self, control: Mapping[EvidenceTier, Trial], broken: Mapping[EvidenceTier, Trial]) -> None:
        """Count one more seed."""
        if not control[EvidenceTier.BROKERS].is_sound:
            return
        self.tried += 1
        for tier, name in TIERS.items():
            self.found[name] += broken[tier].is_detected
            self.doubted[name] += not (broken[tier].is_detected or broken[tier].is_sound)
            self.alarms[name] += control[tier].is_detected
            self.unsound[name] += not (control[tier].is_detected or control[tier].is_sound)


class _Task(NamedTuple):
    cell: Cell
    seed: int
    bugs: tuple[Bug, ...]


_Trials = Mapping[EvidenceTier, Trial]
_Row = tuple[Cell, int, _Trials, Mapping[str, _Trials]]


def measure_tiers(
    bugs: Iterable[Bug], matrix: Matrix, seeds: int, jobs: int, seen: Callable[[int, int], None]
) -> dict[str, ByTier]:
    """By bug, what is found of it in each tier; of bugs that the matrix does not find, nothing.

    Args:
        bugs: to try.
        matrix: says where each is found most.
        seeds: of a cell on the bare core; the whole broker gets half, and a schedule one.
        jobs: processes.
        seen: takes how many tasks are done, and of how many.
    """
    wanted: dict[Cell, list[Bug]] = {}
    for bug in bugs:
        if (cell := best_cell(matrix.scores.get(bug.name, {}))) is not None:
            wanted.setdefault(cell, []).append(bug)
    tasks = [
        _Task(cell, first_seed(cell) + _BEHIND_THE_MATRIX + number, tuple(there))
        for cell, there in sorted(wanted.items(), key=lambda item: item[0].depth != STACK)
        for number in range(_seeds_of(cell, seeds))
    ]
    return _collected(performed(_perform, tasks, jobs, seen))


def _seeds_of(cell: Cell, seeds: int) -> int:
    if cell.workload == SCENARIO:
        return 1
    return max(1, seeds // 2) if cell.depth == STACK else seeds


def _perform(task: _Task) -> _Row:
    tiers = tuple(TIERS)
    control = attempt_in(tiers, task.cell, task.seed, "", {})
    broken = {bug.name: attempt_in(tiers, task.cell, task.seed, bug.name, bug.knobs) for bug in task.bugs}
    return task.cell, task.seed, control, broken


def _collected(rows: Iterable[_Row]) -> dict[str, ByTier]:
    found: dict[str, ByTier] = {}
    for cell, _, control, broken in sorted(rows, key=lambda row: row[:2]):
        for name, trials in broken.items():
            found.setdefault(name, ByTier(cell)).add(control, trials)
    return {bug.name: found[bug.name] for bug in TABLE if bug.name in found}


# ---------------------------------------------------------------------------------------------------------- plain data


def tiers_to_json(tiers: Mapping[str, ByTier]) -> dict[str, Any]:
    """The figures as plain data; numbers that are 0 are left out."""
    return {
        bug: {
            "cell": name_of(one.cell),
            "tried": one.tried,
            **{name: dict(sorted((+getattr(one, name)).items())) for name in _COUNTED if +getattr(one, name)},
        }
        for bug, one in tiers.items()
    }


def tiers_from_json(document: Mapping[str, Any]) -> dict[str, ByTier]:
    """The inverse of :func:`tiers_to_json`."""
    return {
        bug: ByTier(cell_named(one["cell"]), one["tried"], **{name: Counter(one.get(name, {})) for name in _COUNTED})
        for bug, one in document.items()
    }
