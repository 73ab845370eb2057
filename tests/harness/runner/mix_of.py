"""The random faults of a plan that has some."""

from __future__ import annotations

from harness.runner import Plan
from harness.runner.planned_chaos import PlannedChaos


def mix_of(made: Plan) -> PlannedChaos:
    assert made.chaos is not None
    return made.chaos
