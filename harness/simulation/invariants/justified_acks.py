"""T9: records acknowledged with acks=all are below the watermark, on enough brokers."""

from __future__ import annotations

from harness.model import Offset
from harness.simulation.core.disk import Record
from harness.simulation.findings import Findings
from harness.simulation.invariants.client_records import ACKS_ALL
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER, UNJUSTIFIED
from harness.simulation.witnessed import Broker, Cluster, ProduceRequest


class JustifiedAcks(Invariant):
    """See the module.

    Args:
        findings: what it reports to.
        cluster: whose brokers have copies.
        committed: tells which records may be missing.
        copied: whether to count the copies. Those of a broker that lost power, and has not caught up since, count.
    """

    def __init__(self, findings: Findings, cluster: Cluster, committed: CommittedLog, *, copied: bool) -> None:
        self._findings = findings
        self._cluster = cluster
        self._committed = committed
        self._copied = copied

    def acknowledged(self, broker: Broker, produce: ProduceRequest, base_offset: Offset) -> None:
        """See :class:`Invariant`."""
        if produce.acks != ACKS_ALL:
            return
        assert broker.replica is not None
        end = base_offset + len(produce.values)
        held = broker.disk.records[base_offset - broker.disk.start : end - broker.disk.start]
        if broker.replica.high_watermark < end or [record.value for record in held] != list(produce.values):
            self._accuse(UNJUSTIFIED, "acknowledged above the watermark", broker, base_offset)
        if not self._copied or broker.replica.leader_epoch < self._committed.given_up:
            return
        copies = self._copies(base_offset, end, held)
        if copies < self._cluster.configuration.minimal_isr:
            self._accuse(DANGER, f"acknowledged with {copies} copies", broker, base_offset)

    def _copies(self, base_offset: Offset, end: Offset, held: list[Record]) -> int:
        copies = 0
        for other in self._cluster.brokers:
            start, records = other.disk.start, other.disk.records
            gone = other.lossy or base_offset < min(start, self._committed.deleted)
            copies += gone or records[max(base_offset - start, 0) : end - start] == held
        return copies

    def _accuse(self, kind: str, why: str, broker: Broker, offset: Offset) -> None:
        self._findings.accuse("T9", kind, why, offset=offset, nodes=(broker.node,))
