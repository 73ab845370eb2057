"""Whether the controller accepts the ISR that a leader proposes (``AlterPartition``, KIP-497)."""

from __future__ import annotations

from harness.error_codes import NO_ERROR, ErrorCode
from harness.replication.cluster_state import ClusterState
from harness.replication.controller_messages import IsrChangeRequested, PartitionState
from harness.replication.knobs import Knobs
from harness.replication.offline_replicas import OfflineReplicas


class IsrProposals:
    """Judges proposals by what the controller knows.

    Args:
        state: of the controller.
        offline: the replicas that lie in log directories that have failed.
        knobs: of the generation.
    """

    def __init__(self, state: ClusterState, offline: OfflineReplicas, knobs: Knobs) -> None:
        self._state = state
        self._offline = offline
        self._knobs = knobs

    def error(self, request: IsrChangeRequested, partition: PartitionState | None) -> ErrorCode:
        """Why the proposal is refused; ``NONE`` when it is not. ``partition`` is None where there is no such one."""
        error = self._state.broker_error(request.broker, request.broker_epoch)
        if "isr_change_unchecked" in self._knobs.bugs and partition is not None:
            return NO_ERROR
        if error is not NO_ERROR:
            return error
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if request.leader_epoch != partition.leader_epoch:
            older = request.leader_epoch < partition.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return self._proposal_error(request, partition)

    def _proposal_error(self, request: IsrChangeRequested, partition: PartitionState) -> ErrorCode:
        distinct = len(set(request.isr)) == len(request.isr)
        leads = partition.leader in request.isr or (self._knobs.empty_isr_retry and not request.isr)
        if request.broker != partition.leader or not distinct or not leads:
            return ErrorCode.INVALID_REQUEST
        if request.partition_epoch != partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not set(request.isr) <= set(partition.replicas):
            return ErrorCode.INVALID_REQUEST
        return NO_ERROR if self._are_eligible(request) else ErrorCode.INELIGIBLE_REPLICA

    def _are_eligible(self, request: IsrChangeRequested) -> bool:
        """Whether every member has a session (KIP-841), the one that the leader knows (KIP-903)."""
        live = self._offline.live(request.topic_partition, self._state.live_brokers)
        if not self._knobs.fenced_replicas_join and not set(request.isr) <= set(live):
            return False
        if not self._knobs.broker_epoch_check:
            return True
        said = zip(request.isr, request.broker_epochs, strict=False)
        return all(epoch == -1 or self._state.broker_error(node, epoch) is NO_ERROR for node, epoch in said)
