"""stop: a node is asked to shut down, does so in good order, and is started again."""

from __future__ import annotations

from typing import ClassVar

from faults.down import Down
from harness.controls import Shutdowns
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class Stop(Down):
    """A clean shutdown: everything is flushed, and a marker tells the next start so."""

    kind: ClassVar[str] = "stop"
    needs: ClassVar[type[Target]] = Shutdowns
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.ENDS,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="shut down",
        column="kill",
        column_on_controller=None,
    )

    def inject(self, target: Shutdowns) -> None:
        """Ask the node to shut down, and wait until it has."""
        target.shut_down(self.name)

    def probe(self, target: Shutdowns) -> Receipt:
        """Holds when the node has ended by itself, with success."""
        return target.is_shut_down(self.name)
