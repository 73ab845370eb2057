"""A target of another distribution, with a control of its own, and the fault that needs it.

It has something that a killed seawall leaves outside its run directory: a bed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable
from uuid import uuid4

from faults.node_fault import NodeFault
from harness.broker.settings import Settings
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.observations import NodeStates
from harness.replication.knobs import Knobs
from harness.target import Receipt, Target
from harness.targets.cluster_kind import ClusterKind
from harness.targets.leftovers import Leftovers, StartJournal
from harness.targets.simulated import SimulatedTarget


@runtime_checkable
class Naps(NodeStates, Protocol):
    """A node can be put to sleep."""

    def put_to_sleep(self, node: str) -> None:
        """Let it sleep until :meth:`wake`."""
        ...

    def wake(self, node: str) -> None:
        """Undo :meth:`put_to_sleep`."""
        ...

    def is_asleep(self, node: str) -> Receipt:
        """Whether it sleeps."""
        ...


class DozingTarget(SimulatedTarget):
    """Implements :class:`Naps`.

    Attributes:
        journal: takes what has to be removed.
        bed: that is a directory.
    """

    name = "dozing"
    controls: frozenset[type[Target]] = SimulatedTarget.controls | {Naps}
    journal: StartJournal
    bed: Path

    def start(self) -> None:
        """Make the bed, once the journal has it."""
        self.journal.leftover_coming(KIND.name, {"bed": str(self.bed)})
        self.bed.mkdir()
        super().start()

    def stop(self) -> None:
        """Remove it."""
        super().stop()
        _remove({"bed": str(self.bed)})

    def put_to_sleep(self, node: str) -> None:
        """See :class:`Naps`."""
        self.pause(node)

    def wake(self, node: str) -> None:
        """See :class:`Naps`."""
        self.resume(node)

    def is_asleep(self, node: str) -> Receipt:
        """See :class:`Naps`."""
        return self.is_paused(node)


class Doze(NodeFault):
    """The node sleeps."""

    kind: ClassVar[str] = "doze"
    needs: ClassVar[type[Target]] = Naps
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.PAUSES,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="asleep",
        column=None,
        column_on_controller=None,
    )

    def inject(self, target: Naps) -> None:
        """Put it to sleep."""
        target.put_to_sleep(self.name)

    def probe(self, target: Naps) -> Receipt:
        """Holds when the process is stopped."""
        return target.is_asleep(self.name)

    def heal(self, target: Naps) -> None:
        """Wake it."""
        target.wake(self.name)

    def probe_healed(self, target: Naps) -> Receipt:
        """Holds when the node answers."""
        return target.is_running(self.name)


def _make(
    directory: Path, brokers: int, knobs: Knobs, settings: Settings, *, seed: int, journal: StartJournal
) -> DozingTarget:
    target = DozingTarget.made(directory, brokers, knobs, settings, seed=seed)
    target.journal, target.bed = journal, Path.cwd() / f"bed-{uuid4()}"
    return target


def _remove(what: Mapping[str, Any]) -> list[str]:
    """Remove a bed, if it is there."""
    try:
        Path(what["bed"]).rmdir()
    except FileNotFoundError:
        return []
    return [str(what["bed"])]


KIND = ClusterKind(
    DozingTarget.name, DozingTarget.controls, _make, in_virtual_time=True, leftovers=Leftovers("beds", _remove)
)
