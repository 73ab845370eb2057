"""What a client may occupy: how much work one request costs, and what is left of a client that has gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.broker import controller_topics, controller_turns, purgatory
from harness.broker.controller_node import ControllerNode
from harness.broker.ports import Connection
from harness.broker.segments import SegmentLog
from harness.broker.session import MAX_REQUEST_BYTES
from harness.error_codes import ErrorCode
from harness.model import Link, NodeId, TopicPartition
from harness.simulation.stack.cluster import listener
from harness.wire.declaration import MAX_ELEMENTS, Message
from harness.wire.frames import RequestHeader, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from harness.wire.messages.operators import ElectLeadersRequest, TopicPartitions
from harness.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import T, VirtualCluster

FOR_EVER_MS = (1 << 31) - 1


class Peer:
    """A client that sends what it likes, and may hang up."""

    def __init__(self, cluster: VirtualCluster, broker: int = 0) -> None:
        self.world = cluster.world
        self.frames: list[bytes] = []
        self.is_lost = False
        cluster.clients.connect(listener(NodeId(broker)), str(broker), self.connected, lambda: None)
        self.world.sleep(0)

    def connected(self, connection: Connection) -> Peer:
        self.connection = connection
        return self

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_lost(self) -> None:
        self.is_lost = True

    def send(self, key: ApiKey, version: int, body: Message) -> None:
        self.connection.send(encode_request(RequestHeader(key, version, 0, "peer"), body))
        self.world.sleep(0)

    def hang_up(self) -> None:
        self.connection.close()
        self.world.sleep(0)


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster()
    cluster.create_topic()
    return cluster


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], Counter[str]]:
    """Counts the calls of one method from now on."""
    counted: Counter[str] = Counter()

    def count(cls: type, name: str) -> Counter[str]:
        method = getattr(cls, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(cls, name, counting)
        return counted

    return count


def naming(partitions: int, times: int, **fields: Any) -> FetchRequest:
    asked = [FetchPartition(number, -1, 0, partition_max_bytes=1 << 20) for number in range(partitions)] * times
    return FetchRequest(**({"max_bytes": 1 << 24} | fields), topics=[FetchTopic("t", partitions=asked)])


# ------------------------------------------------------------------------------------------------- one request


def test_a_partition_that_a_fetch_names_5000_times_is_looked_at_and_answered_once(
    cluster: VirtualCluster, calls: Callable[[type, str], Counter[str]]
) -> None:
    counted = calls(SegmentLog, "locate")
    (answer,) = cluster.call(0, ApiKey.FETCH, 12, naming(1, 5_000))
    assert [len(topic.partitions) for topic in answer.responses] == [1]
    assert counted["locate"] == 1


def test_a_request_with_more_elements_than_any_may_have_costs_the_connection_and_one_line(
    cluster: VirtualCluster,
) -> None:
    peer = Peer(cluster)
    peer.send(ApiKey.FETCH, 12, naming(1, MAX_ELEMENTS))
    said = [line for line in cluster.said if "Disconnected clients" in line]
    assert peer.is_lost
    assert len(said) == 1
    assert f"more than {MAX_ELEMENTS} elements" in said[0]


def test_a_hundred_such_requests_in_one_second_leave_one_line_and_the_next_one_counts_them(
    cluster: VirtualCluster,
) -> None:
    for _ in range(100):
        Peer(cluster).send(ApiKey.FETCH, 12, naming(1, MAX_ELEMENTS))
    assert len([line for line in cluster.said if "Disconnected clients" in line]) == 1
    cluster.world.sleep(2)
    Peer(cluster).send(ApiKey.FETCH, 12, naming(1, MAX_ELEMENTS))
    assert "99 such lines before it were left out" in cluster.node(0).said[-1]


def test_a_request_that_is_larger_than_any_but_produce_may_be_costs_the_connection(cluster: VirtualCluster) -> None:
    large = Peer(cluster)
    large.send(ApiKey.METADATA, 5, MetadataRequest([MetadataRequestTopic(name="x" * 30_000)] * 40))
    produce = Peer(cluster)
    produce.send(ApiKey.PRODUCE, 9, produce_request("t", bytes(MAX_REQUEST_BYTES)))
    assert (large.is_lost, produce.is_lost) == (True, False)


def test_a_partition_that_list_offsets_names_twice_is_refused_twice_as_in_kafka(
    cluster: VirtualCluster, calls: Callable[[type, str], Counter[str]]
) -> None:
    cluster.produce(0, b"a")
    counted = calls(SegmentLog, "first_since")
    topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, 5)] * 3 + [ListOffsetsPartition(7, -1, 5)])
    (answer,) = cluster.call(0, ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(topics=[topic]))
    assert [one.error_code for one in answer.topics[0].partitions] == [42, 42, 42, 3]
    assert counted["first_since"] == 0


@pytest.mark.parametrize(("timestamp", "offset"), [(60, 6), (-3, 9)])
def test_an_offset_is_found_by_its_timestamp_without_reading_the_log(
    cluster: VirtualCluster, calls: Callable[[type, str], Counter[str]], timestamp: int, offset: int
) -> None:
    for number in range(10):
        request = produce_request("t", batch(b"x", timestamp_ms=10 * number))
        cluster.call(0, ApiKey.PRODUCE, 9, request)
    cluster.world.sleep(1)
    counted = calls(type(cluster.brokers[0].partitions[T].log._segments[0].file), "read")
    topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, timestamp)])
    (answer,) = cluster.call(0, ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=[topic]))
    assert answer.topics[0].partitions[0].offset == offset
    assert counted["read"] == 1


def test_a_topic_that_metadata_names_3000_times_is_described_once(cluster: VirtualCluster) -> None:
    names = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="u")] * 3_000
    (answer,) = cluster.call(0, ApiKey.METADATA, 5, MetadataRequest(names))
    assert [topic.name for topic in answer.topics] == ["t", "u"]


def test_a_group_whose_offsets_are_asked_for_3000_times_is_answered_once(cluster: VirtualCluster) -> None:
    body = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None)] * 3_000)
    (answer,) = cluster.call(0, ApiKey.OFFSET_FETCH, 8, body)
    assert [group.group_id for group in answer.groups] == ["g"]


# ------------------------------------------------------------------------------------------------- what waits


def test_an_append_costs_a_fetch_that_waits_for_fifty_partitions_one_look(
    calls: Callable[[type, str], Counter[str]],
) -> None:
    cluster = VirtualCluster()
    cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("t", 150, 3)]))
    cluster.world.sleep(1)
    mine = [name.partition for name, one in cluster.brokers[0].partitions.items() if one.replica.role == "leader"]
    assert len(mine) == 50
    asked = [FetchPartition(number, -1, 0, partition_max_bytes=1 << 20) for number in mine]
    request = FetchRequest(
        max_wait_ms=FOR_EVER_MS, min_bytes=1 << 20, max_bytes=1 << 24, topics=[FetchTopic("t", partitions=asked)]
    )
    answers = cluster.call(0, ApiKey.FETCH, 12, request)
    counted = calls(SegmentLog, "locate")
    cluster.brokers[0].consumer_fetches.wake(TopicPartition("t", mine[0]))
    assert (counted["locate"], len(cluster.brokers[0].consumer_fetches), answers) == (1, 1, [])


def test_what_a_fetch_waits_for_adds_up_over_its_partitions(cluster: VirtualCluster) -> None:
    size = len(batch(b"a"))
    request = fetch_request("t", 0, max_wait_ms=FOR_EVER_MS, min_bytes=3 * size)
    answers = cluster.call(0, ApiKey.FETCH, 12, request)
    for count in range(3):
        assert len(answers) == 0, f"answered after {count} batches"
        cluster.produce(0, b"a")
        cluster.world.sleep(1)
    assert len(answers[0].responses[0].partitions[0].records) == 3 * size


@pytest.mark.parametrize("replica", [-1, 1])
def test_a_client_that_hangs_up_frees_what_its_fetches_held_at_once(cluster: VirtualCluster, replica: int) -> None:
    broker = cluster.brokers[0]
    before = len(broker.consumer_fetches), len(broker.follower_fetches)
    peers = [Peer(cluster) for _ in range(20)]
    for peer in peers:
        for _ in range(3):
            peer.send(ApiKey.FETCH, 12, fetch_request("t", 0, max_wait_ms=FOR_EVER_MS, replica_id=replica))
    assert len(broker.consumer_fetches) + len(broker.follower_fetches) == sum(before) + 20
    for peer in peers:
        peer.hang_up()
    assert len(broker.consumer_fetches) + len(broker.follower_fetches) == sum(before)
    assert not [stream for stream in cluster.node(0).network.streams if stream.peer == "clients" and stream.is_paused]


def test_what_a_client_sent_before_it_hung_up_is_appended_although_a_fetch_of_it_waited(
    cluster: VirtualCluster,
) -> None:
    peer = Peer(cluster)
    peer.send(ApiKey.FETCH, 12, fetch_request("t", 0, max_wait_ms=FOR_EVER_MS))
    peer.send(ApiKey.PRODUCE, 9, produce_request("t", batch(b"a"), acks=1))
    assert cluster.brokers[0].partitions[T].replica.log_end_offset == 0
    peer.hang_up()
    assert cluster.brokers[0].partitions[T].replica.log_end_offset == 1


def test_a_client_that_hangs_up_is_not_waited_for_with_acks_all(cluster: VirtualCluster) -> None:
    cluster.kill(1)
    cluster.kill(2)
    peer = Peer(cluster)
    peer.send(ApiKey.PRODUCE, 9, produce_request("t", batch(b"a"), timeout_ms=FOR_EVER_MS))
    leadership = cluster.brokers[0].partitions[T].replica._leadership
    assert leadership is not None
    assert len(leadership._waiting) == 1
    peer.hang_up()
    assert len(leadership._waiting) == 0


def test_a_fetch_for_which_there_is_no_room_is_answered_at_once(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = fetch_request("t", 0, max_wait_ms=FOR_EVER_MS)
    monkeypatch.setattr(purgatory, "MAX_WATCHED", 2)
    answers = [cluster.call(0, ApiKey.FETCH, 12, request) for _ in range(3)]
    assert [len(answer) for answer in answers] == [0, 0, 1]
    assert answers[2][0].responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_client_has_one_request_under_way_to_the_controller(cluster: VirtualCluster) -> None:
    cluster.node(100).cut((Link("0", "controller"),))
    peer = Peer(cluster)
    for _ in range(10):
        peer.send(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(0, [TopicPartitions("t", [0])]))
    waiting = cluster.brokers[0].controller._caller._waiting
    assert [call.header.api_key for call in waiting.values()].count(ApiKey.ELECT_LEADERS) == 1


# ------------------------------------------------------------------------------------------------- the controller


def test_topics_beyond_what_the_cluster_can_serve_violate_its_policy(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_topics, "MAX_CLUSTER_PARTITIONS", 10)
    topics = [CreatableTopic(f"u{number}", 4, 1) for number in range(3)]
    (answer,) = cluster.call(0, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics))
    assert [topic.error_code for topic in answer.topics] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert answer.topics[2].error_message == "The cluster has 9 partitions; with 4 more it would exceed 10."
    assert len(cluster.controller.core.partitions) == 9


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (ApiKey.CREATE_TOPICS, CreateTopicsRequest([CreatableTopic(f"u{number}", 1, 1) for number in range(100)])),
        (ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, [TopicPartitions("t", [0] * 100)])),
    ],
)
def test_the_controller_serves_others_while_one_request_asks_for_a_hundred_changes(
    cluster: VirtualCluster, key: ApiKey, body: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    later = ControllerNode.later

    def note(node: ControllerNode, act: Callable[[], None]) -> None:
        turns.append(len(turns))
        later(node, act)

    monkeypatch.setattr(ControllerNode, "later", note)
    (answer,) = cluster.call(0, key, 5 if key == ApiKey.CREATE_TOPICS else 2, body)
    told = answer.topics if key == ApiKey.CREATE_TOPICS else answer.replica_election_results[0].partition_result
    assert len(told) == 100
    assert len(turns) == 100 // controller_turns.STEPS_PER_TURN


# ------------------------------------------------------------------------------------------------- before it is ready


def test_a_broker_serves_no_client_before_it_knows_the_cluster(cluster: VirtualCluster) -> None:
    cluster.kill(2)
    cluster.kill(100)
    cluster.start(2)
    answers = cluster.call(2, ApiKey.METADATA, 5, MetadataRequest([MetadataRequestTopic(name="t")]))
    cluster.world.sleep(5)
    assert answers == []
    cluster.node(100).start()
    cluster.world.sleep(5)
    (answer,) = cluster.call(2, ApiKey.METADATA, 5, MetadataRequest([MetadataRequestTopic(name="t")]))
    assert (answer.topics[0].error_code, len(answer.brokers)) == (0, 3)
    assert [len(one.brokers) for one in answers] == [3]


def test_a_client_that_hangs_up_before_the_broker_is_ready_leaves_nothing_behind(cluster: VirtualCluster) -> None:
    cluster.kill(2)
    cluster.kill(100)
    cluster.start(2)
    for _ in range(20):
        peer = Peer(cluster, 2)
        peer.send(ApiKey.METADATA, 5, MetadataRequest())
        peer.hang_up()
    assert not [stream for stream in cluster.node(2).network.streams if stream.peer == "clients"]
    assert len(cluster.brokers[2]._sessions._early) <= 1
