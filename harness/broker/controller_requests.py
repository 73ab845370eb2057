"""What brokers ask of the controller: one function per API, from Kafka's messages to the core's events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

from harness.broker.codes import FrontError
from harness.broker.committed import offset_commit, offset_fetch
from harness.broker.session import Handle, Request, answer_api_versions, is_node, only_from
from harness.broker.topic_ids import topic_id
from harness.model import NodeId, TopicPartition
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicCreation,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    ProducerIdsRequested,
    RegistrationRequested,
    ReplicaPlaced,
    TopicCreationRequested,
)
from harness.replication.messages import ErrorCode
from harness.replication.topics import MAX_CLUSTER_PARTITIONS, MAX_PARTITIONS
from harness.wire.declaration import NO_UUID
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    UNCLEAN_ELECTION,
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
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

if TYPE_CHECKING:
    from harness.broker.controller_node import ControllerNode


STEPS_PER_TURN = 8
"""How many changes that one request asks for are made and written down before others have their turn."""


def controller_handlers(node: ControllerNode) -> Mapping[ApiKey, Handle]:
    """What the controller serves; only ApiVersions is for everyone."""
    for_brokers: dict[ApiKey, Callable[[ControllerNode, Request], None]] = {
        ApiKey.BROKER_REGISTRATION: register,
        ApiKey.BROKER_HEARTBEAT: heartbeat,
        ApiKey.ALTER_PARTITION: alter_partition,
        ApiKey.CREATE_TOPICS: create_topics,
        ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: assign_replicas_to_dirs,
        ApiKey.ELECT_LEADERS: elect_leaders,
        ApiKey.OFFSET_COMMIT: offset_commit,
        ApiKey.OFFSET_FETCH: offset_fetch,
    }
    guarded = {key: only_from(is_node, partial(_serve, node, serve)) for key, serve in for_brokers.items()}
    return {ApiKey.API_VERSIONS: answer_api_versions, **guarded}


def _serve(node: ControllerNode, serve: Callable[[ControllerNode, Request], None], request: Request) -> None:
    node.heard_on(request.session)
    serve(node, request)


def _in_turns(node: ControllerNode, steps: Iterable[Callable[[], None]], done: Callable[[], None]) -> None:
    """Take all ``steps``, then call ``done``; after every few steps, other requests are served."""
    rest = iter(steps)

    def go_on() -> None:
        taken = 0
        for step in islice(rest, STEPS_PER_TURN):
            step()
            taken += 1
        if taken < STEPS_PER_TURN:
            done()
        else:
            node.later(go_on)

    go_on()


def register(node: ControllerNode, request: Request) -> None:
    """Serve BrokerRegistration."""
    body = cast("BrokerRegistrationRequest", request.body)
    if request.session.peer != str(body.broker_id) or not body.listeners:
        request.answer(BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    if body.cluster_id != node.cluster_id:
        request.answer(BrokerRegistrationResponse(error_code=FrontError.INCONSISTENT_CLUSTER_ID))
        return
    listener = body.listeners[0]

    def answer(outcome: AnswerRegistration) -> None:
        request.answer(BrokerRegistrationResponse(error_code=outcome.error, broker_epoch=outcome.broker_epoch))

    node.handle(
        RegistrationRequested(
            answer,
            NodeId(body.broker_id),
            body.incarnation_id.hex(),
            listener.host,
            listener.port,
            node.clock.monotonic_ns(),
            body.previous_broker_epoch,
        )
    )


def heartbeat(node: ControllerNode, request: Request) -> None:
    """Serve BrokerHeartbeat."""
    body = cast("BrokerHeartbeatRequest", request.body)

    def answer(outcome: AnswerHeartbeat) -> None:
        sound = outcome.error is ErrorCode.NONE
        request.answer(BrokerHeartbeatResponse(error_code=outcome.error, is_caught_up=sound, is_fenced=not sound))

    lost = tuple(log_dir.hex() for log_dir in body.offline_log_dirs)
    node.handle(HeartbeatReceived(answer, NodeId(body.broker_id), body.broker_epoch, node.clock.monotonic_ns(), lost))


def allocate_producer_ids(node: ControllerNode, request: Request) -> None:
    """Serve AllocateProducerIds."""
    body = cast("AllocateProducerIdsRequest", request.body)

    def answer(outcome: AnswerProducerIds) -> None:
        request.answer(
            AllocateProducerIdsResponse(
                error_code=outcome.error, producer_id_start=outcome.first, producer_id_len=outcome.count
            )
        )

    node.handle(ProducerIdsRequested(answer, NodeId(body.broker_id), body.broker_epoch))


def assign_replicas_to_dirs(node: ControllerNode, request: Request) -> None:
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
                name = TopicPartition(node.topic_of(topic.topic_id) or "", asked.partition_index)

                def answer(
                    outcome: AnswerPlacement, results: AssignedTopicResult = results, name: TopicPartition = name
                ) -> None:
                    results.partitions.append(AssignedPartitionResult(name.partition, outcome.error))
                    if outcome.error is ErrorCode.STALE_BROKER_EPOCH:
                        response.error_code = outcome.error

                node.handle(ReplicaPlaced(answer, NodeId(body.broker_id), body.broker_epoch, name))
    node.answer_unless_halted(request, response)


def alter_partition(node: ControllerNode, request: Request) -> None:
    """Serve AlterPartition: each partition on its own, in the order of the request.

    What an abandoned connection had carried is refused: its sender has given it up, and may have thought again.
    """
    if node.is_abandoned(request.session):
        request.answer(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
        return
    body = cast("AlterPartitionRequest", request.body)
    response = AlterPartitionResponse()
    for topic in body.topics:
        results = AlterPartitionTopicResult(topic.topic_id)
        response.topics.append(results)
        for asked in topic.partitions:
            name = TopicPartition(node.topic_of(topic.topic_id) or "", asked.partition_index)
            members = asked.new_isr_with_epochs or [BrokerState(member) for member in asked.new_isr]

            def answer(
                outcome: AnswerIsrChange, results: AlterPartitionTopicResult = results, name: TopicPartition = name
            ) -> None:
                results.partitions.append(_isr_result(name, outcome))

            node.handle(
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
    node.answer_unless_halted(request, response)


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


def elect_leaders(node: ControllerNode, request: Request) -> None:
    """Serve ElectLeaders (KIP-460) as forwarded by a broker."""
    body = cast("ElectLeadersRequest", request.body)
    unclean = body.election_type == UNCLEAN_ELECTION
    response = ElectLeadersResponse()
    elections: list[Callable[[], None]] = []
    for topic in _every_partition(node) if body.topic_partitions is None else body.topic_partitions:
        results = ReplicaElectionResult(topic.topic)
        response.replica_election_results.append(results)
        elections += [
            partial(_elect, node, TopicPartition(topic.topic, number), unclean, results) for number in topic.partitions
        ]
    _in_turns(node, elections, lambda: node.answer_unless_halted(request, response))


def _elect(node: ControllerNode, name: TopicPartition, unclean: bool, results: ReplicaElectionResult) -> None:
    def answer(outcome: AnswerElection) -> None:
        sentence = outcome.error.name if outcome.error else None
        results.partition_result.append(PartitionResult(name.partition, outcome.error, sentence))

    node.handle(ElectionRequested(answer, name, None, unclean, node.clock.monotonic_ns()))


def _every_partition(node: ControllerNode) -> list[TopicPartitions]:
    topics: dict[str, TopicPartitions] = {}
    for state in node.core.partitions:
        name = state.topic_partition
        topics.setdefault(name.topic, TopicPartitions(name.topic)).partitions.append(name.partition)
    return list(topics.values())


def create_topics(node: ControllerNode, request: Request) -> None:
    """Serve CreateTopics as forwarded by a broker. Settings are per cluster here, not per topic."""
    body = cast("CreateTopicsRequest", request.body)
    response = CreateTopicsResponse()
    creations = [partial(_create, node, topic, response, validate_only=body.validate_only) for topic in body.topics]
    _in_turns(node, creations, lambda: node.answer_unless_halted(request, response))


def _create(
    node: ControllerNode, topic: CreatableTopic, response: CreateTopicsResponse, *, validate_only: bool
) -> None:
    refusal = _unsupported(topic, validate_only=validate_only) or _excessive(node, topic)
    if refusal is not None:
        response.topics.append(refusal)
        return

    def answer(outcome: AnswerTopicCreation) -> None:
        response.topics.append(
            CreatableTopicResult(
                topic.name,
                NO_UUID if outcome.error else topic_id(node.cluster_id, topic.name),
                outcome.error,
                outcome.message or None,
                num_partitions=outcome.num_partitions,
                replication_factor=outcome.replication_factor,
                configs=[],
            )
        )

    node.handle(_creation(node, topic, answer))


def _excessive(node: ControllerNode, topic: CreatableTopic) -> CreatableTopicResult | None:
    """The refusal of a topic with which the cluster would have more partitions than it can serve."""
    asked = len(topic.assignments) or max(topic.num_partitions, 0) or node.settings.num_partitions
    there = len(node.core.partitions)
    if there + asked <= MAX_CLUSTER_PARTITIONS or asked > MAX_PARTITIONS:  # the core refuses so large a topic
        return None
    sentence = f"The cluster has {there} partitions; with {asked} more it would exceed {MAX_CLUSTER_PARTITIONS}."
    return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.POLICY_VIOLATION, sentence)


def _unsupported(topic: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult | None:
    if topic.configs:
        names = ", ".join(config.name for config in topic.configs)
        sentence = f"Topic settings ({names}) are not supported; set them for the whole cluster."
        return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.INVALID_CONFIG, sentence)
    if validate_only:
        return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.INVALID_REQUEST, "validate_only is not supported.")
    if sorted(one.partition_index for one in topic.assignments) != list(range(len(topic.assignments))):
        sentence = "Replica assignments must name the partitions from 0 on, each once."
        return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    return None


def _creation(
    node: ControllerNode, topic: CreatableTopic, answer: Callable[[AnswerTopicCreation], None]
) -> TopicCreationRequested:
    partitions, replication_factor = topic.num_partitions, topic.replication_factor
    if topic.assignments:
        ordered = sorted(topic.assignments, key=lambda one: one.partition_index)
        assignments = tuple(tuple(NodeId(broker) for broker in one.broker_ids) for one in ordered)
        return TopicCreationRequested(answer, topic.name, partitions, replication_factor, assignments)
    if partitions == -1:
        partitions = node.settings.num_partitions
    if replication_factor == -1:
        replication_factor = node.settings.default_replication_factor
    return TopicCreationRequested(answer, topic.name, partitions, replication_factor, None)
