"""The base of faults that stop a broker, do something to its disk, and start it again to heal."""

from __future__ import annotations

from faults.node_fault import NodeFault
from harness.controls import Restarts
from harness.target import Receipt


class Down(NodeFault):
    """A fault that is healed by starting the node again."""

    def heal(self, target: Restarts) -> None:
        """Start the node again, unless it runs, or was started and has ended itself since."""
        if not target.is_running(self.name).holds and not target.has_exited(self.name).holds:
            target.restart(self.name)

    def probe_healed(self, target: Restarts) -> Receipt:
        """Holds when the node was started again: it runs and answers, or it did, and then ended itself."""
        running = target.is_running(self.name)
        ended = target.has_exited(self.name)
        return ended if ended.holds else running
