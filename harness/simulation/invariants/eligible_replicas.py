"""T7 and T10: a replica that may be elected holds everything that is committed."""

from __future__ import annotations

from harness.model import Offset
from harness.replication.controller_messages import IsrChanged
from harness.simulation.findings import Findings
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker, Cluster, vouched_for

_WHY = "may be elected, and lacks a committed record"


class EligibleHoldCommitted(Invariant):
    """T7, and R4: when the leader of the controller's epoch commits, each replica in ISR and ELR holds what is new.

    Not of brokers that lost power and have not caught up since.
    """

    def __init__(self, findings: Findings, cluster: Cluster, committed: CommittedLog) -> None:
        self._findings = findings
        self._cluster = cluster
        self._committed = committed

    def committed(self, leader: Broker, first: Offset) -> None:
        """See :class:`Invariant`."""
        partition, replica = self._cluster.controller.partition, leader.replica
        if partition is None or replica is None or partition.leader_epoch != replica.leader_epoch:
            return
        for node in (*partition.isr, *partition.elr):
            broker = self._cluster.brokers[node]
            offset = None if broker.lossy else self._committed.lacked_by(broker, first)
            if offset is not None:
                self._findings.accuse("T7", DANGER, _WHY, offset=offset, nodes=(node,))


class JoinsWithCommitted(Invariant):
    """T10: a replica that joins the ISR holds everything committed.

    Not of a broker that has lost power, or restarted after that, while the controller does not know.
    """

    def __init__(self, findings: Findings, cluster: Cluster, committed: CommittedLog) -> None:
        self._findings = findings
        self._cluster = cluster
        self._committed = committed

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        for node in effect.partition.isr:
            broker = self._cluster.brokers[node]
            powerless = broker.lossy and not vouched_for(self._cluster.controller, broker)
            if node in effect.previous_isr or powerless:
                continue
            offset = self._committed.lacked_by(broker, 0)
            if offset is not None:
                self._findings.accuse("T10", DANGER, _WHY, offset=offset, nodes=(node,))
