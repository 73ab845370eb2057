"""C1 and C8: what was acknowledged, or delivered, is in the final leader's log at its offset."""

from __future__ import annotations

from harness.checker import Verdict
from harness.simulation.findings import Findings, excused_if
from harness.simulation.invariants.client_records import ACKS_ALL, Acknowledged, ClientRecords
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.final_logs import FinalLogs
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.invariants.log_matching import Lineage
from harness.simulation.violations import LOST, VANISHED
from harness.simulation.witnessed import Broker, Cluster


class AcknowledgedKept(Invariant):
    """C1."""

    def __init__(
        self, findings: Findings, cluster: Cluster, committed: CommittedLog, lineage: Lineage, clients: ClientRecords
    ) -> None:
        self._findings = findings
        self._cluster = cluster
        self._committed = committed
        self._lineage = lineage
        self._clients = clients

    def ended(self, final: FinalLogs) -> None:
        """See :class:`Invariant`."""
        anywhere = {value for _, value in final.held}
        epochs = self._lineage.written_in()
        for one in self._clients.acknowledged:
            survives = one.value in anywhere if one.offset < 0 else (one.offset, one.value) in final.held
            if survives or 0 <= one.offset < final.deleted:
                continue
            holders = tuple(b.node for b in self._cluster.brokers if _holds(b, one.offset, one.value))
            found = f"is still on broker {', '.join(map(str, holders))} (R9)" if holders else "is nowhere (R9)"
            self._findings.accuse(
                "C1", LOST, f"value {one.value} was acknowledged (acks={one.acks}), and {found}",
                offset=None if one.offset < 0 else one.offset, value=one.value, nodes=final.alone,
                verdict=self._verdict(one, epochs.get(one.value, -1)), once=False,
            )  # fmt: skip

    def _verdict(self, one: Acknowledged, epoch: int) -> Verdict:
        known = (one.offset, one.value)
        if one.acks != ACKS_ALL and known not in self._committed.ever and known not in self._clients.delivered:
            return Verdict.WEAK
        return excused_if(self._committed.forks.gave_up(epoch, one.offset, one.value))


class DeliveredKept(Invariant):
    """C8. A leader that does not know of an unclean election may still deliver what that gave up: it is excused."""

    def __init__(self, findings: Findings, committed: CommittedLog, lineage: Lineage, clients: ClientRecords) -> None:
        self._findings = findings
        self._committed = committed
        self._lineage = lineage
        self._clients = clients

    def ended(self, final: FinalLogs) -> None:
        """See :class:`Invariant`."""
        epochs = self._lineage.written_in()
        for offset, value in self._clients.delivered:
            if offset >= final.deleted and (offset, value) not in final.held:
                excused = self._committed.forks.gave_up(epochs.get(value, -1), offset, value)
                self._findings.accuse(
                    "C8", VANISHED, f"value {value} was delivered, and the final leader does not have it",
                    offset=offset, value=value, nodes=final.alone, verdict=excused_if(excused), once=False,
                )  # fmt: skip


def _holds(broker: Broker, offset: int, value: int) -> bool:
    at = offset - broker.disk.start
    return 0 <= at < len(broker.disk.records) and broker.disk.records[at].value == value
