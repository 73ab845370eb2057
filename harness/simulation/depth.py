"""The two depths at which a seed can be run: the bare core, and the whole broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.simulation.core.configuration import STACK, Configuration, Setup
from harness.simulation.core.trouble import Trouble
from harness.simulation.core.world import World
from harness.simulation.stack.swarm import Swarm

if TYPE_CHECKING:
    from harness.simulation.trace import Trace

Run = World | Swarm
"""One run of one seed."""


def run_of(
    seed: int,
    setup: Setup,
    *,
    troubles: Sequence[Trouble] | None = None,
    configuration: Configuration | None = None,
    trace: Trace | None = None,
    recorded: bool = False,
) -> Run:
    """A run at the depth of ``setup``; arguments as of :class:`harness.simulation.core.world.World`."""
    kind = Swarm if setup.depth == STACK else World
    return kind(seed, setup, troubles=troubles, configuration=configuration, trace=trace, recorded=recorded)
