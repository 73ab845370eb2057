"""FindCoordinator: which broker coordinates a group or a transactional id, and the topics whose leaders do."""

from __future__ import annotations

from typing import NamedTuple, cast

from harness.broker.controller_link import ControllerLink
from harness.broker.coordinator_log import partition_of
from harness.broker.metadata import ClusterMetadata
from harness.broker.session import Request
from harness.broker.settings import NodeConfig
from harness.coordination.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER
from harness.replication.topic_configs import COMPACT
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

_CREATE_TOPICS_VERSION = 4
_CONFIGS = (("cleanup.policy", COMPACT), ("segment.ms", "604800000"))
"""The topics of coordinators are compacted, and close their segments late, whatever other topics do."""
_GROUP, _TRANSACTION = 0, 1
_KEYS_SINCE = 4


class _Topic(NamedTuple):
    """A topic whose leaders are coordinators."""

    name: str
    partitions: int
    replication_factor: int
    segment_bytes: int


def find_coordinator(
    cluster: ClusterMetadata, controller: ControllerLink, config: NodeConfig, request: Request
) -> None:
    """Serve FindCoordinator.

    The first request makes the controller create the topic of these coordinators; the client asks again until it is
    there.
    """
    body = cast("FindCoordinatorRequest", request.body)
    keys = body.coordinator_keys if request.version >= _KEYS_SINCE else [body.key]
    topic = _topics(config).get(body.key_type)
    found = [_none(key, "This cluster has no such coordinators.") for key in keys]
    if topic is not None:
        found = [_coordinator(cluster, topic.name, key) for key in keys]
        if not cluster.knows(topic.name):
            _create(topic, controller, config, request)
    only = found[0] if found else _none("", "No key was given.")
    request.answer(
        FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message,
            node_id=only.node_id,
            host=only.host,
            port=only.port,
            coordinators=found,
        )
    )


def _topics(config: NodeConfig) -> dict[int, _Topic]:
    """The topics whose leaders are coordinators, by the type of key that a client asks with."""
    ours = config.settings
    groups = _Topic(
        GROUPS_TOPIC,
        ours.offsets_topic_num_partitions,
        ours.offsets_topic_replication_factor,
        ours.offsets_topic_segment_bytes,
    )
    transactions = _Topic(
        TRANSACTIONS_TOPIC,
        ours.transaction_state_log_num_partitions,
        ours.transaction_state_log_replication_factor,
        ours.transaction_state_log_segment_bytes,
    )
    return {_GROUP: groups} | ({} if config.knobs.transactions == "none" else {_TRANSACTION: transactions})


def _coordinator(cluster: ClusterMetadata, topic: str, key: str) -> Coordinator:
    partitions = cluster.partition_count(topic)
    if not partitions:
        return _none(key, f"{topic} is being created.")
    state = cluster.partition(topic, partition_of(key, partitions))
    address = None if state is None else cluster.address(state.leader)
    if state is None or address is None:
        return _none(key, f"Its partition of {topic} has no leader.")
    return Coordinator(key, state.leader, *address)


def _none(key: str, why: str) -> Coordinator:
    """There is no coordinator: host "" and port -1, for a port of 0 would poison librdkafka's table."""
    return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)


def _create(topic: _Topic, controller: ControllerLink, config: NodeConfig, request: Request) -> None:
    """Have the topic created on all brokers in turn, whether or not each is alive, as KRaft does."""
    brokers = sorted(int(name) for name in config.names.values() if name != CONTROLLER)
    factor = min(topic.replication_factor, len(brokers))
    assignments = [
        CreatableReplicaAssignment(number, [brokers[(number + one) % len(brokers)] for one in range(factor)])
        for number in range(topic.partitions)
    ]
    stated = (*_CONFIGS, ("segment.bytes", str(topic.segment_bytes)))
    configs = [CreatableTopicConfig(*one) for one in stated]
    body = CreateTopicsRequest([CreatableTopic(topic.name, -1, -1, assignments, configs)])
    request.session.hold()
    controller.call(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, body, lambda _: request.session.release())
