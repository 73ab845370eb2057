"""What operators do, and what impostors can do: elections by hand, and fetches in a replica's name."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.caller import Caller
from harness.broker.topic_ids import topic_id
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER, CONTROLLER_ID, NodeId
from harness.replication.knobs import GENERATIONS
from harness.simulation.stack.cluster import listener
from harness.wire.keys import ApiKey
from harness.wire.messages.control import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopicData,
    BrokerState,
)
from harness.wire.messages.offsets import LATEST_TIMESTAMP, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from harness.wire.messages.operators import PREFERRED_ELECTION, UNCLEAN_ELECTION, ElectLeadersRequest, TopicPartitions
from harness.wire.messages.quotas import ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import T, VirtualCluster


def cluster_with_topic(knobs: str = "3.7", **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(knobs, **settings)
    cluster.create_topic()
    return cluster


def elect(cluster: VirtualCluster, **request: Any) -> tuple[str, int | None]:
    answer = cluster.node(CONTROLLER_ID).operate("elect", {"topic": "t", "partition": 0, **request})
    partition = answer["partition"]
    return answer["error_name"], None if partition is None else partition["leader"]


def test_an_operator_moves_the_leadership_to_a_replica_in_sync() -> None:
    cluster = cluster_with_topic()
    assert elect(cluster, leader=2) == ("NONE", 2)
    cluster.world.sleep(1)
    assert cluster.brokers[2].partitions[T].replica.role == "leader"
    assert elect(cluster, leader=None) == ("NONE", 0)


def test_an_operator_is_refused_a_leader_that_is_out_of_sync_unless_he_means_it() -> None:
    cluster = cluster_with_topic()
    cluster.kill(2)
    cluster.world.sleep(4)
    cluster.deafen(0)
    cluster.start(2)
    cluster.world.sleep(0.2)
    error, leader = elect(cluster, leader=2)
    assert error != "NONE"
    assert leader == 0
    assert elect(cluster, leader=2, unclean=True) == ("NONE", 2)


def test_a_partition_that_does_not_exist_has_no_elections() -> None:
    assert elect(cluster_with_topic(), topic="nowhere") == ("UNKNOWN_TOPIC_OR_PARTITION", None)


def elections(cluster: VirtualCluster, kind: int, topics: list[TopicPartitions] | None) -> dict[str, list[int]]:
    (answer,) = cluster.call(1, ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(kind, topics))
    return {one.topic: [part.error_code for part in one.partition_result] for one in answer.replica_election_results}


def test_clients_ask_for_elections_of_one_partition_or_of_all() -> None:
    cluster = cluster_with_topic()
    elect(cluster, leader=1)
    asked = [TopicPartitions("t", [0]), TopicPartitions("nowhere", [1])]
    assert elections(cluster, PREFERRED_ELECTION, asked) == {"t": [0], "nowhere": [3]}
    assert cluster.controller.core.partitions[0].leader == 0
    assert elections(cluster, PREFERRED_ELECTION, None) == {"t": [ErrorCode.ELECTION_NOT_NEEDED]}
    assert elections(cluster, UNCLEAN_ELECTION, None) == {"t": [ErrorCode.ELECTION_NOT_NEEDED]}


def test_an_election_that_nobody_answers_is_left_open() -> None:
    cluster = cluster_with_topic()
    cluster.kill(CONTROLLER_ID)
    answers = cluster.call(0, ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(0, None))
    cluster.world.sleep(3)
    assert answers[0].error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("knobs", GENERATIONS)
def test_a_client_that_fetches_in_the_followers_names_has_records_acknowledged_that_they_do_not_have(
    knobs: str,
) -> None:
    cluster = cluster_with_topic(knobs)
    cluster.deafen(1, 2)
    cluster.world.sleep(1)
    answers = cluster.call(0, ApiKey.PRODUCE, 8, produce_request("t", batch(b"a"), timeout_ms=60_000))
    assert answers == []
    for replica in (1, 2):
        cluster.call(0, ApiKey.FETCH, 11, fetch_request("t", 1, replica_id=replica))
    assert [one.error_code for one in answers[0].responses[0].partition_responses] == [0]
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 0


def test_a_client_that_asks_in_a_follower_s_name_is_told_the_log_s_end() -> None:
    cluster = cluster_with_topic()
    cluster.deafen(1, 2)
    cluster.produce(0, b"a", acks=1)

    def latest(replica: int) -> int:
        topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, LATEST_TIMESTAMP)])]
        (answer,) = cluster.call(0, ApiKey.LIST_OFFSETS, 4, ListOffsetsRequest(replica, topics=topics))
        return int(answer.topics[0].partitions[0].offset)

    assert (latest(-1), latest(1)) == (0, 1)


def test_a_proposal_for_an_earlier_life_of_a_replica_is_refused() -> None:
    cluster = cluster_with_topic()
    cluster.kill(2)
    cluster.world.sleep(4)
    leader = cluster.brokers[0]
    earlier = cluster.brokers[2].controller.broker_epoch
    cluster.deafen(0)
    cluster.start(2)
    cluster.world.sleep(0.2)
    state = cluster.controller.core.partitions[0]
    assert state.isr == (0, 1)

    def propose(epoch: int) -> int:
        answers: list[Any] = []
        members = [BrokerState(0, -1), BrokerState(1, -1), BrokerState(2, epoch)]
        data = AlterPartitionPartitionData(0, state.leader_epoch, [], members, 0, state.partition_epoch)
        topic = AlterPartitionTopicData(topic_id(leader.metadata.cluster_id, "t"), [data])
        body = AlterPartitionRequest(0, leader.controller.broker_epoch, [topic])
        caller = Caller(cluster.simulated.network("0"), listener(NodeId(CONTROLLER_ID)), CONTROLLER, "test")
        caller.call(ApiKey.ALTER_PARTITION, 3, body, 30, answers.append)
        cluster.world.sleep(0)
        return int(answers[0].topics[0].partitions[0].error_code)

    assert propose(earlier) == ErrorCode.INELIGIBLE_REPLICA
    assert propose(cluster.brokers[2].controller.broker_epoch) == ErrorCode.NONE


def test_topics_of_a_replica_s_fetch_go_by_their_ids() -> None:
    cluster = cluster_with_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    request = fetch_request("", 0)
    request.topics[0].topic_id = topic_id(cluster.brokers[0].metadata.cluster_id, "t")
    (answer,) = cluster.call(0, ApiKey.FETCH, 15, request)
    assert answer.responses[0].topic_id == request.topics[0].topic_id
    assert len(answer.responses[0].partitions[0].records) > 0
    request.topics[0].topic_id = bytes(16)
    (answer,) = cluster.call(0, ApiKey.FETCH, 15, request)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 1])
def test_no_client_has_a_quota(version: int) -> None:
    request = DescribeClientQuotasRequest([ComponentData("user", 2)])
    (answer,) = cluster_with_topic().call(0, ApiKey.DESCRIBE_CLIENT_QUOTAS, version, request)
    assert answer == DescribeClientQuotasResponse(entries=[])
