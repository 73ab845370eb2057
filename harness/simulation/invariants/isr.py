"""T5 and T6: the ISR of the controller, and the ISR that the leader waits for."""

from __future__ import annotations

from harness.model import NO_LEADER, NodeId
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.replication.messages import ProposeIsr
from harness.simulation.findings import Findings
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker, Cluster


class ValidIsr(Invariant):
    """T5: the leader is in the ISR, which lies within the replicas and, while one leads, is not empty."""

    def __init__(self, findings: Findings, cluster: Cluster) -> None:
        self._findings = findings
        knobs, unclean = cluster.knobs, cluster.configuration.unclean_leader_election_enable
        self._may_be_empty = knobs.elections == "elr" or (unclean and knobs.last_isr_member == "leaves_if_unclean")

    def elected(self, effect: Elected) -> None:
        """See :class:`Invariant`."""
        self._check(effect.partition)

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        self._check(effect.partition)

    def _check(self, state: PartitionState) -> None:
        outside = (state.leader != NO_LEADER and state.leader not in state.isr) or not state.isr
        allowed_empty = not state.isr and self._may_be_empty and state.leader == NO_LEADER
        both = set(state.isr) & set(state.elr)
        if (outside and not allowed_empty) or both or not set(state.isr) <= set(state.replicas):
            self._findings.accuse("T5", DANGER, f"the controller has {state}")


class ValidElr(Invariant):
    """T5 with eligible leader replicas.

    There are none beside an ISR that is large enough; no member of the ISR is without a session; and ISR, ELR and the
    members of either that came back from an unclean shutdown are together no fewer than the minimal ISR, but between an
    election that is not clean and the next full ISR.
    """

    def __init__(self, findings: Findings, cluster: Cluster) -> None:
        self._findings = findings
        self._cluster = cluster
        self._filled = True

    def elected(self, effect: Elected) -> None:
        """See :class:`Invariant`."""
        if not effect.clean and effect.partition.leader != NO_LEADER:
            self._filled = False
        self._check(effect.partition)

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        self._check(effect.partition)

    def _check(self, state: PartitionState) -> None:
        least = self._cluster.configuration.minimal_isr
        full = len(state.isr) >= least
        if state.elr and full:
            self._accuse(f"eligible leader replicas beside a full ISR: {state}")
        self._filled = self._filled or full
        if self._filled and len({*state.isr, *state.elr, *state.last_known_elr}) < least:
            self._accuse(f"fewer may be elected, or were, than the minimal ISR: {state}")
        controller = self._cluster.controller.core
        if controller is None or state not in controller.partitions:
            return
        fenced = set(state.isr) - set(controller.live_brokers)
        if fenced:
            self._accuse(f"brokers without a session are in sync: {state}", tuple(sorted(fenced)))

    def _accuse(self, why: str, nodes: tuple[int, ...] = ()) -> None:
        self._findings.accuse("T5", DANGER, why, nodes=nodes)


class LeaderWaitsForIsr(Invariant):
    """T6: a leader that knows its epoch waits for every replica that is in the controller's ISR, or has proposed to."""

    def __init__(self, findings: Findings, cluster: Cluster) -> None:
        self._findings = findings
        self._cluster = cluster
        self._proposed: dict[NodeId, tuple[NodeId, ...]] = {}

    def proposed(self, broker: Broker, proposal: ProposeIsr) -> None:
        """See :class:`Invariant`."""
        self._proposed[broker.node] = proposal.isr

    def state_applied(self, broker: Broker, before: tuple[int, int]) -> None:
        """See :class:`Invariant`."""
        self._proposed.pop(broker.node, None)

    def isr_changed(self, effect: IsrChanged) -> None:
        """See :class:`Invariant`."""
        state = effect.partition
        replica = None if state.leader == NO_LEADER else self._cluster.brokers[state.leader].replica
        if replica is None or replica.leader_epoch != state.leader_epoch or replica.role != "leader":
            return
        if not set(state.isr) <= {*replica.isr, *self._proposed.get(state.leader, ())}:
            why = f"waits for {replica.isr}, the controller has {state.isr}"
            self._findings.accuse("T6", DANGER, why, nodes=(state.leader,))
