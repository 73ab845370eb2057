"""The result of one simulated run: its violations, its faults, and the hash of its trace."""

from __future__ import annotations

from typing import NamedTuple

from harness.simulation.core.planned_fault import PlannedFault
from harness.simulation.violations import Violation


class Finished(NamedTuple):
    """See the module.

    Attributes:
        events: how many.
        happened: the faults that had an effect, each with the node hit.
        violations: what the witness saw, in the order in which it happened.
        converged: whether the cluster came to rest when all faults were over.
    """

    seed: int
    events: int
    virtual_ns: int
    happened: tuple[PlannedFault, ...]
    violations: tuple[Violation, ...]
    converged: bool
