"""R1 and T8: records below a high watermark are committed, and none rises while the ISR is too small."""

from __future__ import annotations

from harness.model import Offset
from harness.simulation.findings import Findings, excused_if
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.final_logs import FinalLogs
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER, DIVERGED
from harness.simulation.witnessed import Broker


class EqualBelowWatermark(Invariant):
    """R1: what a watermark newly covers is the truth; in the end, logs are equal below both watermarks."""

    def __init__(self, findings: Findings, committed: CommittedLog) -> None:
        self._findings = findings
        self._committed = committed

    def watermark_advanced(self, broker: Broker, high_watermark: Offset) -> None:
        """See :class:`Invariant`."""
        committed, disk = self._committed, broker.disk
        first = committed.compared.get(broker.node, 0)
        committed.compared[broker.node] = max(first, high_watermark)
        end = min(high_watermark, committed.end)
        for offset in committed.lacking(broker, max(first, disk.start, committed.deleted), end)[:1]:
            held, truth = disk.records[offset - disk.start], committed.records[offset]
            self._findings.accuse(
                "R1", DANGER, f"holds {held} below its watermark where {tuple(truth)} was committed",
                offset=offset, nodes=(broker.node,), verdict=excused_if(committed.may_differ(broker, offset)),
            )  # fmt: skip

    def log_ended(self, broker: Broker, final: FinalLogs) -> None:
        """See :class:`Invariant`. Whatever happened before counts no more."""
        leader = final.leader
        if leader is None or broker is leader or broker.replica is None or leader.replica is None:
            return
        first = max(leader.disk.start, broker.disk.start)
        bound = min(leader.replica.high_watermark, broker.replica.high_watermark)
        for offset in range(first, bound):
            ours = leader.disk.records[offset - leader.disk.start]
            theirs = broker.disk.records[offset - broker.disk.start]
            if ours != theirs:
                self._findings.accuse(
                    "R1", DIVERGED, f"broker {leader.node} holds {ours}, broker {broker.node} {theirs}",
                    offset=offset, value=ours.value, nodes=(leader.node, broker.node), once=False,
                )  # fmt: skip


class FrozenWatermark(Invariant):
    """T8: no leader's watermark rises while the ISR that it knows is below the minimum."""

    def __init__(self, findings: Findings, minimal_isr: int) -> None:
        self._findings = findings
        self._minimal_isr = minimal_isr

    def watermark_advanced(self, broker: Broker, high_watermark: Offset) -> None:
        """See :class:`Invariant`."""
        replica = broker.replica
        assert replica is not None
        if replica.role == "leader" and len(replica.isr) < self._minimal_isr:
            why = f"the watermark rises with an ISR of {replica.isr}"
            self._findings.accuse("T8", DANGER, why, nodes=(broker.node,))
