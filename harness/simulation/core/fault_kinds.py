"""The kinds of faults that a seed draws, each with its counterpart among the :mod:`faults` of a real cluster."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from faults.clock import Clock
from faults.disk_full import DiskFull
from faults.kill import Kill
from faults.partition import Partition
from faults.pause import Pause
from faults.power_loss import PowerLoss
from faults.stop import Stop
from harness.fault import Fault, FaultTraits


class FaultKind(NamedTuple):
    """One kind.

    Attributes:
        name: as ``--set faults=`` and the faults table have it.
        fault: what does the same harm; None: none does, or it is no harm.
        on_controller: whether it is done to the controller.
    """

    name: str
    fault: type[Fault] | None = None
    on_controller: bool = False

    @property
    def traits(self) -> FaultTraits | None:
        """Those of ``fault``."""
        return None if self.fault is None else self.fault.traits

    @property
    def is_clean(self) -> bool:
        """Whether it ends the process by a clean shutdown."""
        return self.fault is Stop


ISOLATE, CUT, SLOW, ELECT = "isolate", "cut", "slow", "elect"
"""Two partitions, from a group of processes and from one broker; links that are slow; an election by an operator."""

RETENTION, DELETE_RECORDS = "retention", "delete_records"

DELETIONS = (RETENTION, DELETE_RECORDS)
"""What makes a log begin later: no fault, but drawn, aimed and left out like one."""

_DRAWN = (
    FaultKind(Kill.kind, Kill),
    FaultKind(Stop.kind, Stop),
    FaultKind(PowerLoss.kind, PowerLoss),
    FaultKind(Pause.kind, Pause),
    FaultKind(ISOLATE, Partition),
    FaultKind(CUT, Partition),
    FaultKind(SLOW),
    FaultKind(Clock.kind, Clock),
    FaultKind(DiskFull.kind, DiskFull),
    FaultKind(f"controller_{Kill.kind}", Kill, on_controller=True),
    FaultKind(f"controller_{Pause.kind}", Pause, on_controller=True),
    FaultKind(ELECT),
)

FAULTS = tuple(kind.name for kind in _DRAWN)
"""Every kind of fault that is drawn. Their order is part of every seed."""

KINDS: Mapping[str, FaultKind] = MappingProxyType(
    {kind.name: kind for kind in (*_DRAWN, *(FaultKind(name) for name in DELETIONS))}
)
"""All of them by name, deletions included."""
