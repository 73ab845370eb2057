"""hiccup: a node is stopped by a signal, as by seawall's own fault ``pause``."""

from __future__ import annotations

from typing import ClassVar

from faults.node_fault import NodeFault
from harness.controls import Processes
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class Hiccup(NodeFault):
    """The process stops between two instructions."""

    kind: ClassVar[str] = "hiccup"
    needs: ClassVar[type[Target]] = Processes
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.PAUSES,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="has the hiccups",
        column=None,
        column_on_controller=None,
    )

    def inject(self, target: Processes) -> None:
        """SIGSTOP."""
        target.pause(self.name)

    def probe(self, target: Processes) -> Receipt:
        """Holds when the process is stopped."""
        return target.is_paused(self.name)

    def heal(self, target: Processes) -> None:
        """SIGCONT."""
        target.resume(self.name)

    def probe_healed(self, target: Processes) -> Receipt:
        """Holds when the node answers."""
        return target.is_running(self.name)
