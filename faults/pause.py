"""pause: stop a node with SIGSTOP. Its sockets still accept and acknowledge; nothing answers."""

from __future__ import annotations

from typing import ClassVar

from faults.node_fault import NodeFault
from harness.controls import Pauses
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class Pause(NodeFault):
    """The process stops between two instructions, as in a long garbage collection or a frozen machine."""

    kind: ClassVar[str] = "pause"
    needs: ClassVar[type[Target]] = Pauses
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.PAUSES,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="paused",
        column="pause",
        column_on_controller="control",
    )

    def inject(self, target: Pauses) -> None:
        """SIGSTOP the node."""
        target.pause(self.name)

    def probe(self, target: Pauses) -> Receipt:
        """Holds when the kernel reports that the process is stopped."""
        return target.is_paused(self.name)

    def heal(self, target: Pauses) -> None:
        """SIGCONT the node."""
        target.resume(self.name)

    def probe_healed(self, target: Pauses) -> Receipt:
        """Holds when the node is no longer stopped and answers."""
        paused = target.is_paused(self.name)
        return Receipt(False, paused.seen) if paused.holds else target.is_running(self.name)
