"""log_dir_failure: one of a broker's disks fails, and with it the log directory that is on it (KIP-112)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from faults.back import bring_back, end, is_back
from faults.node_fault import NodeFault
from harness.controls import LogDirectories
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class LogDirFailure(NodeFault):
    """The log directory is none any more: what names a file in it is refused, what is open already stays open.

    The broker notices with its next checkpoint, epoch or segment there, and takes the directory offline, or halts.
    Healing therefore puts the directory back *and* has the broker start again.

    Attributes:
        log_dir: which of the broker's directories (``log.dirs.count``), from 0.
        replaced: whether what it is healed with is a new, empty disk.
        must_notice: whether it is proven only once the broker has taken the directory offline, or has halted.
    """

    kind: ClassVar[str] = "log_dir_failure"
    needs: ClassVar[type[Target]] = LogDirectories
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.MAY_END,
        disk=DiskEffect.DIRECTORY,
        cuts_links=False,
        moves_clock=False,
        shown_as=None,
        column=None,
        column_on_controller=None,
    )

    log_dir: int = Field(ge=0)
    replaced: bool = False
    must_notice: bool = True

    def inject(self, target: LogDirectories) -> None:
        """Let the directory fail."""
        target.fail_log_dir(self.name, self.log_dir)

    def probe(self, target: LogDirectories) -> Receipt:
        """Holds when no file can be created in the directory and, unless it need not, the broker has noticed."""
        failed = target.is_log_dir_failed(self.name, self.log_dir)
        noticed = self._noticed(target)
        holds = failed.holds and (noticed.holds or not self.must_notice)
        return Receipt(holds, f"{failed.seen}; {noticed.seen}")

    def _noticed(self, target: LogDirectories) -> Receipt:
        """Whether the broker has taken the directory offline, or has halted."""
        halted = target.has_exited(self.name)
        if halted.holds:
            return halted
        running = target.is_running(self.name)
        if not running.holds:
            return running
        offline = self.log_dir in target.offline_log_dirs(self.name)
        return Receipt(offline, f"the broker has {'taken it offline' if offline else 'not noticed yet'}")

    def heal(self, target: LogDirectories) -> None:
        """Put the directory back, or a new one, and have the broker start on it.

        Before a new one is put in, the broker ends, whether it has noticed or not: else it would go on in the old one.
        """
        if self.replaced and target.is_log_dir_failed(self.name, self.log_dir).holds:
            end(target, self.name)
        target.mend_log_dir(self.name, self.log_dir, empty=self.replaced)
        bring_back(target, self.name)

    def probe_healed(self, target: LogDirectories) -> Receipt:
        """Holds when the broker runs with all its directories, and they take writes.

        If it was ``replaced``, it must have been empty, and the broker must have started on it.
        """
        back = is_back(target, self.name)
        if not back.holds:
            return back
        receipts = [back, target.takes_writes(self.name)]
        if self.replaced:
            receipts.append(target.is_log_dir_new(self.name, self.log_dir))
        return Receipt.of_all(receipts)
