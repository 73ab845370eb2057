"""T13: healed, the cluster converges, and no broker exits."""

from __future__ import annotations

from harness.replication.messages import ReplicaFailed
from harness.simulation.findings import Findings
from harness.simulation.invariants.final_logs import FinalLogs
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import EXITED, STUCK
from harness.simulation.witnessed import Broker


class ComesToRest(Invariant):
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """See :class:`Invariant`. A broker whose disk has failed exits rightly."""
        if not effect.errno:
            self._findings.accuse("T13", EXITED, effect.reason, nodes=(broker.node,))

    def ended(self, final: FinalLogs) -> None:
        """See :class:`Invariant`."""
        if not final.converged:
            kind = EXITED if any(one.kind == EXITED for one in self._findings.violations) else STUCK
            self._findings.accuse("T13", kind, "all faults are over, and the cluster does not come to rest")
