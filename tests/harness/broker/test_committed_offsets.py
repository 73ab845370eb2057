"""The offsets that groups commit, in a cluster: who coordinates, what is refused, and what survives the coordinator."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from harness.broker.coordinator_log import partition_of
from harness.coordination.internal_topics import GROUPS_TOPIC
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from harness.wire.messages.coordination import FindCoordinatorRequest
from harness.wire.messages.groups import HeartbeatRequest
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.operators import ElectLeadersRequest, TopicPartitions
from tests.harness.broker.raw_client import batch, produce_request
from tests.harness.broker.virtual_cluster import VirtualCluster


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster()
    cluster.create_topic()
    return cluster


def coordinator(cluster: VirtualCluster, group: str = "g", asked: int = 1) -> int:
    """The broker that coordinates a group, by the word of another one; -1 if there is none."""
    (answer,) = cluster.call(asked, ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[group]))
    return int(answer.coordinators[0].node_id)


def found(cluster: VirtualCluster) -> int:
    """The coordinator of the group, whose topic is created when it is first asked for."""
    coordinator(cluster)
    cluster.world.sleep(2)
    return coordinator(cluster)


def commit(cluster: VirtualCluster, offset: int, version: int = 8, at: int | None = None, **fields: Any) -> list[int]:
    where = found(cluster) if at is None else at
    topic, group = fields.pop("topic", "t"), fields.pop("group", "g")
    metadata = fields.pop("metadata", "mine")
    partitions = [OffsetCommitRequestPartition(0, offset, 3, metadata)]
    body = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions)], **fields)
    answers = cluster.call(where, ApiKey.OFFSET_COMMIT, version, body)
    cluster.world.sleep(1)
    return [one.error_code for answer in answers for one in answer.topics[0].partitions]


def committed(
    cluster: VirtualCluster, group: str = "g", version: int = 7, at: int | None = None
) -> list[tuple[int, int, str | None, int]]:
    topics = [OffsetFetchRequestTopic("t", [0])]
    body = OffsetFetchRequest(group, topics, [OffsetFetchRequestGroup(group, topics=topics)])
    (answer,) = cluster.call(found(cluster) if at is None else at, ApiKey.OFFSET_FETCH, version, body)
    topic = answer.groups[0].topics if version >= 8 else answer.topics
    return [
        (one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code) for one in topic[0].partitions
    ]


@pytest.mark.parametrize("version", range(1, 9))
def test_what_is_committed_is_told(cluster: VirtualCluster, version: int) -> None:
    assert commit(cluster, 5, max(version, 2)) == [ErrorCode.NONE]
    knows_epochs = version >= 6
    assert committed(cluster) == [(5, 3 if knows_epochs else -1, "mine", ErrorCode.NONE)]
    assert committed(cluster, version=version)[0][0] == 5


def test_nothing_committed_is_minus_one(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    assert committed(cluster, "another") == [(-1, -1, "", ErrorCode.NONE)]


def test_a_later_commit_replaces_an_earlier_one_even_if_it_goes_back(cluster: VirtualCluster) -> None:
    for offset in (5, 2):
        commit(cluster, offset)
        assert committed(cluster)[0][0] == offset


def test_a_group_has_a_word_about_what_it_committed_only(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    (answer,) = cluster.call(found(cluster), ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest("g", None))
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("t", 1)]
    (answer,) = cluster.call(found(cluster), ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest("another", None))
    assert answer.topics == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 4_097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_what_a_simple_consumer_would_not_say_is_refused(
    cluster: VirtualCluster, fields: dict[str, Any], error: int
) -> None:
    assert commit(cluster, 5, **fields) == [error]
    assert committed(cluster) == [(-1, -1, "", ErrorCode.NONE)]


def test_every_broker_names_the_leader_of_the_groups_partition(cluster: VirtualCluster) -> None:
    assert coordinator(cluster) == -1  # it is being created
    cluster.world.sleep(2)
    assert {coordinator(cluster, asked=broker) for broker in range(3)} == {0}
    (answer,) = cluster.call(1, ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic(name=GROUPS_TOPIC)]))
    assert [(topic.is_internal, topic.partitions[0].replica_nodes) for topic in answer.topics] == [(True, [0, 1, 2])]


def test_another_broker_refuses_what_it_does_not_coordinate(cluster: VirtualCluster) -> None:
    assert found(cluster) == 0
    assert commit(cluster, 5, at=1) == [ErrorCode.NOT_COORDINATOR]
    (answer,) = cluster.call(1, ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "m"))
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_groups_are_spread_over_partitions_as_kafka_spreads_them() -> None:
    cluster = VirtualCluster(offsets_topic_num_partitions=5)
    coordinator(cluster)
    cluster.world.sleep(2)
    # By Java: Math.abs("g".hashCode()) % 5 and so on. One has a character beyond 16 bits, the hash of one is negative,
    # and that of the last one is the least integer, of which Kafka takes 0 for the absolute value.
    names = ["g", "readers", "gruppe-\u00fc", "\U0001f600", "orders", "polygenelubricants"]
    assert [partition_of(name, 5) for name in names] == [3, 3, 2, 4, 1, 0]
    assert {coordinator(cluster, f"g{number}") for number in range(20)} == {0, 1, 2}


def test_a_coordinator_that_an_operator_moves_takes_over_and_the_former_one_resigns(cluster: VirtualCluster) -> None:
    assert commit(cluster, 5) == [ErrorCode.NONE]
    cluster.kill(0)
    cluster.world.sleep(5)
    cluster.node(0).start()
    cluster.world.sleep(5)
    assert (coordinator(cluster), commit(cluster, 6)) == (1, [ErrorCode.NONE])
    preferred = ElectLeadersRequest(0, [TopicPartitions(GROUPS_TOPIC, [0])])
    (answer,) = cluster.call(1, ApiKey.ELECT_LEADERS, 2, preferred)
    assert answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.NONE
    cluster.world.sleep(2)
    assert coordinator(cluster) == 0
    assert committed(cluster, at=0)[0][0] == 6
    assert commit(cluster, 7, at=0) == [ErrorCode.NONE]
    assert committed(cluster, at=1)[0][3] == ErrorCode.NOT_COORDINATOR


def test_a_coordinator_whose_log_directory_has_failed_resigns() -> None:
    cluster = VirtualCluster(log_dirs_count=2)
    cluster.create_topic()
    assert commit(cluster, 5) == [ErrorCode.NONE]
    (replica,) = [one for one in cluster.brokers[0].partitions.values() if one.name.topic == GROUPS_TOPIC]
    replica.refused("write to", errno.EIO)
    cluster.world.sleep(5)
    assert cluster.exit_codes == {}
    assert coordinator(cluster) in (1, 2)
    assert commit(cluster, 9) == [ErrorCode.NONE]
    assert committed(cluster, at=0)[0][3] == ErrorCode.NOT_COORDINATOR


def test_a_long_log_is_read_in_turns_and_whole(cluster: VirtualCluster) -> None:
    where = found(cluster)
    for offset in range(200):
        topics = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, offset, 3, "x" * 4_000)])]
        cluster.call(where, ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest("g", topics=topics))
        cluster.world.sleep(0.05)
    cluster.kill(0)
    cluster.world.sleep(5)
    assert committed(cluster)[0][0] == 199


def test_a_commit_survives_its_coordinator(cluster: VirtualCluster) -> None:
    assert commit(cluster, 5) == [ErrorCode.NONE]
    cluster.kill(0)
    cluster.world.sleep(5)
    assert coordinator(cluster) in (1, 2)
    assert committed(cluster)[0][0] == 5
    assert commit(cluster, 6) == [ErrorCode.NONE]
    cluster.node(0).start()
    cluster.world.sleep(5)
    assert committed(cluster)[0][0] == 6


def test_a_commit_survives_the_power_of_all(cluster: VirtualCluster) -> None:
    assert commit(cluster, 5) == [ErrorCode.NONE]
    cluster.world.sleep(2)
    for broker in range(3):
        cluster.kill(broker)
    for broker in range(3):
        cluster.node(broker).start()
    cluster.world.sleep(5)
    assert committed(cluster)[0][0] == 5


def test_a_commit_that_too_few_replicas_can_take_is_refused(cluster: VirtualCluster) -> None:
    assert commit(cluster, 5) == [ErrorCode.NONE]
    cluster.kill(1)
    cluster.kill(2)
    cluster.world.sleep(5)
    assert commit(cluster, 6, at=0) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert committed(cluster, at=0)[0][0] == 5


def test_a_client_cannot_write_what_the_coordinator_reads(cluster: VirtualCluster) -> None:
    found(cluster)
    (answer,) = cluster.call(0, ApiKey.PRODUCE, 9, produce_request(GROUPS_TOPIC, batch(b"forged")))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_groups_have_committed_does_not_expire() -> None:
    cluster = VirtualCluster(log_retention_ms=1_000, log_retention_check_interval_ms=500, log_roll_ms=100)
    cluster.create_topic()
    for offset in (5, 6, 7):
        assert commit(cluster, offset) == [ErrorCode.NONE]
    cluster.world.sleep(10)
    cluster.kill(0)
    cluster.world.sleep(5)
    assert committed(cluster)[0][0] == 7


def test_without_a_controller_there_is_no_topic_and_no_coordinator(cluster: VirtualCluster) -> None:
    cluster.kill(CONTROLLER_ID)
    assert found(cluster) == -1
