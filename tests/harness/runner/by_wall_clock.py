"""A system whose nodes go by their wall clocks, as real Kafka's do."""

from __future__ import annotations

from dataclasses import fields, replace

from harness.runner.plan import Plan
from harness.targets.cluster_kind import BuiltInSystem


class ByWallClock(BuiltInSystem):
    """A node whose clock was moved has to be started again."""

    @property
    def schedules_by_wall_clock(self) -> bool:
        """Yes."""
        return True


def by_wall_clock(made: Plan) -> Plan:
    """The same plan on such a system."""
    system = ByWallClock(**{one.name: getattr(made.system, one.name) for one in fields(BuiltInSystem)})
    return replace(made, system=system)
