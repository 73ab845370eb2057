"""What the controller serves to brokers: one function per API, from Kafka's messages to the core's events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from harness.broker.controller_driver import ControllerDriver
from harness.broker.controller_turns import in_turns
from harness.broker.newest_sessions import NewestSessions
from harness.broker.session import Request
from harness.broker.topic_ids import TopicOf
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    ProducerIdsRequested,
    RegistrationRequested,
    ReplicaPlaced,
)
from harness.wire.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
    AssignedDirectoryResult,
    AssignedPartitionResult,
    AssignedTopicResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    BrokerState,
)
from harness.wire.messages.operators import (
    UNCLEAN_ELECTION,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)


def register(driver: ControllerDriver, clock: Clock, cluster_id: str, request: Request) -> None:
    """Serve BrokerRegistration."""
    body = cast("BrokerRegistrationRequest", request.body)
    if request.session.peer != str(body.broker_id) or not body.listeners:
        request.answer(BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    if body.cluster_id != cluster_id:
        request.answer(BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    listener = body.listeners[0]

    def answer(outcome: AnswerRegistration) -> None:
        request.answer(BrokerRegistrationResponse(error_code=outcome.error, broker_epoch=outcome.broker_epoch))

    driver.handle(
        RegistrationRequested(
            answer,
            NodeId(body.broker_id),
            body.incarnation_id.hex(),
            listener.host,
            listener.port,
            clock.monotonic_ns(),
            body.previous_broker_epoch,
        )
    )


def heartbeat(driver: ControllerDriver, clock: Clock, request: Request) -> None:
    """Serve BrokerHeartbeat."""
    body = cast("BrokerHeartbeatRequest", request.body)

    def answer(outcome: AnswerHeartbeat) -> None:
        sound = outcome.error is ErrorCode.NONE
        request.answer(BrokerHeartbeatResponse(error_code=outcome.error, is_caught_up=sound, is_fenced=not sound))

    lost = tuple(log_dir.hex() for log_dir in body.offline_log_dirs)
    driver.handle(HeartbeatReceived(answer, NodeId(body.broker_id), body.broker_epoch, clock.monotonic_ns(), lost))


def allocate_producer_ids(driver: ControllerDriver, request: Request) -> None:
    """Serve AllocateProducerIds."""
    body = cast("AllocateProducerIdsRequest", request.body)

    def answer(outcome: AnswerProducerIds) -> None:
        request.answer(
            AllocateProducerIdsResponse(
                error_code=outcome.error, producer_id_start=outcome.first, producer_id_len=outcome.count
            )
        )

    driver.handle(ProducerIdsRequested(answer, NodeId(body.broker_id), body.broker_epoch))


def assign_replicas_to_dirs(driver: ControllerDriver, topic_of: TopicOf, request: Request) -> None:
    """Serve AssignReplicasToDirs (KIP-858): each replica on its own, in the order of the request."""
    body = cast("AssignReplicasToDirsRequest", request.body)
    response = AssignReplicasToDirsResponse()
    for directory in body.directories:
        placed = AssignedDirectoryResult(directory.id_)
        response.directories.append(placed)
        for topic in directory.topics:
            results = AssignedTopicResult(topic.topic_id)
            placed.topics.append(results)
            for asked in topic.partitions:
                name = TopicPartition(topic_of(topic.topic_id) or "", asked.partition_index)

                def answer(
                    outcome: AnswerPlacement, results: AssignedTopicResult = results, name: TopicPartition = name
                ) -> None:
                    results.partitions.append(AssignedPartitionResult(name.partition, outcome.error))
                    if outcome.error is ErrorCode.STALE_BROKER_EPOCH:
                        response.error_code = outcome.error

                driver.handle(ReplicaPlaced(answer, NodeId(body.broker_id), body.broker_epoch, name))
    driver.answer_unless_halted(request, response)


def alter_partition(driver: ControllerDriver, sessions: NewestSessions, topic_of: TopicOf, request: Request) -> None:
    """Serve AlterPartition: each partition on its own, in the order of the request.

    The controller refuses requests of an abandoned connection: the leader has given up on them, and may have proposed
    another ISR since.
    """
    if sessions.is_abandoned(request.session):
        request.answer(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
        return
    body = cast("AlterPartitionRequest", request.body)
    response = AlterPartitionResponse()
    for topic in body.topics:
        results = AlterPartitionTopicResult(topic.topic_id)
        response.topics.append(results)
        for asked in topic.partitions:
            name = TopicPartition(topic_of(topic.topic_id) or "", asked.partition_index)
            members = asked.new_isr_with_epochs or [BrokerState(member) for member in asked.new_isr]

            def answer(
                outcome: AnswerIsrChange, results: AlterPartitionTopicResult = results, name: TopicPartition = name
            ) -> None:
                results.partitions.append(_isr_result(name, outcome))

            driver.handle(
                IsrChangeRequested(
                    answer,
                    NodeId(body.broker_id),
                    body.broker_epoch,
                    name,
                    asked.leader_epoch,
                    asked.partition_epoch,
                    tuple(NodeId(member.broker_id) for member in members),
                    tuple(member.broker_epoch for member in members),
                )
            )
    driver.answer_unless_halted(request, response)


def _isr_result(name: TopicPartition, outcome: AnswerIsrChange) -> AlterPartitionPartitionResult:
    state = outcome.partition
    if state is None:
        return AlterPartitionPartitionResult(name.partition, outcome.error, -1, -1, partition_epoch=-1)
    return AlterPartitionPartitionResult(
        name.partition,
        outcome.error,
        state.leader,
        state.leader_epoch,
        list(state.isr),
        partition_epoch=state.partition_epoch,
    )


def elect_leaders(driver: ControllerDriver, core: Controller, clock: Clock, request: Request) -> None:
    """Serve ElectLeaders (KIP-460) as forwarded by a broker."""
    body = cast("ElectLeadersRequest", request.body)
    unclean = body.election_type == UNCLEAN_ELECTION
    response = ElectLeadersResponse()
    elections: list[Callable[[], None]] = []
    for topic in _every_partition(core) if body.topic_partitions is None else body.topic_partitions:
        results = ReplicaElectionResult(topic.topic)
        response.replica_election_results.append(results)
        elections += [
            partial(_elect, driver, clock, TopicPartition(topic.topic, number), unclean, results)
            for number in topic.partitions
        ]
    in_turns(driver, elections, lambda: driver.answer_unless_halted(request, response))


def _elect(
    driver: ControllerDriver, clock: Clock, name: TopicPartition, unclean: bool, results: ReplicaElectionResult
) -> None:
    def answer(outcome: AnswerElection) -> None:
        sentence = outcome.error.name if outcome.error else None
        results.partition_result.append(PartitionResult(name.partition, outcome.error, sentence))

    driver.handle(ElectionRequested(answer, name, None, unclean, clock.monotonic_ns()))


def _every_partition(core: Controller) -> list[TopicPartitions]:
    topics: dict[str, TopicPartitions] = {}
    for state in core.partitions:
        name = state.topic_partition
        topics.setdefault(name.topic, TopicPartitions(name.topic)).partitions.append(name.partition)
    return list(topics.values())
