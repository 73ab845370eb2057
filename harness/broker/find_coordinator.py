"""FindCoordinator: which broker coordinates a group, and the topic whose leaders do."""

from __future__ import annotations

from typing import cast

from harness.broker.codes import FrontError
from harness.broker.controller_link import ControllerLink
from harness.broker.group_coordinator import partition_of
from harness.broker.metadata import ClusterMetadata
from harness.broker.session import Request
from harness.broker.settings import NodeConfig
from harness.coordination.records import GROUPS_TOPIC
from harness.model import CONTROLLER
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

_CREATE_TOPICS_VERSION = 4
_GROUP = 0
_KEYS_SINCE = 4


def find_coordinator(
    cluster: ClusterMetadata, controller: ControllerLink, config: NodeConfig, request: Request
) -> None:
    """Serve FindCoordinator; there are no transactions.

    The first request makes the controller create ``__consumer_offsets``; the client asks again until it is there.
    """
    body = cast("FindCoordinatorRequest", request.body)
    keys = body.coordinator_keys if request.version >= _KEYS_SINCE else [body.key]
    found = [_coordinator(cluster, body.key_type, key) for key in keys]
    if body.key_type == _GROUP and not cluster.knows(GROUPS_TOPIC):
        _create_groups_topic(controller, config, request)
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


def _coordinator(cluster: ClusterMetadata, key_type: int, key: str) -> Coordinator:
    if key_type != _GROUP:
        return _none(key, "This cluster coordinates no transactions.")
    partitions = cluster.partition_count(GROUPS_TOPIC)
    if not partitions:
        return _none(key, f"{GROUPS_TOPIC} is being created.")
    state = cluster.partition(GROUPS_TOPIC, partition_of(key, partitions))
    address = None if state is None else cluster.address(state.leader)
    if state is None or address is None:
        return _none(key, f"Its partition of {GROUPS_TOPIC} has no leader.")
    return Coordinator(key, state.leader, *address)


def _none(key: str, why: str) -> Coordinator:
    """There is no coordinator: host "" and port -1, for a port of 0 would poison librdkafka's table."""
    return Coordinator(key, -1, "", -1, FrontError.COORDINATOR_NOT_AVAILABLE, why)


def _create_groups_topic(controller: ControllerLink, config: NodeConfig, request: Request) -> None:
    """Have ``__consumer_offsets`` created on all brokers in turn, whether or not each is alive, as KRaft does."""
    brokers = sorted(int(name) for name in config.names.values() if name != CONTROLLER)
    settings = config.settings
    factor = min(settings.offsets_topic_replication_factor, len(brokers))
    assignments = [
        CreatableReplicaAssignment(number, [brokers[(number + one) % len(brokers)] for one in range(factor)])
        for number in range(settings.offsets_topic_num_partitions)
    ]
    body = CreateTopicsRequest([CreatableTopic(GROUPS_TOPIC, -1, -1, assignments)])
    request.session.hold()
    controller.call(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, body, lambda _: request.session.release())
