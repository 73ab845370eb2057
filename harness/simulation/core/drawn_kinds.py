"""What a seed draws: faults, each by its name in :mod:`faults`, and disturbances, which are no faults."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from faults.clock import Clock
from faults.disk_full import DiskFull
from faults.kill import Kill
from faults.partition import Partition
from faults.pause import Pause
from faults.power_loss import PowerLoss
from faults.stop import Stop
from harness.fault import DiskEffect, Fault, FaultTraits, ProcessEffect
from harness.model import CONTROLLER


class Effect(Enum):
    """What a fault does to a simulated cluster."""

    CUTS_LINKS = auto()
    ENDS = auto()
    PAUSES = auto()
    FILLS_DISK = auto()
    MOVES_CLOCK = auto()


def effect_of(traits: FaultTraits) -> Effect:
    """What a fault with these traits does here.

    Raises:
        ValueError: nothing that the simulator can do.
    """
    match traits:
        case FaultTraits(cuts_links=True):
            return Effect.CUTS_LINKS
        case FaultTraits(process=ProcessEffect.ENDS, disk=DiskEffect.NOTHING | DiskEffect.UNFLUSHED):
            return Effect.ENDS
        case FaultTraits(process=ProcessEffect.PAUSES, disk=DiskEffect.NOTHING):
            return Effect.PAUSES
        case FaultTraits(process=ProcessEffect.MAY_END, disk=DiskEffect.NEW_WRITES):
            return Effect.FILLS_DISK
        case FaultTraits(process=ProcessEffect.NONE, disk=DiskEffect.NOTHING, moves_clock=True):
            return Effect.MOVES_CLOCK
        case _:
            raise ValueError(f"the simulator has no effect for {traits}")


class DrawnFault(NamedTuple):
    """One way in which a seed draws a fault.

    Attributes:
        fault: its class.
        does: what happens, in the words of ``docs/simulation.md``.
        form: where it is done, or what it cuts, if there is another way without; empty: there is none, or this is it.
    """

    fault: type[Fault]
    does: str
    form: str = ""

    @property
    def name(self) -> str:
        """As ``--set faults=`` has it: ``kill``, ``kill/controller``."""
        return f"{self.fault.kind}/{self.form}" if self.form else self.fault.kind

    @property
    def kind(self) -> str:
        """As :mod:`faults` names it."""
        return self.fault.kind


class Disturbance(NamedTuple):
    """What happens to a cluster that is in order: an act of an operator or a client, or a slow network.

    Attributes:
        kind: its name, which a scenario's step has, too, if there is one.
        does: what happens, in the words of ``docs/simulation.md``.
    """

    kind: str
    does: str

    @property
    def name(self) -> str:
        """As ``--set disturbances=`` has it."""
        return self.kind


BETWEEN = "between"
"""The form of a partition of two brokers."""

SLOW_LINKS, ELECT, RETENTION, DELETE_RECORDS = "slow_links", "elect", "retention", "delete_records"

DRAWN: tuple[DrawnFault | Disturbance, ...] = (
    DrawnFault(Kill, "a broker crashes, and is started again in the end"),
    DrawnFault(Stop, "a broker shuts down cleanly, and is started again"),
    DrawnFault(PowerLoss, "a broker crashes; what it had not flushed is gone, but for a part of it sometimes"),
    DrawnFault(Pause, "a broker stands still; what arrives waits"),
    DrawnFault(
        Partition,
        "no message passes between a broker and all brokers, the controller, the clients, or all of them; in one "
        "direction or both, held or dropped",
    ),
    DrawnFault(Partition, "the same, between two brokers", BETWEEN),
    Disturbance(SLOW_LINKS, "everything that a broker sends or gets takes 20 times as long"),
    DrawnFault(Clock, "the wall clock of a broker jumps"),
    DrawnFault(DiskFull, "the disk of a broker takes nothing"),
    DrawnFault(Kill, "the controller crashes, and is started again", CONTROLLER),
    DrawnFault(Pause, "the controller stands still; what arrives waits", CONTROLLER),
    Disturbance(ELECT, "an operator moves the leadership to a broker"),
)
"""All that one draw chooses from. Their order is part of every seed."""

FAULTS: Mapping[str, DrawnFault] = MappingProxyType({one.name: one for one in DRAWN if isinstance(one, DrawnFault)})
DISTURBANCES: Mapping[str, Disturbance] = MappingProxyType(
    {one.name: one for one in DRAWN if isinstance(one, Disturbance)}
)
DELETIONS: Mapping[str, Disturbance] = MappingProxyType(
    {
        RETENTION: Disturbance(RETENTION, "a broker deletes its oldest batches, as far as they are committed"),
        DELETE_RECORDS: Disturbance(DELETE_RECORDS, "a client asks the leader to delete a part of what is committed"),
    }
)
"""Disturbances that make a log begin later; a draw of its own chooses from them."""

CLASSES: Mapping[str, type[Fault]] = MappingProxyType({one.kind: one.fault for one in FAULTS.values()})
"""The class of each kind of fault that is drawn."""

EFFECTS: Mapping[str, Effect] = MappingProxyType({kind: effect_of(fault.traits) for kind, fault in CLASSES.items()})
