"""What the controller does to topics, as brokers forward it: from Kafka's messages to the core's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Literal, cast

from harness.broker.controller_driver import ControllerDriver
from harness.broker.controller_turns import in_turns
from harness.broker.session import Request
from harness.broker.settings import NodeConfig, Settings
from harness.broker.topic_ids import TopicOf, topic_id
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.error_codes import ErrorCode
from harness.model import NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerTopicChange,
    AnswerTopicCreation,
    ConfigsRequested,
    PartitionsRequested,
    TopicCreationRequested,
    TopicDeletionRequested,
    TopicState,
)
from harness.replication.topic_configs import Alteration
from harness.replication.topics import MAX_CLUSTER_PARTITIONS, MAX_PARTITIONS
from harness.wire.declaration import NO_UUID
from harness.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    ConfigSource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
    Operation,
    ResourceType,
)
from harness.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_Result = (
    DeletableTopicResult
    | CreatePartitionsTopicResult
    | AlterConfigsResourceResponse
    | IncrementalAlterConfigsResourceResponse
)
_OPERATIONS: Mapping[int, Literal["set", "delete", "append", "subtract"]] = MappingProxyType(
    {Operation.SET: "set", Operation.DELETE: "delete", Operation.APPEND: "append", Operation.SUBTRACT: "subtract"}
)


def create_topics(driver: ControllerDriver, core: Controller, config: NodeConfig, request: Request) -> None:
    """Serve CreateTopics."""
    body = cast("CreateTopicsRequest", request.body)
    response = CreateTopicsResponse()
    creations = [
        partial(_create, driver, core, config, topic, response, validate_only=body.validate_only)
        for topic in body.topics
    ]
    in_turns(driver, creations, lambda: driver.answer_unless_halted(request, response))


def _create(
    driver: ControllerDriver,
    core: Controller,
    config: NodeConfig,
    topic: CreatableTopic,
    response: CreateTopicsResponse,
    *,
    validate_only: bool,
) -> None:
    refusal = _unsupported(topic, validate_only=validate_only) or _excessive(
        len(core.partitions), config.settings, topic
    )
    if refusal is not None:
        response.topics.append(refusal)
        return

    def answer(outcome: AnswerTopicCreation) -> None:
        created = next((one for one in core.topics if one.topic == topic.name), TopicState(topic.name))
        response.topics.append(
            CreatableTopicResult(
                topic.name,
                NO_UUID if outcome.error else topic_id(config.cluster_id, topic.name, created.incarnation),
                outcome.error,
                outcome.message or None,
                num_partitions=outcome.num_partitions,
                replication_factor=outcome.replication_factor,
                configs=[] if outcome.error else _described(created),
            )
        )

    driver.handle(_creation(config.settings, topic, answer))


def _excessive(there: int, settings: Settings, topic: CreatableTopic) -> CreatableTopicResult | None:
    """The refusal of a topic with which the cluster would have more partitions than it can serve."""
    asked = len(topic.assignments) or max(topic.num_partitions, 0) or settings.num_partitions
    if there + asked <= MAX_CLUSTER_PARTITIONS or asked > MAX_PARTITIONS:  # the core refuses so large a topic
        return None
    sentence = f"The cluster has {there} partitions; with {asked} more it would exceed {MAX_CLUSTER_PARTITIONS}."
    return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.POLICY_VIOLATION, sentence)


def _unsupported(topic: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult | None:
    if validate_only:
        return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.INVALID_REQUEST, "validate_only is not supported.")
    if sorted(one.partition_index for one in topic.assignments) != list(range(len(topic.assignments))):
        sentence = "Replica assignments must name the partitions from 0 on, each once."
        return CreatableTopicResult(topic.name, NO_UUID, ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    return None


def _creation(
    settings: Settings, topic: CreatableTopic, answer: Callable[[AnswerTopicCreation], None]
) -> TopicCreationRequested:
    partitions, replication_factor = topic.num_partitions, topic.replication_factor
    configs = tuple(Alteration(config.name, "set", config.value) for config in topic.configs)
    if topic.assignments:
        ordered = sorted(topic.assignments, key=lambda one: one.partition_index)
        assignments = tuple(tuple(NodeId(broker) for broker in one.broker_ids) for one in ordered)
        return TopicCreationRequested(answer, topic.name, partitions, replication_factor, assignments, configs)
    if partitions == -1:
        partitions = settings.num_partitions
    if replication_factor == -1:
        replication_factor = settings.default_replication_factor
    return TopicCreationRequested(answer, topic.name, partitions, replication_factor, None, configs)


def _described(topic: TopicState) -> list[CreatableTopicConfigs]:
    """The configurations that were set for a new topic; Kafka tells those of the cluster, too."""
    return [CreatableTopicConfigs(name, value, config_source=ConfigSource.TOPIC) for name, value in topic.configs]


def delete_topics(driver: ControllerDriver, topic_of: TopicOf, request: Request) -> None:
    """Serve DeleteTopics: each topic on its own, in the order of the request."""
    body = cast("DeleteTopicsRequest", request.body)
    response = DeleteTopicsResponse()
    asked = [DeleteTopicState(name) for name in body.topic_names] + body.topics
    deletions = [partial(_delete, driver, topic_of, topic, response) for topic in asked]
    in_turns(driver, deletions, lambda: driver.answer_unless_halted(request, response))


def _delete(
    driver: ControllerDriver, topic_of: TopicOf, topic: DeleteTopicState, response: DeleteTopicsResponse
) -> None:
    name = topic_of(topic.topic_id) if topic.name is None else topic.name
    result = DeletableTopicResult(name, topic.topic_id)
    response.responses.append(result)
    if name is None:
        result.error_code, result.error_message = ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id."
    elif name in INTERNAL_TOPICS:
        sentence = f"{name} belongs to the coordinators, which would lose what they know."
        result.error_code, result.error_message = ErrorCode.INVALID_TOPIC_EXCEPTION, sentence
    else:
        driver.handle(TopicDeletionRequested(_take_into(result), name))


def create_partitions(driver: ControllerDriver, core: Controller, request: Request) -> None:
    """Serve CreatePartitions: each topic on its own, in the order of the request."""
    body = cast("CreatePartitionsRequest", request.body)
    response = CreatePartitionsResponse()
    additions = [
        partial(_enlarge, driver, core, topic, response, validate_only=body.validate_only) for topic in body.topics
    ]
    in_turns(driver, additions, lambda: driver.answer_unless_halted(request, response))


def _enlarge(
    driver: ControllerDriver,
    core: Controller,
    topic: CreatePartitionsTopic,
    response: CreatePartitionsResponse,
    *,
    validate_only: bool,
) -> None:
    result = CreatePartitionsTopicResult(topic.name)
    response.results.append(result)
    there = [one.topic_partition.topic for one in core.partitions]
    if len(there) - there.count(topic.name) + topic.count > MAX_CLUSTER_PARTITIONS:
        sentence = f"With {topic.count} partitions of {topic.name!r} the cluster would exceed {MAX_CLUSTER_PARTITIONS}."
        result.error_code, result.error_message = ErrorCode.POLICY_VIOLATION, sentence
        return
    chosen = topic.assignments
    assignments = None if chosen is None else tuple(tuple(map(NodeId, one.broker_ids)) for one in chosen)
    driver.handle(PartitionsRequested(_take_into(result), topic.name, topic.count, assignments, validate_only))


def alter_configs(driver: ControllerDriver, request: Request) -> None:
    """Serve AlterConfigs: what it does not name is as in the cluster afterwards."""
    body = cast("AlterConfigsRequest", request.body)
    response = AlterConfigsResponse()
    for resource in body.resources:
        result = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.responses.append(result)
        alterations = tuple(Alteration(config.name, "set", config.value) for config in resource.configs)
        _alter(driver, result, alterations, replaces=True, validate_only=body.validate_only)
    driver.answer_unless_halted(request, response)


def incremental_alter_configs(driver: ControllerDriver, request: Request) -> None:
    """Serve IncrementalAlterConfigs (KIP-339)."""
    body = cast("IncrementalAlterConfigsRequest", request.body)
    response = IncrementalAlterConfigsResponse()
    for resource in body.resources:
        result = IncrementalAlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.responses.append(result)
        if any(config.config_operation not in _OPERATIONS for config in resource.configs):
            result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, "Unknown operation."
            continue
        alterations = tuple(
            Alteration(config.name, _OPERATIONS[config.config_operation], config.value) for config in resource.configs
        )
        _alter(driver, result, alterations, replaces=False, validate_only=body.validate_only)
    driver.answer_unless_halted(request, response)


def _alter(
    driver: ControllerDriver,
    result: AlterConfigsResourceResponse | IncrementalAlterConfigsResourceResponse,
    alterations: tuple[Alteration, ...],
    *,
    replaces: bool,
    validate_only: bool,
) -> None:
    if result.resource_type != ResourceType.TOPIC:
        sentence = "Only the configurations of topics can be changed while the cluster runs."
        result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, sentence
        return
    driver.handle(ConfigsRequested(_take_into(result), result.resource_name, alterations, replaces, validate_only))


def _take_into(result: _Result) -> Callable[[AnswerTopicChange], None]:
    """Put the core's answer into one result of a response."""

    def answer(outcome: AnswerTopicChange) -> None:
        result.error_code, result.error_message = outcome.error, outcome.message or None

    return answer
