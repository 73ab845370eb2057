"""What an operator does to topics: the controller's state after it, or why the request is refused.

Follows KRaft's ``ReplicationControlManager`` and ``ConfigurationControlManager``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication.cluster_state import ClusterState
from harness.replication.controller_messages import (
    ConfigsRequested,
    DoomedReplica,
    PartitionsRequested,
    PartitionState,
    TopicCreationRequested,
)
from harness.replication.knobs import Knobs
from harness.replication.topic_configs import Refusal, altered
from harness.replication.topics import extend, found, place


def create(
    state: ClusterState, request: TopicCreationRequested, live: Sequence[NodeId], knobs: Knobs
) -> list[PartitionState] | Refusal:
    """Create a topic; returns its partitions."""
    if _partitions_of(state, request.topic):
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {request.topic!r} already exists.")
    if knobs.topic_identity == "name" and any(one.topic_partition.topic == request.topic for one in state.doomed):
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {request.topic!r} is marked for deletion.")
    placed = place(request, state.brokers, live)
    configs = altered({}, request.alterations)
    for outcome in (placed, configs):
        if isinstance(outcome, Refusal):
            return outcome
    assert not isinstance(placed, Refusal)
    assert not isinstance(configs, Refusal)
    created = found(request.topic, placed, live)
    if "first_isr_is_the_leader" in knobs.bugs:
        created = [partition._replace(isr=(partition.leader,)) for partition in created]
    state.create(created)
    state.configure(request.topic, configs)
    return created


def enlarge(
    state: ClusterState, request: PartitionsRequested, live: Sequence[NodeId]
) -> list[PartitionState] | Refusal:
    """Add partitions to a topic; returns the new ones."""
    before = _partitions_of(state, request.topic)
    if not before:
        return _unknown(request.topic)
    placed = extend(request, before, state.brokers, live)
    if isinstance(placed, Refusal):
        return placed
    created = found(request.topic, placed, live, first=len(before))
    if not request.validate_only:
        state.create(created)
    return created


def delete(state: ClusterState, topic: str) -> list[PartitionState] | Refusal:
    """Delete a topic; returns its partitions in their last epoch, in which none has a leader."""
    before = _partitions_of(state, topic)
    if not before:
        return _unknown(topic)
    ended = [
        one._replace(leader=NO_LEADER, leader_epoch=one.leader_epoch + 1, partition_epoch=one.partition_epoch + 1)
        for one in before
    ]
    incarnation = state.topics[topic].incarnation
    doomed = [
        DoomedReplica(broker, one.topic_partition, incarnation, one.leader_epoch)
        for one in ended
        for broker in one.replicas
    ]
    state.delete(topic, doomed)
    return ended


def configure(state: ClusterState, request: ConfigsRequested) -> bool | Refusal:
    """Change the configurations of a topic; returns whether that made a difference."""
    before = state.topics.get(request.topic)
    if before is None:
        return _unknown(request.topic)
    configs = altered(dict(before.configs), request.alterations, replaces=request.replaces)
    if isinstance(configs, Refusal):
        return configs
    if request.validate_only or tuple(configs.items()) == before.configs:
        return False
    state.configure(request.topic, configs)
    return True


def _partitions_of(state: ClusterState, topic: str) -> list[PartitionState]:
    return [partition for name, partition in state.partitions.items() if name.topic == topic]


def _unknown(topic: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
