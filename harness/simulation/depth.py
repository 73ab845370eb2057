"""The two depths at which a seed can be run: the bare core, and the whole broker."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import STACK
from harness.simulation.core.configuration import Configuration, Setup
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.core.planned import Planned
from harness.simulation.stack.stack_simulation import StackSimulation
from harness.simulation.trace import Trace

Run = CoreSimulation | StackSimulation
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
    """A run at the depth of ``setup``; other arguments as of :class:`CoreSimulation`."""
    kind = StackSimulation if setup.depth == STACK else CoreSimulation
    return kind(seed, setup, faults=faults, configuration=configuration, trace=trace, recorded=recorded)
