"""Which requests a broker serves, and the small ones: one function per API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from harness.broker.codes import FrontError
from harness.broker.deletion import delete_records
from harness.broker.describe_log_dirs import describe_log_dirs
from harness.broker.fetch import fetch
from harness.broker.forwarding import create_topics, elect_leaders, offset_commit, offset_fetch
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.offsets import list_offsets, offset_for_leader_epoch
from harness.broker.produce import produce
from harness.broker.session import Handle, Request, answer_api_versions, only_from
from harness.model import CONTROLLER, NodeId, TopicPartition
from harness.replication.messages import ErrorCode, PartitionStateChanged
from harness.replication.topics import legal_name
from harness.wire.declaration import NO_UUID
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    Coordinator,
    CreatableTopic,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

if TYPE_CHECKING:
    from harness.broker.broker import Broker

_AUTO_CREATE_VERSION = 4
_NULL_NAME_SINCE = 12


def handlers(broker: Broker) -> Mapping[ApiKey, Handle]:
    """What ``broker`` serves, and to whom."""
    for_everyone: dict[ApiKey, Callable[[Broker, Request], None]] = {
        ApiKey.PRODUCE: produce,
        ApiKey.FETCH: fetch,
        ApiKey.LIST_OFFSETS: list_offsets,
        ApiKey.METADATA: metadata,
        ApiKey.OFFSET_COMMIT: offset_commit,
        ApiKey.OFFSET_FETCH: offset_fetch,
        ApiKey.FIND_COORDINATOR: find_coordinator,
        ApiKey.CREATE_TOPICS: create_topics,
        ApiKey.DELETE_RECORDS: delete_records,
        ApiKey.INIT_PRODUCER_ID: init_producer_id,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
        ApiKey.ELECT_LEADERS: elect_leaders,
        ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
    }
    for_the_controller = {ApiKey.LEADER_AND_ISR: leader_and_isr, ApiKey.UPDATE_METADATA: update_metadata}
    return {
        ApiKey.API_VERSIONS: answer_api_versions,
        **{key: partial(serve, broker) for key, serve in for_everyone.items()},
        **{key: only_from(CONTROLLER.__eq__, partial(serve, broker)) for key, serve in for_the_controller.items()},
    }


# ---------------------------------------------------------------------------------------------- for clients


def metadata(broker: Broker, request: Request) -> None:
    """Serve Metadata from what the controller said last; may be old on a broker that is cut off.

    A topic that the request names several times is described once, as in Kafka.
    """
    body = cast("MetadataRequest", request.body)
    everything = body.topics is None or (request.version == 0 and not body.topics)
    asked = [MetadataRequestTopic(name=name) for name in broker.metadata.names()] if everything else body.topics
    distinct = {(topic.topic_id, topic.name): topic for topic in asked or ()}
    topics = [_describe(broker, topic, request.version) for topic in distinct.values()]
    if body.allow_auto_topic_creation and broker.settings.auto_create_topics_enable:
        _create_missing(broker, request, topics)
    brokers = broker.metadata.live_brokers()
    request.answer(
        MetadataResponse(
            brokers=brokers,
            cluster_id=broker.cluster_id,
            # Clients send CreateTopics to "the controller". Ours speaks to brokers only; each of them forwards.
            controller_id=broker.node if broker.metadata.address(broker.node) else -1,
            topics=topics,
        )
    )


def _describe(broker: Broker, topic: MetadataRequestTopic, version: int) -> MetadataResponseTopic:
    name = topic.name or ""
    if topic.topic_id != NO_UUID:
        known = broker.metadata.name_of(topic.topic_id)
        if known is None:
            nameless = None if version >= _NULL_NAME_SINCE else ""
            return MetadataResponseTopic(FrontError.UNKNOWN_TOPIC_ID, nameless, topic.topic_id)
        name = known
    if not legal_name(name):
        return MetadataResponseTopic(ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    return broker.metadata.topic(name)


def _create_missing(broker: Broker, request: Request, topics: list[MetadataResponseTopic]) -> None:
    """Ask for the topics that are not there; the client asks again until they are.

    Each client has one such question under way at a time.
    """
    missing = [topic for topic in topics if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    for topic in missing:
        topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    if missing:
        body = CreateTopicsRequest([CreatableTopic(topic.name or "", -1, -1) for topic in missing])
        request.session.hold()
        broker.controller.call(ApiKey.CREATE_TOPICS, _AUTO_CREATE_VERSION, body, lambda _: request.session.release())


def init_producer_id(broker: Broker, request: Request) -> None:
    """Serve InitProducerId: ids from the controller's blocks, epoch 0; there are no transactions."""
    body = cast("InitProducerIdRequest", request.body)
    if body.transactional_id is not None:
        request.answer(InitProducerIdResponse(error_code=FrontError.COORDINATOR_NOT_AVAILABLE))
        return

    request.session.hold()

    def allocated(producer_id: int | None) -> None:
        request.session.release()
        if producer_id is None:
            request.answer(InitProducerIdResponse(error_code=FrontError.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            request.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    broker.producer_ids.next(allocated)


_GROUP = 0


def find_coordinator(broker: Broker, request: Request) -> None:
    """Serve FindCoordinator: any broker carries a group's offsets to the controller; transactions have nobody.

    Host "" and port -1 where there is no coordinator: a port of 0 would poison librdkafka's table.
    """
    body = cast("FindCoordinatorRequest", request.body)
    address = broker.metadata.address(broker.node)
    if body.key_type == _GROUP and address is not None:
        coordinator = Coordinator("", broker.node, *address)
    else:
        sentence = "This cluster coordinates no transactions."
        coordinator = Coordinator("", -1, "", -1, FrontError.COORDINATOR_NOT_AVAILABLE, sentence)
    request.answer(
        FindCoordinatorResponse(
            error_code=coordinator.error_code,
            error_message=coordinator.error_message,
            node_id=coordinator.node_id,
            host=coordinator.host,
            port=coordinator.port,
            coordinators=[
                Coordinator(
                    key,
                    coordinator.node_id,
                    coordinator.host,
                    coordinator.port,
                    coordinator.error_code,
                    coordinator.error_message,
                )
                for key in body.coordinator_keys
            ],
        )
    )


# ---------------------------------------------------------------------------------------- for the controller


def leader_and_isr(broker: Broker, request: Request) -> None:
    """Serve LeaderAndIsr: become leader or follower as told."""
    body = cast("LeaderAndIsrRequest", request.body)
    error = broker.refusal_of_controller(request.session.number, body.controller_epoch, body.broker_epoch)
    errors: list[LeaderAndIsrPartitionError] = []
    if error is ErrorCode.NONE:
        broker.learn_leaders({NodeId(one.broker_id): (one.host_name, one.port) for one in body.live_leaders})
        for topic in body.topic_states:
            for state in topic.partition_states:
                name = TopicPartition(topic.topic_name, state.partition_index)
                failed = broker.change_state(name, _event(broker, state), is_new=state.is_new)
                errors.append(LeaderAndIsrPartitionError(topic.topic_name, state.partition_index, failed))
    request.answer(LeaderAndIsrResponse(error, errors))


def _event(broker: Broker, state: LeaderAndIsrPartitionState) -> PartitionStateChanged:
    return PartitionStateChanged(
        NodeId(state.leader),
        state.leader_epoch,
        tuple(NodeId(node) for node in state.isr),
        tuple(NodeId(node) for node in state.replicas),
        state.partition_epoch,
        kafka_time_ns(broker.clock),
    )


def update_metadata(broker: Broker, request: Request) -> None:
    """Serve UpdateMetadata: what clients are told from now on."""
    body = cast("UpdateMetadataRequest", request.body)
    error = broker.refusal_of_controller(request.session.number, body.controller_epoch, body.broker_epoch)
    if error is ErrorCode.NONE:
        broker.learn_metadata(body)
    request.answer(UpdateMetadataResponse(error))
