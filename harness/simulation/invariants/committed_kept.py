"""R8 and R10: a replica deletes only what was committed and asked to be deleted, and cuts nothing that is committed."""

from __future__ import annotations

import math

from harness.model import Offset
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.replication.messages import RaiseLogStart, StartLogAt, Truncate
from harness.simulation.core.disk import Batch
from harness.simulation.findings import Findings, excused_if
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker, Cluster


class DeletesWhatItMay(Invariant):
    """R8: what is deleted on purpose is committed; and followers delete nothing else."""

    def __init__(self, findings: Findings, committed: CommittedLog) -> None:
        self._findings = findings
        self._committed = committed

    def wiped(self, broker: Broker, effect: StartLogAt) -> None:
        """See :class:`Invariant`."""
        self._check(broker, effect.offset, self._committed.deleted)

    def log_start_raised(self, broker: Broker, effect: RaiseLogStart) -> None:
        """See :class:`Invariant`."""
        committed = self._committed
        if effect.reason == "leader":
            self._check(broker, effect.to_offset, committed.deleted)
            return
        outdated = broker.replica is not None and broker.replica.leader_epoch < committed.given_up
        self._check(broker, effect.to_offset, effect.to_offset if outdated else committed.end)

    def _check(self, broker: Broker, to_offset: Offset, most: Offset) -> None:
        if to_offset > most:
            why = f"deletes up to {to_offset}, where {most} is allowed"
            verdict = excused_if(self._committed.given_up >= 0)
            self._findings.accuse("R8", DANGER, why, offset=most, nodes=(broker.node,), verdict=verdict)


class CutsNothingCommitted(Invariant):
    """R10; what a power loss takes is no cut.

    A replica outside of ISR and ELR that has not heard of the newest election may still follow the leader before, and
    cut as that one demands, what the present leader has committed meanwhile without it. It holds that again before it
    can be elected.
    """

    def __init__(self, findings: Findings, cluster: Cluster, committed: CommittedLog) -> None:
        self._findings = findings
        self._cluster = cluster
        self._committed = committed
        self._known: PartitionState | None = None

    def elected(self, effect: Elected) -> None:
        """See :class:`Invariant`."""
        self._known = effect.partition

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        self._known = effect.partition

    def truncated(self, broker: Broker, effect: Truncate, cut: list[Batch]) -> None:
        """See :class:`Invariant`."""
        if broker.disk.end < self._committed.end:
            self._check(broker, cut, effect.reason)

    def wiped(self, broker: Broker, effect: StartLogAt) -> None:
        """See :class:`Invariant`."""
        self._check(broker, broker.disk.batches, "wiped")

    def _check(self, broker: Broker, cut: list[Batch], reason: str) -> None:
        last = self._latest(broker)
        offset = next((one for one in self._committed.among(cut) if self._committed.epochs[one] <= last), None)
        if offset is not None:
            self._findings.accuse(
                "R10", DANGER, f"a committed record is cut ({reason})", offset=offset, nodes=(broker.node,),
                verdict=excused_if(self._committed.may_differ(broker, offset)),
            )  # fmt: skip

    def _latest(self, broker: Broker) -> float:
        """The latest epoch whose commits a replica must not cut; infinite for one that may be elected."""
        state = self._cluster.controller.partition or self._known
        is_out = state is not None and broker.node not in {*state.isr, *state.elr}
        return broker.replica.leader_epoch if is_out and broker.replica is not None else math.inf
