"""disk_full: a broker's storage takes a few more bytes and then answers ENOSPC, tearing the write in two."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from faults.back import bring_back, is_back
from faults.node_fault import NodeFault
from harness.controls import DiskSpace
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class DiskFull(NodeFault):
    """The node's storage takes ``free_bytes`` more and then refuses every write.

    A broker whose log cannot be written takes the log directory offline, or halts, as Kafka does with its last one;
    healing therefore lifts the limit *and* has the broker start again.

    Attributes:
        free_bytes: less than the 64 KiB that a probe tries to write, so that the limit can be proven at once.
        log_dir: the one of the broker's log directories that is full, from 0; None: all of them together.
        must_refuse: whether only the refusal of a write of the broker's own is a proof. For a broker under load.
    """

    kind: ClassVar[str] = "disk_full"
    needs: ClassVar[type[Target]] = DiskSpace
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.MAY_END,
        disk=DiskEffect.NEW_WRITES,
        cuts_links=False,
        moves_clock=False,
        shown_as=None,
        column="disk",
        column_on_controller=None,
    )

    free_bytes: int = Field(default=4096, ge=0, lt=65_536)
    log_dir: int | None = Field(default=None, ge=0)
    must_refuse: bool = False

    def inject(self, target: DiskSpace) -> None:
        """Limit the storage."""
        target.limit_disk(self.name, self.free_bytes, self.log_dir)

    def probe(self, target: DiskSpace) -> Receipt:
        """Holds when a write of the broker's own was refused, or, unless it must have been, a probe's is."""
        refused = target.has_refused_write(self.name, self.log_dir)
        if refused.holds or self.must_refuse:
            return refused
        full = target.is_disk_full(self.name, self.log_dir)
        return Receipt(full.holds, f"{full.seen}; {refused.seen}")

    def heal(self, target: DiskSpace) -> None:
        """Lift the limit, and start the broker again if it has halted or given up a directory."""
        target.limit_disk(self.name, None, self.log_dir)
        bring_back(target, self.name)

    def probe_healed(self, target: DiskSpace) -> Receipt:
        """Holds when the broker runs with all its directories, is not about to halt, and all of them take writes."""
        running = is_back(target, self.name)
        refused = target.has_refused_write(self.name, self.log_dir)
        if not running.holds or refused.holds:
            return Receipt(False, f"{running.seen}; {refused.seen}")
        return target.takes_writes(self.name)
