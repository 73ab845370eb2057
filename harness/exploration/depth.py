"""The ways in which a seed can be run: the bare core, the whole broker, and the whole broker under a load beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.exploration.loaded_simulation import LoadedSimulation
from harness.model import STACK
from harness.simulation.core.configuration import Configuration, Setup, drawn_for
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.core.drawn_loads import PLAIN
from harness.simulation.core.planned import Planned
from harness.simulation.stack.stack_simulation import StackSimulation
from harness.simulation.trace import Trace

Run = CoreSimulation | StackSimulation | LoadedSimulation
"""One run of one seed."""


def run_of(
    seed: int,
    setup: Setup,
    *,
    faults: Sequence[Planned] | None = None,
    configuration: Configuration | None = None,
    trace: Trace | None = None,
    recorded: bool = False,
) -> Run:
    """A run at the depth of ``setup``, under the load of its configuration; other arguments as of CoreSimulation."""
    found = configuration or drawn_for(seed, setup)
    kind: type[Run] = CoreSimulation
    if setup.depth == STACK:
        kind = StackSimulation if found.load == PLAIN else LoadedSimulation
    return kind(seed, setup, faults=faults, configuration=found, trace=trace, recorded=recorded)


def write(run: Run, path: Path, generation: str) -> None:
    """Leave a run directory behind, as a real run does, of a run that was recorded."""
    if isinstance(run, LoadedSimulation):
        run.write(path)
    elif run.recording is not None:
        run.recording.write(path, generation)
