"""wipe_disk: a machine dies, its disk is replaced by an empty one, and it comes back under the same name."""

from __future__ import annotations

from typing import ClassVar

from faults.down import Down
from harness.controls import DiskContents
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class WipeDisk(Down):
    """The process dies, and nothing is left of its files; the next start finds an empty disk.

    Attributes:
        clean: whether the node is asked to shut down first, as before an operator changes its disk.
    """

    kind: ClassVar[str] = "wipe_disk"
    needs: ClassVar[type[Target]] = DiskContents
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.ENDS,
        disk=DiskEffect.EVERYTHING,
        cuts_links=False,
        moves_clock=False,
        shown_as="down, disk wiped",
        column=None,
        column_on_controller=None,
    )

    clean: bool = False

    def inject(self, target: DiskContents) -> None:
        """Take the node down, and swap its disk."""
        (target.shut_down if self.clean else target.kill)(self.name)
        target.wipe_disk(self.name)

    def probe(self, target: DiskContents) -> Receipt:
        """Holds when the node is down and its disk is empty."""
        down = target.is_shut_down(self.name) if self.clean else target.is_dead(self.name)
        empty = target.is_disk_empty(self.name)
        return Receipt(down.holds and empty.holds, f"{down.seen}; {empty.seen}")
