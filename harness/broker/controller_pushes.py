"""LeaderAndIsr, StopReplica and UpdateMetadata, which the controller pushes to every broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from harness.broker.controller_fence import ControllerFence
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import configs_in
from harness.broker.partition import Partition
from harness.broker.replica_fetchers import ReplicaFetchers
from harness.broker.replica_placement import ReplicaPlacement
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.messages import PartitionStateChanged
from harness.wire.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


def leader_and_isr(
    fence: ControllerFence, fetchers: ReplicaFetchers, placement: ReplicaPlacement, clock: Clock, request: Request
) -> None:
    """Serve LeaderAndIsr: make each replica that it names a leader or a follower."""
    body = cast("LeaderAndIsrRequest", request.body)
    error = fence.refusal_of(request.session.number, body.controller_epoch, body.broker_epoch)
    errors: list[LeaderAndIsrPartitionError] = []
    if error is ErrorCode.NONE:
        fetchers.learn_leaders({NodeId(one.broker_id): (one.host_name, one.port) for one in body.live_leaders})
        for topic in body.topic_states:
            for state in topic.partition_states:
                name = TopicPartition(topic.topic_name, state.partition_index)
                failed = _change_state(placement, name, topic, _event(state, clock), is_new=state.is_new)
                errors.append(LeaderAndIsrPartitionError(topic.topic_name, state.partition_index, failed))
    request.answer(LeaderAndIsrResponse(error, errors))


def _event(state: LeaderAndIsrPartitionState, clock: Clock) -> PartitionStateChanged:
    return PartitionStateChanged(
        NodeId(state.leader),
        state.leader_epoch,
        tuple(NodeId(node) for node in state.isr),
        tuple(NodeId(node) for node in state.replicas),
        state.partition_epoch,
        kafka_time_ns(clock),
    )


def _change_state(
    placement: ReplicaPlacement,
    name: TopicPartition,
    topic: LeaderAndIsrTopicState,
    state: PartitionStateChanged,
    *,
    is_new: bool,
) -> ErrorCode:
    partition = placement.replica_of(name, state, is_new=is_new)
    if partition is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    placement.replicas.configure(partition, topic.incarnation, configs_in(topic))
    partition.handle(state)
    return ErrorCode.KAFKA_STORAGE_ERROR if partition.replica.role == "offline" else ErrorCode.NONE


def stop_replica(fence: ControllerFence, placement: ReplicaPlacement, clock: Clock, request: Request) -> None:
    """Serve StopReplica: delete the replicas that it names, which are of topics that were deleted."""
    body = cast("StopReplicaRequest", request.body)
    error = fence.refusal_of(request.session.number, body.controller_epoch, body.broker_epoch)
    errors: list[StopReplicaPartitionError] = []
    if error is ErrorCode.NONE:
        for topic in body.topic_states:
            for state in topic.partition_states:
                partition = placement.replicas.get(TopicPartition(topic.topic_name, state.partition_index))
                failed = ErrorCode.NONE
                if partition is None and placement.may_hide_replicas:
                    failed = ErrorCode.KAFKA_STORAGE_ERROR
                elif partition is not None and state.delete_partition and partition.incarnation <= topic.incarnation:
                    failed = _delete(placement.replicas, partition, state.leader_epoch, clock)
                errors.append(StopReplicaPartitionError(topic.topic_name, state.partition_index, failed))
    request.answer(StopReplicaResponse(error, errors))


def _delete(replicas: Replicas, partition: Partition, leader_epoch: int, clock: Clock) -> ErrorCode:
    """Delete a replica after it has learned that there is no leader any more: clients do, and what follows it stops."""
    replica, now_ns = partition.replica, kafka_time_ns(clock)
    epoch = max(leader_epoch, replica.leader_epoch + 1)
    partition.handle(PartitionStateChanged(NO_LEADER, epoch, (), replica.replicas, replica.partition_epoch + 1, now_ns))
    return ErrorCode.NONE if replicas.delete(partition) else ErrorCode.KAFKA_STORAGE_ERROR


def update_metadata(fence: ControllerFence, learn: Callable[[UpdateMetadataRequest], None], request: Request) -> None:
    """Serve UpdateMetadata: ``learn`` takes the metadata of an accepted request."""
    body = cast("UpdateMetadataRequest", request.body)
    error = fence.refusal_of(request.session.number, body.controller_epoch, body.broker_epoch)
    if error is ErrorCode.NONE:
        learn(body)
    request.answer(UpdateMetadataResponse(error))
