"""Asks what this machine and the targets can do: a cell whose capability is missing is skipped with the reason."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from harness.errors import EnvironmentFault, UsageError
from harness.nightly.cells import Cell
from harness.nightly.plan import NightPlan
from harness.runner import plan as planned
from harness.runner.matrix import impossible
from harness.scenario import Scenario, load
from harness.targets.kinds import kind_of, source_of

Probe = Callable[[str], str | None]
"""What is missing of the capability with that name, in a sentence; None: it is there."""

LOOPBACK = "loopback"
"""The capability that clusters of local processes need."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a cell does not run.

    Attributes:
        is_failure: the plan requires it, so that this is a failure of the environment.
    """

    reason: str
    is_failure: bool


def missing(plan: NightPlan, cells: Sequence[Cell], probe: Probe) -> dict[str, Missing]:
    """By their identity, the cells that cannot run here.

    Raises:
        UsageError: every target refuses a scenario that the plan names, or every scenario one of its settings; or a
            pattern of ``require`` or ``allow`` means no cell.
    """
    _refuse_idle_patterns(plan, cells)
    by_series = {cell.series: cell for cell in cells}
    asked = cache(probe)
    lacking = {name: _lacking(cell, asked) for name, cell in by_series.items()}
    _refuse_mistakes([(cell, lacking[cell.series]) for cell in by_series.values()])
    found: dict[str, Missing] = {}
    for cell in cells:
        if (error := lacking[cell.series]) is not None:
            found[cell.cell] = Missing(str(error), _is_required(plan, cell))
    return found


def _is_required(plan: NightPlan, cell: Cell) -> bool:
    return any(map(cell.matches, plan.require)) and not any(one.skip and cell.matches(one.cells) for one in plan.allow)


def _refuse_idle_patterns(plan: NightPlan, cells: Sequence[Cell]) -> None:
    named = [("require", pattern) for pattern in plan.require] + [("allow", one.cells) for one in plan.allow]
    for key, pattern in named:
        if not any(cell.matches(pattern) for cell in cells):
            raise UsageError(
                f"{key}: {pattern!r} matches no cell of the plan.",
                "Patterns are matched with targets, scenarios, kinds, entries' names and series.",
            )


def _lacking(cell: Cell, probe: Probe) -> EnvironmentFault | UsageError | None:
    """What a cell lacks here; a UsageError is also what a mistake in the plan leads to."""
    for name in cell.needs:
        if (sentence := probe(name)) is not None:
            return EnvironmentFault(sentence)
    if cell.kind == "run":
        return _refused(cell, probe)
    program = cell.argv[0]
    if cell.kind == "command" and program not in ("seawall", "python") and shutil.which(program) is None:
        return EnvironmentFault(f"{program} is not installed here.")
    return None


def _refused(cell: Cell, probe: Probe) -> EnvironmentFault | UsageError | None:
    assert cell.scenario is not None, "a run has a scenario"
    scenario, kind = _scenario(cell.scenario), kind_of(cell.target)
    generation = None if kind.runs_releases else cell.generation
    try:
        spoken = source_of(cell.target).generation
        if spoken is not None and (why := impossible(scenario, spoken)) is not None:
            return EnvironmentFault(why)
        planned(scenario, cell.target, generation, 0, duration_s=cell.duration_s, overrides=cell.settings)
    except (EnvironmentFault, UsageError) as error:
        return error
    if kind.needs_loopback and (sentence := probe(LOOPBACK)) is not None:
        return EnvironmentFault(sentence)
    return None


@cache
def _scenario(origin: str) -> Scenario:
    return load(origin)


def _refuse_mistakes(found: Iterable[tuple[Cell, Exception | None]]) -> None:
    """Refuse what no target takes: a capability is missing somewhere, and a mistake is one everywhere."""
    groups: Mapping[tuple[object, ...], list[Exception | None]] = defaultdict(list)
    for cell, error in found:
        settings = tuple(sorted(cell.settings.items()))
        if cell.entry is not None and cell.is_named:
            groups["scenarios", cell.entry, cell.scenario, settings].append(error)
        if cell.entry is not None and settings:
            groups["settings", cell.entry, settings].append(error)
    for (key, entry, *_), errors in groups.items():
        if all(isinstance(error, UsageError) for error in errors):
            first = errors[0]
            assert isinstance(first, UsageError), "looked at above"
            raise UsageError(f"cells[{entry}].{key}: {first.sentence}", first.remedy)
