"""The result of one simulated run: its violations, what was done to it, and the hash of its trace."""

from __future__ import annotations

from typing import NamedTuple

from harness.simulation.core.planned import Planned
from harness.simulation.violations import Violation


class Finished(NamedTuple):
    """See the module.

    Attributes:
        events: how many.
        happened: the faults and disturbances that had an effect, each with the node hit.
        violations: what the witness saw, in the order in which it happened.
        converged: whether the cluster came to rest when all faults were over.
    """

    seed: int
    events: int
    virtual_ns: int
    happened: tuple[Planned, ...]
    violations: tuple[Violation, ...]
    converged: bool
