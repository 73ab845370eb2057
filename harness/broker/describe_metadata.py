"""Metadata, as a broker serves it to clients."""

from __future__ import annotations

from typing import cast

from harness.broker.controller_link import ControllerLink
from harness.broker.metadata import ClusterMetadata
from harness.broker.session import Request
from harness.broker.settings import NodeConfig
from harness.error_codes import ErrorCode
from harness.replication.topics import legal_name
from harness.wire.declaration import NO_UUID
from harness.wire.keys import ApiKey
from harness.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from harness.wire.messages.topics import CreatableTopic, CreateTopicsRequest

_AUTO_CREATE_VERSION = 4
_NULL_NAME_SINCE = 12


def metadata(cluster: ClusterMetadata, controller: ControllerLink, config: NodeConfig, request: Request) -> None:
    """Serve Metadata from the controller's latest UpdateMetadata, which may be old on a broker that is cut off.

    The broker describes a topic that the request names several times once, as Kafka does.
    """
    body = cast("MetadataRequest", request.body)
    everything = body.topics is None or (request.version == 0 and not body.topics)
    asked = [MetadataRequestTopic(name=name) for name in cluster.names()] if everything else body.topics
    distinct = {(topic.topic_id, topic.name): topic for topic in asked or ()}
    topics = [_describe(cluster, topic, request.version) for topic in distinct.values()]
    if body.allow_auto_topic_creation and config.settings.auto_create_topics_enable:
        _create_missing(controller, request, topics)
    brokers = cluster.live_brokers()
    request.answer(
        MetadataResponse(
            brokers=brokers,
            cluster_id=config.cluster_id,
            # Clients send CreateTopics to "the controller". Ours speaks to brokers only; each of them forwards.
            controller_id=config.node_id if cluster.address(config.node_id) else -1,
            topics=topics,
        )
    )


def _describe(cluster: ClusterMetadata, topic: MetadataRequestTopic, version: int) -> MetadataResponseTopic:
    name = topic.name or ""
    if topic.topic_id != NO_UUID:
        known = cluster.name_of(topic.topic_id)
        if known is None:
            nameless = None if version >= _NULL_NAME_SINCE else ""
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, nameless, topic.topic_id)
        name = known
    if not legal_name(name):
        return MetadataResponseTopic(ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    return cluster.topic(name)


def _create_missing(controller: ControllerLink, request: Request, topics: list[MetadataResponseTopic]) -> None:
    """Ask the controller for the topics that are missing; the client asks again until they exist.

    Each client has one such request in flight at a time.
    """
    missing = [topic for topic in topics if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    for topic in missing:
        topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    if missing:
        body = CreateTopicsRequest([CreatableTopic(topic.name or "", -1, -1) for topic in missing])
        request.session.hold()
        controller.call(ApiKey.CREATE_TOPICS, _AUTO_CREATE_VERSION, body, lambda _: request.session.release())
