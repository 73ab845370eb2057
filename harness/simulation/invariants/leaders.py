"""R3, T3 and T4: epochs never fall, each has one leader, and that one holds everything that was committed."""

from __future__ import annotations

from harness.model import NodeId
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.simulation.findings import Findings, excused_if
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER, REGRESSED
from harness.simulation.witnessed import Broker


class EpochsNeverFall(Invariant):
    """T4: at no broker, and not at the controller."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._newest = (-1, -1)

    def state_applied(self, broker: Broker, before: tuple[int, int]) -> None:
        """See :class:`Invariant`."""
        replica = broker.replica
        assert replica is not None
        if (replica.leader_epoch, replica.partition_epoch) < before:
            self._findings.accuse("T4", DANGER, f"epochs fall from {before}", nodes=(broker.node,))

    def elected(self, effect: Elected) -> None:
        """See :class:`Invariant`."""
        state = effect.partition
        if state.leader_epoch < self._newest[0] or state.partition_epoch < self._newest[1]:
            self._findings.accuse("T4", DANGER, f"the controller falls back from {self._newest} to {state}")
        self._note(state)

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        self._note(effect.partition)

    def _note(self, state: PartitionState) -> None:
        self._newest = (state.leader_epoch, state.partition_epoch)


class OneLeaderPerEpoch(Invariant):
    """T3: of those that take office.

    Attributes:
        leaders: by epoch, the first that did.
    """

    def __init__(self, findings: Findings) -> None:
        self.leaders: dict[int, NodeId] = {}
        self._findings = findings

    def took_office(self, leader: Broker, epoch: int) -> None:
        """See :class:`Invariant`."""
        known = self.leaders.setdefault(epoch, leader.node)
        if known != leader.node:
            self._findings.accuse("T3", DANGER, f"both lead in epoch {epoch}", nodes=(known, leader.node))


class LeaderHoldsCommitted(Invariant):
    """R3: a broker that becomes leader holds everything committed; a late one, what earlier epochs committed.

    Excused is the leader that an unclean election has chosen, or the first one after it to take office, for that one
    may have failed. What a leader lacks is committed no more.

    Attributes:
        newest_epoch: the newest that the controller has begun.
    """

    def __init__(self, findings: Findings, committed: CommittedLog) -> None:
        self.newest_epoch = -1
        self._findings = findings
        self._committed = committed
        self._led: set[int] = set()

    def elected(self, effect: Elected) -> None:
        """See :class:`Invariant`."""
        self.newest_epoch = effect.partition.leader_epoch

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        self.newest_epoch = effect.partition.leader_epoch

    def took_office(self, leader: Broker, epoch: int) -> None:
        """See :class:`Invariant`."""
        self._led.add(epoch)
        committed, current = self._committed, epoch >= self.newest_epoch
        offset = committed.missing(leader, None if current else epoch)
        if offset is None:
            return
        value = committed.records[offset].value
        self._findings.accuse(
            "R3", REGRESSED, f"leads in epoch {epoch} without value {value}, which was committed",
            offset=offset, nodes=(leader.node,), verdict=excused_if(self._may_lack(epoch)),
        )  # fmt: skip
        if current:
            committed.cut(offset)

    def _may_lack(self, epoch: int) -> bool:
        given_up = self._committed.given_up
        if epoch in self._committed.unclean_epochs:
            return True
        return epoch > given_up >= 0 and all(led < given_up or led == epoch for led in self._led)
