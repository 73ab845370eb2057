"""The log cleaner of whole brokers, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.checkpoints import CLEANED, parse_offsets
from harness.broker.segment import batches_in
from harness.coordination.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire import batches as wire
from harness.wire.batches import Record
from harness.wire.keys import ApiKey
from harness.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.groups import DeleteGroupsRequest
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from harness.wire.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.harness.broker.raw_client import produce_request
from tests.harness.broker.test_committed_offsets import commit, committed, found
from tests.harness.broker.virtual_cluster import VirtualCluster

T = TopicPartition("t", 0)
SMALL = {"cleanup.policy": "compact", "segment.bytes": "300", "min.cleanable.dirty.ratio": "0.01"}


def compacted(knobs: str = "4.1", configs: dict[str, str] | None = None, **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(knobs, log_cleaner_backoff_ms=1_000, **settings)
    stated = [CreatableTopicConfig(*pair) for pair in (SMALL | (configs or {})).items()]
    request = CreateTopicsRequest([CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [0, 1, 2])], stated)])
    (answer,) = cluster.call(1, ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code == 0
    cluster.world.sleep(1)
    return cluster


def put(cluster: VirtualCluster, key: str | None, value: str | None, node: int = 0, acks: int = -1) -> int:
    """Returns the error code of the leader's answer."""
    record = Record(
        0,
        cluster.brokers[node].clock.wall_ms(),
        None if key is None else key.encode(),
        None if value is None else value.encode(),
    )
    answers = cluster.call(node, ApiKey.PRODUCE, 9, produce_request("t", bytes(wire.build([record])), acks=acks))
    cluster.world.sleep(0.1)
    return int(answers[0].responses[0].partition_responses[0].error_code)


def fill(cluster: VirtualCluster, node: int = 0) -> None:
    for number in range(30):
        assert put(cluster, f"k{number % 3}", f"{number}", node) == 0
    cluster.world.sleep(5)


def records(cluster: VirtualCluster, node: int) -> list[tuple[int, str, str | None]]:
    return [
        (one.offset, (one.key or b"").decode(), None if one.value is None else one.value.decode())
        for segment in cluster.brokers[node].partitions[T].log.segments
        for batch, header in batches_in(segment.file)
        if not header.attributes & wire.CONTROL
        for one in wire.records(batch, header)
    ]


LAST = {f"k{number % 3}": f"{number}" for number in range(27, 30)}


def last(cluster: VirtualCluster, node: int) -> dict[str, str | None]:
    return {key: value for _, key, value in records(cluster, node)}


@pytest.mark.parametrize("knobs", ["0.10", "2.0.0", "2.8", "4.1"])
def test_a_replica_keeps_what_is_superseded_or_loses_a_last_value(knobs: str) -> None:
    cluster = compacted(knobs)
    fill(cluster)
    for node in range(3):
        assert last(cluster, node) == LAST
        assert len(records(cluster, node)) < 12
        assert cluster.brokers[node].partitions[T].log.log_end_offset == 30
    assert cluster.exit_codes == {}


def test_a_topic_that_is_not_compacted_is() -> None:
    cluster = compacted(configs={"cleanup.policy": "delete"})
    fill(cluster)
    assert len(records(cluster, 0)) == 30


def test_what_is_not_below_the_high_watermark_is_compacted() -> None:
    cluster = compacted()
    for node in (1, 2):
        cluster.kill(node)
    for number in range(30):
        put(cluster, "k", f"{number}", acks=1)
    cluster.world.sleep(5)
    assert cluster.brokers[0].partitions[T].replica.high_watermark < 10
    assert len(records(cluster, 0)) >= 29


def test_a_follower_does_not_get_over_the_gaps_of_its_leader() -> None:
    cluster = compacted()
    fill(cluster)
    cluster.kill(2)
    cluster.lose_replica(2)
    cluster.world.sleep(5)
    fill(cluster)
    cluster.start(2)
    cluster.world.sleep(10)
    log = cluster.brokers[2].partitions[T].log
    assert log.log_end_offset == 60
    assert last(cluster, 2) == LAST
    assert cluster.controller.core.partitions[0].isr == (0, 1, 2)


@pytest.mark.parametrize("knobs", ["0.11", "2.1", "4.1"])
def test_a_compacted_log_is_worth_less_after_crashes_and_elections(knobs: str) -> None:
    cluster = compacted(knobs)
    for leader in (0, 1, 2, 0):
        current = cluster.controller.core.partitions[0].leader
        fill(cluster, current)
        entries = {node: cluster.brokers[node].partitions[T].replica.epoch_entries for node in range(3)}
        cluster.kill(current)
        cluster.world.sleep(5)
        cluster.start(current)
        cluster.world.sleep(5)
        assert last(cluster, current) == LAST
        assert entries[current][0] in cluster.brokers[current].partitions[T].replica.epoch_entries, leader
    ends = {cluster.brokers[node].partitions[T].log.log_end_offset for node in range(3)}
    assert ends == {120}
    assert cluster.exit_codes == {}


@pytest.mark.parametrize("knobs", ["2.8", "4.1"])
def test_a_tombstone_is_gone_before_its_time_or_stays(knobs: str) -> None:
    cluster = compacted(knobs, {"delete.retention.ms": "20000"})
    fill(cluster)
    assert put(cluster, "k0", None) == 0
    for number in range(20):
        put(cluster, "other", f"{number}")
    cluster.world.sleep(5)
    assert last(cluster, 0)["k0"] is None
    assert (27, "k0", "27") not in records(cluster, 0)
    cluster.world.sleep(30)
    for number in range(20):
        put(cluster, "other", f"{number}")
    cluster.world.sleep(5)
    for node in range(3):
        assert "k0" not in last(cluster, node)


def test_what_is_younger_than_the_lag_is_compacted() -> None:
    cluster = compacted(configs={"min.compaction.lag.ms": "60000"})
    fill(cluster)
    assert len(records(cluster, 0)) == 30
    cluster.world.sleep(60)
    assert len(records(cluster, 0)) < 12


def test_a_log_with_little_dirt_is_compacted_although_it_is_not_overdue() -> None:
    cluster = compacted(configs={"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "60000"})
    fill(cluster)
    assert len(records(cluster, 0)) == 30
    cluster.world.sleep(65)
    assert len(records(cluster, 0)) < 12


def test_a_record_without_a_key_is_taken_for_a_compacted_topic() -> None:
    cluster = compacted()
    assert put(cluster, None, "v") == ErrorCode.INVALID_RECORD
    assert put(cluster, "k", "v") == 0


def test_a_policy_that_is_set_later_takes_no_effect() -> None:
    cluster = compacted(configs={"cleanup.policy": "delete"})
    fill(cluster)
    change = IncrementalAlterableConfig("cleanup.policy", 0, "compact")
    request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(2, "t", [change])])
    (answer,) = cluster.call(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    cluster.world.sleep(5)
    assert answer.responses[0].error_code == 0
    assert last(cluster, 1) == LAST
    assert len(records(cluster, 1)) < 12


def test_retention_spares_a_topic_that_is_compacted_or_no_topic_that_is_both() -> None:
    quick: dict[str, Any] = {"log_retention_check_interval_ms": 1_000}
    only = compacted(configs={"retention.ms": "5000"}, **quick)
    both = compacted(configs={"retention.ms": "5000", "cleanup.policy": "compact,delete"}, **quick)
    for cluster in (only, both):
        fill(cluster)
        cluster.world.sleep(10)
    assert only.brokers[0].partitions[T].log.log_start_offset == 0
    assert both.brokers[0].partitions[T].log.log_start_offset > 20


def transact(cluster: VirtualCluster, key: str, value: str | None, sequence: int, *, commits: bool) -> None:
    """A transaction of producer 7, of one record."""
    content = None if value is None else value.encode()
    batch = wire.build(
        [Record(0, cluster.brokers[0].clock.wall_ms(), key.encode(), content)],
        attributes=wire.TRANSACTIONAL,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
    )
    (answer,) = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", bytes(batch), transactional_id="x"))
    assert answer.responses[0].partition_responses[0].error_code == 0
    marker = WritableTxnMarker(7, 0, commits, [WritableTxnMarkerTopic("t", [0])], 0)
    (ended,) = cluster.call(0, ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
    assert ended.markers[0].topics[0].partitions[0].error_code == 0
    cluster.world.sleep(0.1)


def test_a_committed_record_is_taken_for_one_of_an_aborted_transaction_that_is_gone() -> None:
    cluster = compacted("2.8", {"delete.retention.ms": "1000"})
    assert put(cluster, "first of the epoch", "v") == 0
    transact(cluster, "a", "aborted", 0, commits=False)
    transact(cluster, "b", "committed", 1, commits=True)
    fill(cluster)
    for sequence in (2, 3):
        transact(cluster, f"c{sequence}", "committed", sequence, commits=True)
        cluster.world.sleep(5)
        fill(cluster)
    for node in range(3):
        partition = cluster.brokers[node].partitions[T]
        assert partition.replica.log.producers.aborted(0, partition.log.log_end_offset) == []
        assert [last(cluster, node).get(key) for key in ("a", "b", "c2", "c3")] == [None, *["committed"] * 3]


def test_a_tombstone_is_taken_for_one_of_an_aborted_transaction_of_the_clean_part() -> None:
    cluster = compacted("2.8")
    assert put(cluster, "a", "old") == 0
    transact(cluster, "b", "aborted", 0, commits=False)
    fill(cluster)
    transact(cluster, "a", None, 1, commits=True)
    fill(cluster)
    for node in range(3):
        assert [value for _, key, value in records(cluster, node) if key == "a"] == [None]


def test_a_log_that_was_cut_is_taken_for_clean_beyond_its_end() -> None:
    cluster = compacted()
    fill(cluster)
    partition = cluster.brokers[0].partitions[T]
    clean = partition.directory.first_dirty_offset(T)
    assert clean > 20
    partition.log.truncate(10)
    partition._lower_recovery_point()
    assert partition.directory.first_dirty_offset(T) == partition.log.log_end_offset


def test_a_log_that_a_recovery_cut_is_taken_for_clean_beyond_its_end() -> None:
    cluster = compacted()
    fill(cluster)
    clean = cluster.brokers[0].partitions[T].directory.first_dirty_offset(T)
    cluster.kill(0)
    disk = cluster.disk(0)
    paths = [f"{T}/{name}" for name in disk.list(str(T)) if name.endswith(".log")]
    for path in paths[1:]:
        disk.remove(path)
    cluster.start(0)
    partition = cluster.brokers[0].partitions[T]
    assert partition.log.log_end_offset < clean
    assert partition.directory.first_dirty_offset(T) == partition.log.log_end_offset
    written = parse_offsets(disk.read_text(CLEANED) or "")
    assert written[T] == partition.log.log_end_offset


# ---------------------------------------------------------------------------------------- the coordinators' topics


def compact_soon(cluster: VirtualCluster, topic: str) -> None:
    changes = [IncrementalAlterableConfig(name, 0, value) for name, value in SMALL.items()]
    request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(2, topic, changes)])
    (answer,) = cluster.call(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    cluster.world.sleep(1)
    assert answer.responses[0].error_code == 0


def restart(cluster: VirtualCluster) -> None:
    for node in range(3):
        cluster.kill(node)
    for node in range(3):
        cluster.start(node)
    cluster.world.sleep(5)


def count(cluster: VirtualCluster, name: TopicPartition) -> list[int]:
    """How many records each replica has."""
    return [
        sum(header.record_count for header in cluster.brokers[node].partitions[name].log.headers()) for node in range(3)
    ]


def test_groups_know_something_else_after_their_log_was_compacted() -> None:
    cluster = VirtualCluster("4.1", log_cleaner_backoff_ms=1_000)
    cluster.create_topic()
    found(cluster)
    compact_soon(cluster, GROUPS_TOPIC)
    for offset in range(1, 20):
        assert commit(cluster, offset) == [0]
        assert commit(cluster, offset, group="gone") == [0]
    (answer,) = cluster.call(found(cluster), ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(["gone"]))
    assert [one.error_code for one in answer.results] == [0]
    cluster.world.sleep(1)
    for offset in range(20, 30):
        assert commit(cluster, offset) == [0]
    cluster.world.sleep(5)
    assert [one < 20 for one in count(cluster, TopicPartition(GROUPS_TOPIC, 0))] == [True] * 3
    for leader in range(3):
        restart(cluster)
        assert committed(cluster)[0][0] == 29, leader
        assert committed(cluster, "gone")[0][0] == -1


def begun(cluster: VirtualCluster, name: str = "x") -> tuple[int, int]:
    """A producer takes a transactional id over; returns its number and epoch."""
    asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    (answer,) = cluster.call(1, ApiKey.FIND_COORDINATOR, 4, asked)
    cluster.world.sleep(2)
    node = answer.coordinators[0].node_id
    if node < 0:
        return begun(cluster, name)
    answers = cluster.call(node, ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
    cluster.world.sleep(1)
    assert answers[0].error_code == 0
    return answers[0].producer_id, answers[0].producer_epoch


def test_a_transactional_id_gets_an_older_epoch_after_its_log_was_compacted() -> None:
    cluster = VirtualCluster("4.1", log_cleaner_backoff_ms=1_000)
    producer_id, epoch = begun(cluster)
    compact_soon(cluster, TRANSACTIONS_TOPIC)
    for number in range(1, 30):
        assert begun(cluster) == (producer_id, epoch + number)
    cluster.world.sleep(5)
    assert [one < 15 for one in count(cluster, TopicPartition(TRANSACTIONS_TOPIC, 0))] == [True] * 3
    restart(cluster)
    assert begun(cluster) == (producer_id, epoch + 30)


@pytest.mark.parametrize("knobs", ["2.8", "4.1"])
def test_small_segments_of_the_coordinators_topics_are_not_compacted_or_change_what_coordinators_know(
    knobs: str,
) -> None:
    cluster = VirtualCluster(
        knobs,
        log_cleaner_backoff_ms=1_000,
        offsets_topic_segment_bytes=300,
        transaction_state_log_segment_bytes=300,
    )
    cluster.create_topic()
    found(cluster)
    assert commit(cluster, 7, group="early") == [0]
    early, early_epoch = begun(cluster, "early")
    producer_id, epoch = begun(cluster)
    for number in range(1, 30):
        assert commit(cluster, number) == [0]
        assert begun(cluster) == (producer_id, epoch + number)
    cluster.world.sleep(5)
    for topic in (GROUPS_TOPIC, TRANSACTIONS_TOPIC):
        assert [one < 15 for one in count(cluster, TopicPartition(topic, 0))] == [True] * 3, topic
    for number in range(30, 33):
        restart(cluster)
        assert [committed(cluster, group)[0][0] for group in ("early", "g")] == [7, 29]
        assert begun(cluster) == (producer_id, epoch + number)
    assert begun(cluster, "early") == (early, early_epoch + 1)
