"""The consumer protocol (KIP-848) on the wire, on a simulated cluster: which generations offer it, and where."""

from __future__ import annotations

import pytest

from harness.error_codes import ErrorCode
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest
from harness.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from harness.wire.messages.coordination import FindCoordinatorRequest
from tests.harness.broker.virtual_cluster import VirtualCluster

KEYS = {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE}


@pytest.mark.parametrize(("generation", "offered"), [("0.10", set()), ("3.7", set()), ("4.1", KEYS)])
def test_a_broker_advertises_the_protocol_from_its_generation_on(generation: str, offered: set[ApiKey]) -> None:
    (answer,) = VirtualCluster(generation).call(0, ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"))
    assert {one.api_key for one in answer.api_keys} & KEYS == offered
    assert ApiKey.JOIN_GROUP in {one.api_key for one in answer.api_keys}


def test_a_broker_that_does_not_offer_the_protocol_hangs_up_on_it() -> None:
    heartbeat = ConsumerGroupHeartbeatRequest("g", "a", 1)
    assert VirtualCluster("3.7").call(0, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat) == [None]


def test_a_broker_that_does_not_coordinate_a_group_says_so() -> None:
    cluster = VirtualCluster("4.1")
    cluster.call(0, ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("g", 0))
    cluster.world.sleep(1)
    (found,) = cluster.call(0, ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("g", 0))
    elsewhere = (found.node_id + 1) % 3
    heartbeat = ConsumerGroupHeartbeatRequest("g", "a", 1)
    (answer,) = cluster.call(elsewhere, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    (described,) = cluster.call(elsewhere, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(["g"]))
    assert described.groups[0].error_code == ErrorCode.NOT_COORDINATOR
