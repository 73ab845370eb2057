"""kill: SIGKILL a node, and start it again on its own data."""

from __future__ import annotations

from typing import ClassVar

from faults.down import Down
from harness.controls import Kills
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class Kill(Down):
    """The process dies at once, with whatever it had not written; the page cache of its files survives."""

    kind: ClassVar[str] = "kill"
    needs: ClassVar[type[Target]] = Kills
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.ENDS,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="killed",
        column="kill",
        column_on_controller="control",
    )

    def inject(self, target: Kills) -> None:
        """SIGKILL the node."""
        target.kill(self.name)

    def probe(self, target: Kills) -> Receipt:
        """Holds when SIGKILL has ended the process; silence alone would not do."""
        return target.is_dead(self.name)
