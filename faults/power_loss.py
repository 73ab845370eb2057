"""power_loss: a machine loses power: the process dies, and with it everything that had not reached the disk."""

from __future__ import annotations

from typing import ClassVar

from faults.down import Down
from harness.controls import Power
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class PowerLoss(Down):
    """The process dies at once, and of its files only that is left which was flushed: bytes, sizes and names."""

    kind: ClassVar[str] = "power_loss"
    needs: ClassVar[type[Target]] = Power
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.ENDS,
        disk=DiskEffect.UNFLUSHED,
        cuts_links=False,
        moves_clock=False,
        shown_as="lost power",
        column="power",
        column_on_controller=None,
    )

    def inject(self, target: Power) -> None:
        """Pull the plug."""
        target.lose_power(self.name)

    def probe(self, target: Power) -> Receipt:
        """Holds when the node is dead and nothing is on its disk that had not reached it."""
        return target.has_lost_power(self.name)
