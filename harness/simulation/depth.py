"""The two depths at which a seed can be run: the bare core, and the whole broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.simulation.core.configuration import STACK, Configuration, Setup
from harness.simulation.core.planned_fault import PlannedFault
from harness.simulation.core.world import World
from harness.simulation.stack.stack_simulation import StackSimulation

if TYPE_CHECKING:
    from harness.simulation.trace import Trace

Run = World | StackSimulation
"""One run of one seed."""


def run_of(
    seed: int,
    setup: Setup,
    *,
    troubles: Sequence[PlannedFault] | None = None,
    configuration: Configuration | None = None,
    trace: Trace | None = None,
    recorded: bool = False,
) -> Run:
    """A run at the depth of ``setup``; arguments as of :class:`harness.simulation.core.world.World`."""
    kind = StackSimulation if setup.depth == STACK else World
    return kind(seed, setup, troubles=troubles, configuration=configuration, trace=trace, recorded=recorded)
