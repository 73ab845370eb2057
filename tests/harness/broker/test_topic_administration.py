"""Topics that are configured, enlarged and deleted while the cluster runs, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.topic_ids import topic_id
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID, TopicPartition
from harness.wire.declaration import NO_UUID
from harness.wire.keys import ApiKey
from harness.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    ConfigSource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    Operation,
    ResourceType,
)
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.described_transactions import DescribeTransactionsRequest
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from harness.wire.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, EndTxnRequest
from tests.harness.broker.virtual_cluster import VirtualCluster

T = TopicPartition("t", 0)


def with_topic(knobs: str = "4.1", **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(knobs, **settings)
    cluster.create_topic()
    return cluster


def create(cluster: VirtualCluster, topic: str = "t", **configs: str) -> tuple[int, str | None]:
    stated = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
    request = CreateTopicsRequest([CreatableTopic(topic, -1, -1, [CreatableReplicaAssignment(0, [0, 1, 2])], stated)])
    (answer,) = cluster.call(1, ApiKey.CREATE_TOPICS, 7, request)
    cluster.world.sleep(1)
    return answer.topics[0].error_code, answer.topics[0].error_message


def alter(cluster: VirtualCluster, *changes: tuple[str, Operation, str | None], **more: bool) -> tuple[int, str | None]:
    configs = [IncrementalAlterableConfig(*change) for change in changes]
    resource = IncrementalAlterConfigsResource(ResourceType.TOPIC, "t", configs)
    request = IncrementalAlterConfigsRequest([resource], **more)
    (answer,) = cluster.call(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    cluster.world.sleep(1)
    return answer.responses[0].error_code, answer.responses[0].error_message


def set_to(cluster: VirtualCluster, **configs: str) -> None:
    changes = [(name.replace("_", "."), Operation.SET, value) for name, value in configs.items()]
    assert alter(cluster, *changes) == (0, None)


def described(cluster: VirtualCluster, node: int = 0) -> dict[str, tuple[str, int]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, "t")])
    (answer,) = cluster.call(node, ApiKey.DESCRIBE_CONFIGS, 4, request)
    (result,) = answer.results
    return {one.name: (one.value, one.config_source) for one in result.configs}


def delete(cluster: VirtualCluster, topic: str = "t") -> int:
    (answer,) = cluster.call(1, ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic]))
    cluster.world.sleep(1)
    return int(answer.responses[0].error_code)


def topics(cluster: VirtualCluster, node: int = 0) -> list[str]:
    return cluster.brokers[node].metadata.names()


def files(cluster: VirtualCluster, node: int) -> list[str]:
    return [path for path in cluster.disk(node).paths() if path.startswith("t-")]


# ------------------------------------------------------------------------------------------------- configurations


def test_a_changed_min_insync_replicas_does_not_reach_the_leader() -> None:
    cluster = with_topic()
    cluster.kill(2)
    cluster.world.sleep(5)
    assert cluster.produce(0, b"enough", acks=-1)
    set_to(cluster, min_insync_replicas="3")
    assert cluster.produce(0, b"too few", acks=-1) == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
    assert alter(cluster, ("min.insync.replicas", Operation.DELETE, None)) == (0, None)
    (answer,) = cluster.produce(0, b"enough again", acks=-1)
    assert answer[0] == 0


def test_a_lower_min_insync_replicas_leaves_a_frozen_watermark_where_it_is() -> None:
    cluster = with_topic()
    cluster.kill(1)
    cluster.kill(2)
    cluster.world.sleep(5)
    assert cluster.produce(0, b"not committed", acks=1) == [(0, 0)]
    cluster.world.sleep(1)
    assert cluster.brokers[0].partitions[T].replica.high_watermark == 0
    request = AlterConfigsRequest([AlterConfigsResource(2, "t", [AlterableConfig("min.insync.replicas", "1")])])
    (answer,) = cluster.call(0, ApiKey.ALTER_CONFIGS, 2, request)
    cluster.world.sleep(1)
    assert answer.responses[0].error_code == 0
    assert cluster.brokers[0].partitions[T].replica.high_watermark == 1


def test_unclean_elections_that_are_allowed_elect_no_leader_where_there_is_none() -> None:
    cluster = with_topic("3.7")
    for node in (1, 2):
        cluster.kill(node)
        cluster.world.sleep(5)
    cluster.start(1)
    cluster.kill(0)
    cluster.world.sleep(5)
    assert cluster.controller.core.partitions[0].leader == -1
    request = AlterConfigsRequest(
        [AlterConfigsResource(2, "t", [AlterableConfig("unclean.leader.election.enable", "true")])]
    )
    (answer,) = cluster.call(1, ApiKey.ALTER_CONFIGS, 2, request)
    cluster.world.sleep(1)
    assert answer.responses[0].error_code == 0
    assert cluster.controller.core.partitions[0].leader == 1


def test_configurations_are_forgotten_by_a_new_controller_or_a_new_broker() -> None:
    cluster = VirtualCluster("4.1")
    assert create(cluster, min_insync_replicas="1", segment_bytes="100") == (0, None)
    for node in (CONTROLLER_ID, 0):
        cluster.kill(node)
        cluster.world.sleep(3)
        cluster.node(node).start()
    cluster.world.sleep(5)
    for node in range(3):
        assert described(cluster, node)["segment.bytes"] == ("100", ConfigSource.TOPIC)
        assert cluster.brokers[node].partitions[T].config.segment_bytes == 100
        assert cluster.brokers[node].partitions[T].log.policy.segment_bytes == 100


def test_a_description_names_another_source_than_the_value_has() -> None:
    cluster = with_topic(log_retention_ms=5_000)
    set_to(cluster, retention_ms="7000", flush_ms="9")
    told = described(cluster)
    assert told["retention.ms"] == ("7000", ConfigSource.TOPIC)
    assert told["min.insync.replicas"] == ("2", ConfigSource.STATIC_BROKER)
    assert told["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
    request = DescribeConfigsRequest([DescribeConfigsResource(2, "t", ["retention.ms"])], include_synonyms=True)
    (answer,) = cluster.call(0, ApiKey.DESCRIBE_CONFIGS, 4, request)
    (only,) = answer.results[0].configs
    assert [(one.value, one.source) for one in only.synonyms] == [("7000", 1), ("5000", 4)]


def test_a_broker_describes_itself_wrongly() -> None:
    cluster = with_topic(log_retention_ms=5_000)
    asked = [DescribeConfigsResource(4, "0", ["log.retention.ms", "log.dirs.count"]), DescribeConfigsResource(4, "1")]
    (answer,) = cluster.call(0, ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(asked))
    mine, other = answer.results
    assert [(one.name, one.value, one.config_source) for one in mine.configs] == [
        ("log.retention.ms", "5000", ConfigSource.STATIC_BROKER),
        ("log.dirs.count", "1", ConfigSource.DEFAULT),
    ]
    assert (other.error_code, other.configs) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (("no.such", Operation.SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (("no.such", Operation.DELETE, None), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (("retention.ms", Operation.SET, "soon"), ErrorCode.INVALID_CONFIG, "'soon' for configuration retention.ms"),
        (("retention.ms", Operation.SET, "-2"), ErrorCode.INVALID_CONFIG, "must be -1 or more"),
        (("min.insync.replicas", Operation.SET, "0"), ErrorCode.INVALID_CONFIG, "must be from 1 to 2147483647"),
        (("min.cleanable.dirty.ratio", Operation.SET, "1.1"), ErrorCode.INVALID_CONFIG, "must be from 0 to 1"),
        (("min.cleanable.dirty.ratio", Operation.SET, "nan"), ErrorCode.INVALID_CONFIG, "must be from 0 to 1"),
        (("cleanup.policy", Operation.SET, "burn"), ErrorCode.INVALID_CONFIG, "must be compact, delete, or both"),
        (("cleanup.policy", Operation.SUBTRACT, "delete"), ErrorCode.INVALID_CONFIG, "must be compact, delete"),
        (("unclean.leader.election.enable", Operation.SET, "1"), ErrorCode.INVALID_CONFIG, "must be true or false"),
        (("segment.ms", Operation.APPEND, "1"), ErrorCode.INVALID_CONFIG, "type is not LIST"),
        (("segment.ms", Operation.SET, None), ErrorCode.INVALID_REQUEST, "Null value"),
        (("segment.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "Unknown operation"),
    ],
)
def test_nonsense_is_accepted(change: tuple[str, Any, str | None], error: ErrorCode, told: str) -> None:
    cluster = with_topic()
    before = described(cluster)
    answered, sentence = alter(cluster, change)
    assert answered == error
    assert told in (sentence or "")
    assert described(cluster) == before


def test_a_key_that_is_named_twice_is_taken_once() -> None:
    cluster = with_topic()
    twice = ("segment.ms", Operation.SET, "1")
    assert alter(cluster, twice, twice)[0] == ErrorCode.INVALID_REQUEST


def test_a_list_is_replaced_where_it_is_appended_to() -> None:
    cluster = with_topic()
    assert alter(cluster, ("cleanup.policy", Operation.APPEND, "compact")) == (0, None)
    assert described(cluster)["cleanup.policy"][0] == "delete,compact"
    assert alter(cluster, ("cleanup.policy", Operation.SUBTRACT, "delete")) == (0, None)
    assert described(cluster)["cleanup.policy"][0] == "compact"


def test_what_is_only_validated_is_changed() -> None:
    cluster = with_topic()
    assert alter(cluster, ("segment.ms", Operation.SET, "1"), validate_only=True) == (0, None)
    assert described(cluster)["segment.ms"][1] == ConfigSource.DEFAULT


def test_a_topic_is_created_with_an_unknown_configuration() -> None:
    cluster = VirtualCluster("4.1")
    error, sentence = create(cluster, retention_hours="1")
    assert error == ErrorCode.INVALID_CONFIG
    assert "Unknown topic config name: retention.hours" in (sentence or "")
    assert topics(cluster) == []


def test_the_settings_of_a_broker_are_changed_while_it_runs() -> None:
    cluster = with_topic()
    resource = IncrementalAlterConfigsResource(4, "0", [IncrementalAlterableConfig("log.retention.ms", 0, "1")])
    (answer,) = cluster.call(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST


def test_max_message_bytes_of_a_topic_is_ignored() -> None:
    cluster = with_topic()
    set_to(cluster, max_message_bytes="100")
    (small,), (large,) = cluster.produce(0, b"s", acks=1), cluster.produce(0, b"l" * 200, acks=1)
    assert (small[0], large[0]) == (0, 10)


# ------------------------------------------------------------------------------------------------------ deletion


@pytest.mark.parametrize("knobs", ["0.10", "2.8", "4.1"])
def test_a_deleted_topic_leaves_something_behind(knobs: str) -> None:
    cluster = with_topic(knobs)
    cluster.produce(0, b"gone", acks=-1)
    assert delete(cluster) == 0
    assert [topics(cluster, node) for node in range(3)] == [[], [], []]
    assert [files(cluster, node) for node in range(3)] == [[], [], []]
    assert cluster.controller.core.to_state()["doomed"] == []
    assert cluster.produce(0, b"late", acks=1) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert delete(cluster) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.exit_codes == {}


@pytest.mark.parametrize("knobs", ["0.10", "4.1"])
def test_a_topic_of_the_same_name_has_records_or_offsets_of_the_old_one(knobs: str) -> None:
    cluster = with_topic(knobs)
    for value in (b"a", b"b", b"c"):
        cluster.produce(0, value, acks=-1)
    cluster.world.sleep(6)  # the checkpoints are written
    assert delete(cluster) == 0
    assert create(cluster) == (0, None)
    assert cluster.produce(0, b"first", acks=1) == [(0, 0)]
    cluster.world.sleep(1)
    for node in range(3):
        partition = cluster.brokers[node].partitions[T]
        assert (partition.log.log_start_offset, partition.replica.high_watermark, partition.incarnation) == (0, 1, 1)
    for node in range(3):
        cluster.node(node).kill()
        cluster.start(node)
    cluster.world.sleep(5)
    assert [cluster.brokers[node].partitions[T].log.log_end_offset for node in range(3)] == [1, 1, 1]


def test_a_new_topic_has_the_id_of_the_old_one_of_its_name() -> None:
    cluster = with_topic()
    ids = []
    for _ in range(3):
        (answer,) = cluster.call(0, ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name="t")]))
        ids.append(answer.topics[0].topic_id)
        by_id = DeleteTopicsRequest([DeleteTopicState(None, ids[-1])])
        (answer,) = cluster.call(0, ApiKey.DELETE_TOPICS, 6, by_id)
        assert (answer.responses[0].error_code, answer.responses[0].name) == (0, "t")
        create(cluster)
    cluster_id = cluster.brokers[0].metadata.cluster_id
    assert ids == [topic_id(cluster_id, "t"), topic_id(cluster_id, "t", 1), topic_id(cluster_id, "t", 2)]
    (answer,) = cluster.call(0, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([DeleteTopicState(None, ids[0])]))
    assert answer.responses[0].error_code == 100
    (answer,) = cluster.call(0, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([DeleteTopicState(None, NO_UUID)]))
    assert answer.responses[0].error_code == 100


def test_a_broker_that_was_away_when_a_topic_was_deleted_keeps_its_replica_and_mixes_it_into_the_next() -> None:
    cluster = with_topic("4.1")
    cluster.produce(0, b"old", acks=-1)
    cluster.world.sleep(1)
    cluster.kill(2)
    cluster.world.sleep(3)
    assert delete(cluster) == 0
    assert files(cluster, 2)
    assert create(cluster) == (0, None), "a topic is known by its id"
    assert cluster.produce(0, b"new", acks=1) == [(0, 0)]
    cluster.kill(CONTROLLER_ID)
    cluster.node(CONTROLLER_ID).start()
    cluster.start(2)
    cluster.world.sleep(5)
    partition = cluster.brokers[2].partitions[T]
    assert (partition.incarnation, partition.log.log_end_offset) == (1, 1)
    assert b"new" in cluster.log_bytes(2)
    assert b"old" not in cluster.log_bytes(2)
    assert cluster.controller.core.partitions[0].isr == (0, 1, 2)


def test_a_name_is_free_again_before_every_replica_is_deleted_where_topics_have_no_ids() -> None:
    cluster = with_topic("2.8")
    cluster.kill(2)
    cluster.world.sleep(3)
    assert delete(cluster) == 0
    error, sentence = create(cluster)
    assert (error, "marked for deletion" in (sentence or "")) == (ErrorCode.TOPIC_ALREADY_EXISTS, True)
    cluster.start(2)
    cluster.world.sleep(3)
    assert create(cluster) == (0, None)
    assert files(cluster, 2)


def test_the_topic_of_a_coordinator_can_be_deleted() -> None:
    assert delete(with_topic(), "__consumer_offsets") == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_replica_in_a_directory_that_has_failed_is_taken_for_deleted() -> None:
    cluster = VirtualCluster("4.1", log_dirs_count=2)
    cluster.create_topic()
    cluster.disk(2).failed.add("log-0")
    cluster.world.sleep(400)
    assert delete(cluster) == 0
    assert [one[0] for one in cluster.controller.core.to_state()["doomed"]] == [2]


# ---------------------------------------------------------------------------------------------------- partitions


def enlarge(cluster: VirtualCluster, count: int, *assignments: list[int], **more: bool) -> int:
    chosen = [CreatePartitionsAssignment(one) for one in assignments] or None
    request = CreatePartitionsRequest([CreatePartitionsTopic("t", count, chosen)], **more)
    (answer,) = cluster.call(1, ApiKey.CREATE_PARTITIONS, 3, request)
    cluster.world.sleep(1)
    return int(answer.results[0].error_code)


def test_a_new_partition_has_no_leader_or_the_configurations_of_another_topic() -> None:
    cluster = VirtualCluster("4.1")
    assert create(cluster, segment_bytes="100") == (0, None)
    assert enlarge(cluster, 3) == 0
    assert enlarge(cluster, 4, [2, 0, 1]) == 0
    states = cluster.controller.core.partitions
    assert [state.leader for state in states] == [0, 1, 2, 2]
    for number in range(4):
        partition = cluster.brokers[1].partitions[TopicPartition("t", number)]
        assert partition.config.segment_bytes == 100
        assert set(partition.replica.isr) == {0, 1, 2}


def test_partitions_are_taken_away_or_added_by_a_wrong_request() -> None:
    cluster = with_topic()
    assert enlarge(cluster, 1) == ErrorCode.INVALID_PARTITIONS
    assert enlarge(cluster, 0) == ErrorCode.INVALID_PARTITIONS
    assert enlarge(cluster, 3, [0, 1, 2]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert enlarge(cluster, 2, [0, 1]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert enlarge(cluster, 2, [0, 1, 9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert enlarge(cluster, 2_001) == ErrorCode.POLICY_VIOLATION
    assert enlarge(cluster, 2, validate_only=True) == 0
    assert len(cluster.controller.core.partitions) == 1


# -------------------------------------------------------------------------------------------------- transactions


def test_a_transaction_with_a_topic_that_was_deleted_never_ends() -> None:
    cluster = with_topic()

    def ask(key: ApiKey, version: int, body: Any) -> Any:
        answers = cluster.call(coordinator(), key, version, body)
        cluster.world.sleep(1)
        return answers[0]

    def coordinator() -> int:
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
        (answer,) = cluster.call(1, ApiKey.FIND_COORDINATOR, 4, asked)
        cluster.world.sleep(2)
        return int(answer.coordinators[0].node_id)

    coordinator()
    begun = ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("x", 60_000))
    who = ("x", begun.producer_id, begun.producer_epoch)
    added = ask(
        ApiKey.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest([], *who, [AddPartitionsToTxnTopic("t", [0])])
    )
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert delete(cluster) == 0
    assert ask(ApiKey.END_TXN, 3, EndTxnRequest(*who, committed=False)).error_code == 0
    described = ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["x"]))
    assert described.transaction_states[0].transaction_state == "CompleteAbort"
