"""The matrix: every bug on some seeds of every cell, against the same seeds without it."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

from harness.detection.mixes import FAULTS, OF_SOME, OWN_LOADS, SYNTHETIC, faults_at, workloads_at
from harness.detection.table import TABLE
from harness.detection.trial import BROKEN, SCENARIO, Cell, Trial, attempt
from harness.model import CORE, STACK
from harness.replication.bugs import Bug
from harness.signals import die_with_parent, ignore, withheld
from harness.workers import workers
from reports.power import Interval, wilson

_CHUNK = {CORE: 10, STACK: 2, SYNTHETIC: 50}

SEEDS_APART = 1_000_000
"""How far the seeds of one cell are from those of the next."""

_FAR_BEHIND = 1_000

_ORDER = {mix.name: at for at, mix in enumerate(FAULTS)}


@dataclass(slots=True)
class Score:
    """What came of one bug in one cell; of seeds whose control was not sound nothing counts.

    Attributes:
        tried: trials that count. ``found``: those in which the checkers found what nothing excuses.
        doubted: those that did not pass for want of evidence. ``broken``: those that the simulator could not end.
        kinds: of the anomalies, in how many trials each came up.
        first: the lowest seed that was found; None: none was. ``virtual_s``: how long the runs up to it lasted, and
            ``cpu_s`` how long they took, one after the other.
    """

    tried: int = 0
    found: int = 0
    doubted: int = 0
    broken: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    first: int | None = None
    virtual_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, seed: int, trial: Trial) -> None:
        """Count one more; seeds come in ascending order."""
        self.tried += 1
        self.found += trial.is_detected
        self.broken += trial.outcome == BROKEN
        self.doubted += not (trial.is_detected or trial.is_sound or trial.outcome == BROKEN)
        self.kinds.update(trial.kinds)
        if self.first is None:
            self.virtual_s += trial.virtual_s
            self.cpu_s += trial.cpu_s
            self.first = seed if trial.is_detected else None

    @property
    def interval(self) -> Interval:
        """How often it is found."""
        return wilson(self.found, self.tried)


@dataclass(slots=True)
class Control:
    """The seeds of one cell without a bug.

    Attributes:
        alarms: of what the checkers wrongly accused them, by kind.
        unsound: how many did not pass for another reason.
        sends: of all of them together; ``faults`` and ``virtual_s`` likewise.
    """

    tried: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    unsound: int = 0
    sends: int = 0
    faults: int = 0
    virtual_s: float = 0.0

    def add(self, trial: Trial) -> None:
        """Count one more."""
        self.tried += 1
        self.alarms.update(trial.kinds)
        self.unsound += not (trial.is_sound or trial.is_detected)
        self.sends += trial.sends
        self.faults += trial.faults
        self.virtual_s += trial.virtual_s


Scores = dict[str, dict[Cell, Score]]
"""By the bug's name and the cell."""


class Matrix(NamedTuple):
    """All that was measured."""

    scores: Scores
    controls: dict[Cell, Control]

    @property
    def shares_seeds(self) -> bool:
        """Whether it was measured with the same seeds in every cell, as it once was."""
        found = ((cell, score.first) for scores in self.scores.values() for cell, score in scores.items())
        return any(first is not None and first < first_seed(cell) for cell, first in found)


class _Task(NamedTuple):
    cell: Cell
    seeds: tuple[int, ...]
    bugs: tuple[Bug, ...]


Task = TypeVar("Task")
Done = TypeVar("Done")

_Row = tuple[Cell, int, dict[str, Trial]]
"""The trials of one seed by the bug's name; the control's is empty."""


def cells_of(bug: Bug) -> Iterator[Cell]:
    """Where a bug is looked for."""
    others = [load for load in workloads_at(bug.depth) if load not in OF_SOME]
    for workload in [bug.load] if bug.load else others:
        for faults in faults_at(bug.depth):
            yield Cell(bug.depth, workload, faults)
    for scenario in bug.scenarios:
        yield Cell(STACK, SCENARIO, scenario)


def seeds_of(cell: Cell, seeds: int) -> int:
    """How many seeds a cell gets: a run of the whole broker costs as much as thirty of the core."""
    if cell.workload == SCENARIO:
        return max(1, seeds // 20)
    return max(2, seeds // 5) if cell.depth == STACK else seeds


def first_seed(cell: Cell) -> int:
    """The first of a cell's own seeds: cells that share seeds share the configurations that are drawn."""
    return SEEDS_APART * _position()[cell]


def best_cell(scores: Mapping[Cell, Score]) -> Cell | None:
    """Where a bug is found most; a schedule where no random cell shows it; None: it is not found.

    Of cells alike the one with the fewest kinds of faults.
    """
    found = [cell for cell, score in scores.items() if score.found]
    drawn = [cell for cell in found if cell.workload != SCENARIO]
    if not drawn:
        return found[0] if found else None
    return max(drawn, key=lambda cell: (scores[cell].interval.low, -_ORDER.get(cell.faults, 0)))


@cache
def _position() -> Mapping[Cell, int]:
    """Every cell's, schedules last, so that a new one moves no other cell; those of a load of some bugs far behind."""
    cells = dict.fromkeys(cell for bug in TABLE for cell in cells_of(bug))
    shared = [cell for cell in cells if cell.workload not in OF_SOME]
    ordered = sorted(shared, key=lambda cell: cell.workload == SCENARIO)
    own = [cell for load in OF_SOME for cell in cells if cell.workload == load]
    return {cell: at for at, cell in (*enumerate(ordered), *enumerate(own, start=_FAR_BEHIND))}


def measure(bugs: Sequence[Bug], seeds: int, jobs: int, seen: Callable[[int, int], None]) -> Matrix:
    """Run everything in ``jobs`` processes; ``seen`` takes how many tasks are done, and of how many."""
    tasks = list(_tasks(bugs, seeds))
    return collected(row for rows in performed(_perform, tasks, jobs, seen) for row in rows)


def performed(
    perform: Callable[[Task], Done], tasks: Sequence[Task], jobs: int, seen: Callable[[int, int], None]
) -> Iterator[Done]:
    """What comes of each task, in no order, in ``jobs`` processes; ``seen`` as in :func:`measure`."""
    if jobs == 1:
        for number, task in enumerate(tasks, 1):
            yield perform(task)
            seen(number, len(tasks))
        return
    with workers(jobs, _prepare) as pool:
        with withheld():
            running = [pool.submit(perform, task) for task in tasks]
        for number, done in enumerate(as_completed(running), 1):
            yield done.result()
            seen(number, len(tasks))


def collected(rows: Iterable[_Row]) -> Matrix:
    """Trials counted, cell by cell."""
    scores: Scores = {}
    controls: dict[Cell, Control] = {}
    for cell, seed, trials in sorted(rows, key=lambda row: row[:2]):
        control = trials.pop("")
        controls.setdefault(cell, Control()).add(control)
        for name, trial in trials.items():
            score = scores.setdefault(name, {}).setdefault(cell, Score())
            if control.is_sound:
                score.add(seed, trial)
    return Matrix({bug.name: scores[bug.name] for bug in TABLE if bug.name in scores}, controls)


def _tasks(bugs: Sequence[Bug], seeds: int) -> Iterator[_Task]:
    """The dear ones first, so that no process is left with them alone in the end."""
    wanted: dict[Cell, list[Bug]] = {}
    for bug in bugs:
        for cell in cells_of(bug):
            wanted.setdefault(cell, []).append(bug)
    for cell in sorted(wanted, key=lambda cell: (cell.depth != STACK, cell.workload != SCENARIO)):
        chunk = 1 if cell.workload == SCENARIO else _CHUNK[cell.depth]
        numbers = range(first_seed(cell), first_seed(cell) + min(seeds_of(cell, seeds), SEEDS_APART))
        for at in range(0, len(numbers), chunk):
            yield _Task(cell, tuple(numbers[at : at + chunk]), tuple(wanted[cell]))


def _perform(task: _Task) -> list[_Row]:
    rows: list[_Row] = []
    for seed in task.seeds:
        trials = {"": attempt(task.cell, seed, "", {})}
        trials |= {bug.name: attempt(task.cell, seed, bug.name, bug.knobs) for bug in task.bugs}
        rows.append((task.cell, seed, trials))
    return rows


def _prepare() -> None:
    """Leave signals to the parent, end with it, and let the garbage collector look at runs only."""
    ignore()
    die_with_parent()
    gc.freeze()


# ---------------------------------------------------------------------------------------------------------- plain data


def to_json(matrix: Matrix) -> dict[str, Any]:
    """The matrix as plain data."""
    return {
        "does": {bug.name: bug.does for bug in TABLE if bug.name in matrix.scores},
        "loads": OWN_LOADS,
        "controls": {name_of(cell): _plain(control) for cell, control in sorted(matrix.controls.items())},
        "bugs": {
            bug: {name_of(cell): _plain(score) for cell, score in sorted(scores.items())}
            for bug, scores in matrix.scores.items()
        },
    }


def from_json(document: Mapping[str, Any]) -> Matrix:
    """The inverse of :func:`to_json`."""
    controls = {cell_named(name): Control(**_counted(one, "alarms")) for name, one in document["controls"].items()}
    scores = {
        bug: {cell_named(name): Score(**_counted(one, "kinds")) for name, one in cells.items()}
        for bug, cells in document["bugs"].items()
    }
    return Matrix(scores, controls)


def name_of(cell: Cell) -> str:
    """The cell in one word."""
    return "/".join(cell)


def cell_named(name: str) -> Cell:
    """The inverse of :func:`name_of`."""
    return Cell(*name.split("/"))


def _plain(counted: Score | Control) -> dict[str, Any]:
    """What is known of it: numbers that are 0 are left out, and how long it took to find what was not found."""
    known = {name: getattr(counted, name) for name in counted.__slots__}
    if known.get("first", 0) is None:
        known = {name: value for name, value in known.items() if name not in ("first", "virtual_s", "cpu_s")}
    plain = {
        name: dict(sorted(value.items())) if isinstance(value, Counter) else value for name, value in known.items()
    }
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in plain.items()
        if value or name == "first"
    }


def _counted(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**plain, name: Counter(plain.get(name, {}))}
