"""What the simulator's witness accuses a set of knobs of, in schedules that nobody wrote."""

from __future__ import annotations

from typing import Any

from harness.checker import Verdict
from harness.replication.knobs import CURRENT_GENERATION
from harness.simulation.core.configuration import Setup
from harness.simulation.core.core_simulation import CoreSimulation
from tests.seeds.clusters import knobs_of


def accusations(seed: int, generation: str = CURRENT_GENERATION, **knobs: Any) -> set[str]:
    """The invariants that the run of ``seed`` breaks and should not."""
    finished = CoreSimulation(seed, Setup(generation, knobs_of(generation, **knobs))).run()
    return {violation.invariant for violation in finished.violations if violation.verdict is Verdict.VIOLATION}


def seeds_until(invariant: str, limit: int = 500, **knobs: Any) -> int | None:
    """How many seeds it takes until ``knobs`` break ``invariant`` where the current generation, unchanged, does not.

    None: more than ``limit``.
    """
    seeds = (seed for seed in range(limit) if invariant in accusations(seed, **knobs))
    return next((seed + 1 for seed in seeds if invariant not in accusations(seed)), None)
