"""What a broker says on the wire, heard by a client that hides nothing."""

import random
import struct
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from harness.error_codes import ErrorCode
from harness.wire import batches as wire
from harness.wire.declaration import MAX_STRING_BYTES
from harness.wire.frames import ADVERTISED, SUPPORTED
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest
from harness.wire.messages.control import BrokerHeartbeatRequest
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.harness.broker.cluster import Cluster, wait_until
from tests.harness.broker.raw_client import RawClient, batch, fetch_request, produce_request


@pytest.fixture
def client(cluster: Cluster) -> Iterator[RawClient]:
    """Connected to broker 0, the leader of ``shared``."""
    with RawClient(cluster.ips[0]) as raw:
        yield raw


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """An empty topic of its own, led by broker 0."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name)
    return name


def produce(client: RawClient, request: ProduceRequest, version: int = 9) -> Any:
    return client.ask(ApiKey.PRODUCE, version, request).responses[0].partition_responses[0]


def fetch(client: RawClient, request: FetchRequest, version: int = 12) -> Any:
    return client.ask(ApiKey.FETCH, version, request).responses[0].partitions[0]


def values(records: Any) -> list[bytes | None]:
    return [record.value for header in wire.headers(records) for record in wire.records(records, header)]


# ------------------------------------------------------------------------------------------------- Produce


@pytest.mark.parametrize("version", range(SUPPORTED[ApiKey.PRODUCE][0], ADVERTISED[ApiKey.PRODUCE][1] + 1))
def test_every_version_of_produce_is_served(client: RawClient, version: int) -> None:
    answer = produce(client, produce_request("shared", batch()), version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.base_offset >= 0


def test_a_produce_that_names_topics_by_ids_alone_is_served(client: RawClient) -> None:
    """Its codec is for wire taps."""
    client.send(ApiKey.PRODUCE, ADVERTISED[ApiKey.PRODUCE][1] + 1, produce_request("shared", batch()))
    assert client.is_hung_up()


@pytest.mark.parametrize("acks", [1, -1])
def test_produced_records_get_the_next_offsets(client: RawClient, topic: str, acks: int) -> None:
    first = produce(client, produce_request(topic, batch(b"a", b"b"), acks))
    second = produce(client, produce_request(topic, batch(b"c"), acks))
    assert (first.base_offset, second.base_offset, second.log_append_time_ms) == (0, 2, -1)


def test_a_batch_that_fails_its_checksum_is_refused_and_not_appended(client: RawClient, topic: str) -> None:
    torn = batch(b"a")
    torn[-1] ^= 1
    assert produce(client, produce_request(topic, torn)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce(client, produce_request(topic, batch(b"b"))).base_offset == 0


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"garbage", ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (batch(b"x" * 1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(attributes=wire.CONTROL), ErrorCode.INVALID_RECORD),
        (batch(attributes=wire.TRANSACTIONAL), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_records_that_are_not_one_sound_batch_are_refused(client: RawClient, records: bytes, error: int) -> None:
    answer = produce(client, produce_request("shared", records))
    assert (answer.error_code, answer.base_offset) == (error, -1)


def test_a_batch_that_claims_other_offsets_than_it_has_records_is_refused(client: RawClient) -> None:
    lying = batch(b"a", b"b")
    struct.pack_into(">i", lying, 23, 5)  # last offset delta
    struct.pack_into(">I", lying, 17, wire.header.checksum(lying))
    assert produce(client, produce_request("shared", lying)).error_code == ErrorCode.INVALID_RECORD


def test_producing_to_nothing_is_an_unknown_partition(client: RawClient) -> None:
    for request in (produce_request("nothing", batch()), produce_request("shared", batch(), partition=7)):
        assert produce(client, request).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_producing_to_a_follower_is_refused_with_a_hint_at_the_leader(cluster: Cluster, client: RawClient) -> None:
    answer = client.ask(ApiKey.PRODUCE, 10, produce_request("led-by-1", batch()))
    (response,) = answer.responses[0].partition_responses
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert response.current_leader.leader_id == 1
    assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(1, cluster.ips[1])]


def test_a_batch_sent_again_by_an_idempotent_producer_is_stored_once(client: RawClient, topic: str) -> None:
    def send(sequence: int, producer_epoch: int = 0) -> tuple[int, int]:
        stamped = batch(b"a", b"b", producer_id=7, producer_epoch=producer_epoch, base_sequence=sequence)
        answer = produce(client, produce_request(topic, stamped))
        return answer.error_code, answer.base_offset

    assert [send(0), send(2), send(0), send(2)] == [(0, 0), (0, 2), (0, 0), (0, 2)]
    assert send(6) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(0, producer_epoch=1) == (0, 4)
    assert send(4) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert send(-5)[0] != 0


def test_acks_that_do_not_exist_are_refused(client: RawClient) -> None:
    assert produce(client, produce_request("shared", batch(), acks=2)).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_a_produce_with_acks_0_is_appended_and_not_answered(client: RawClient, topic: str) -> None:
    client.send(ApiKey.PRODUCE, 9, produce_request(topic, batch(b"silent"), acks=0))
    assert produce(client, produce_request(topic, batch(), acks=1)).base_offset == 1


def test_a_failed_produce_with_acks_0_costs_the_connection(client: RawClient) -> None:
    client.send(ApiKey.PRODUCE, 9, produce_request("nothing", batch(), acks=0))
    assert client.is_hung_up()


def test_an_empty_produce_is_answered(client: RawClient) -> None:
    assert client.ask(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1)).responses == []


def test_one_request_may_carry_good_and_bad_partitions(client: RawClient, topic: str) -> None:
    request = produce_request(topic, batch(b"good"))
    request.topic_data += [
        TopicProduceData("nothing", partition_data=[PartitionProduceData(0, batch())]),
        TopicProduceData(
            topic, partition_data=[PartitionProduceData(0, b"bad"), PartitionProduceData(0, batch(b"good"))]
        ),
    ]
    answer = client.ask(ApiKey.PRODUCE, 9, request)
    outcomes = [(p.error_code, p.base_offset) for t in answer.responses for p in t.partition_responses]
    assert outcomes == [(0, 0), (3, -1), (87, -1), (0, 1)]


def test_pipelined_requests_are_answered_in_order_although_they_complete_out_of_order(
    client: RawClient, topic: str
) -> None:
    sent = [client.send(ApiKey.FETCH, 12, fetch_request(topic, 0, max_wait_ms=200))]
    sent += [client.send(ApiKey.PRODUCE, 9, produce_request(topic, batch(), acks)) for acks in (-1, 1, -1, 1)]
    keys = [(ApiKey.FETCH, 12)] + [(ApiKey.PRODUCE, 9)] * 4
    assert [client.receive(*key)[0] for key in keys] == sent


# --------------------------------------------------------------------------------------------------- Fetch


@pytest.mark.parametrize("version", range(ADVERTISED[ApiKey.FETCH][0], ADVERTISED[ApiKey.FETCH][1] + 1))
def test_every_version_of_fetch_is_served(client: RawClient, version: int) -> None:
    produce(client, produce_request("shared", batch()))
    answer = client.ask(ApiKey.FETCH, version, fetch_request("shared", 0))
    (data,) = answer.responses[0].partitions
    assert (answer.error_code, answer.session_id, data.error_code) == (0, 0, 0)
    assert data.high_watermark > 0
    assert data.last_stable_offset == data.high_watermark
    assert wire.headers(data.records)[0].base_offset == 0


def test_a_fetch_at_the_end_waits_and_is_woken_by_the_high_watermark(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.ips[0]) as consumer, RawClient(cluster.ips[0]) as producer:
        consumer.send(ApiKey.FETCH, 12, fetch_request(topic, 0, max_wait_ms=8000))
        produce(producer, produce_request(topic, batch(b"news")))
        data = consumer.receive(ApiKey.FETCH, 12)[1].responses[0].partitions[0]
        assert values(data.records) == [b"news"]


def test_a_fetch_at_the_end_returns_nothing_when_its_time_is_up(client: RawClient, topic: str) -> None:
    data = fetch(client, fetch_request(topic, 0, max_wait_ms=50))
    assert (data.error_code, bytes(data.records)) == (0, b"")


def test_a_fetch_returns_at_least_one_batch_however_little_it_asks_for(client: RawClient, topic: str) -> None:
    produce(client, produce_request(topic, batch(b"x" * 1000)))
    data = fetch(client, fetch_request(topic, 0, max_bytes=1, partition_max_bytes=1))
    assert len(values(data.records)) == 1


def test_a_fetch_of_several_partitions_keeps_within_its_limit(cluster: Cluster, client: RawClient) -> None:
    cluster.create_topic("three", [[0, 1, 2]] * 3)
    request = fetch_request("three", 0, max_bytes=1500)
    for partition in range(3):
        produce(client, produce_request("three", batch(b"x" * 1000), partition=partition))
        request.topics += fetch_request("three", 0, partition).topics
    answer = client.ask(ApiKey.FETCH, 12, request)
    assert [len(data.records) > 0 for t in answer.responses for data in t.partitions] == [True, False, False]


def test_a_fetch_outside_the_log_is_out_of_range(client: RawClient, topic: str) -> None:
    for offset in (1, -1):
        assert fetch(client, fetch_request(topic, offset)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_fetch_from_a_follower_is_refused_with_a_hint_at_the_leader(client: RawClient) -> None:
    data = fetch(client, fetch_request("led-by-1", 0, max_wait_ms=5000))
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.current_leader.leader_id == 1


def test_a_fetch_with_another_leader_epoch_is_fenced(client: RawClient, topic: str) -> None:
    produce(client, produce_request(topic, batch()))
    assert fetch(client, fetch_request(topic, 0, current_leader_epoch=0)).error_code == ErrorCode.NONE
    newer = fetch(client, fetch_request(topic, 0, current_leader_epoch=5))
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_fetch_session_is_not_known(client: RawClient) -> None:
    answer = client.ask(ApiKey.FETCH, 12, fetch_request("shared", 0, session_id=5, session_epoch=1))
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_empty_fetch_is_answered_at_once(client: RawClient) -> None:
    assert client.ask(ApiKey.FETCH, 12, FetchRequest(max_wait_ms=60_000, min_bytes=1)).responses == []


# ------------------------------------------------------------------------------------------------- offsets


def list_offset(client: RawClient, topic: str, timestamp: int, version: int = 7) -> tuple[int, int, int]:
    part = ListOffsetsPartition(0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [part])])
    found = client.ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp


def test_offsets_are_found_by_place_and_by_time(client: RawClient, topic: str) -> None:
    for timestamp in (1000, 3000, 2000):
        produce(client, produce_request(topic, batch(b"a", b"b", timestamp_ms=timestamp)))
    assert list_offset(client, topic, -2) == (0, 0, -1)
    assert list_offset(client, topic, -1) == (0, 6, -1)
    assert list_offset(client, topic, -3) == (0, 3, 3000)
    assert list_offset(client, topic, 1000) == (0, 0, 1000)
    assert list_offset(client, topic, 1001) == (0, 2, 3000)
    assert list_offset(client, topic, 3001) == (0, -1, -1)
    assert list_offset(client, "nothing", -1)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(client, "led-by-1", -1)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_end_of_a_leader_epoch_is_told(client: RawClient, topic: str) -> None:
    produce(client, produce_request(topic, batch(b"a", b"b")))

    def ask(epoch: int, current: int = -1) -> tuple[int, int, int]:
        part = OffsetForLeaderPartition(0, current, epoch)
        request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [part])])
        end = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, request).topics[0].partitions[0]
        return end.error_code, end.leader_epoch, end.end_offset

    assert ask(0) == (0, 0, 2)
    assert ask(1) == (0, -1, -1)
    assert ask(-7) == (0, -1, -1)
    assert ask(0, current=9)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


# ------------------------------------------------------------------------------------- metadata and topics


@pytest.mark.parametrize("version", range(SUPPORTED[ApiKey.METADATA][0], SUPPORTED[ApiKey.METADATA][1] + 1))
def test_every_version_of_metadata_tells_brokers_leaders_and_unknown_topics(
    cluster: Cluster, client: RawClient, version: int
) -> None:
    asked = [MetadataRequestTopic(name="led-by-1"), MetadataRequestTopic(name="nothing")]
    answer = client.ask(ApiKey.METADATA, version, MetadataRequest(asked, allow_auto_topic_creation=True))
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(i, cluster.ips[i], 9092) for i in cluster.ids]
    known, unknown = answer.topics
    assert (known.error_code, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [(p.leader_id, p.replica_nodes, p.isr_nodes) for p in known.partitions] == [(1, [1, 2, 0], [1, 2, 0])]


def test_an_unknown_topic_id_is_answered_in_versions_that_cannot_say_null(client: RawClient) -> None:
    for version, name in ((10, ""), (11, ""), (12, None)):
        answer = client.ask(ApiKey.METADATA, version, MetadataRequest([MetadataRequestTopic(b"x" * 16, None)]))
        assert (answer.topics[0].error_code, answer.topics[0].name) == (ErrorCode.UNKNOWN_TOPIC_ID, name)


def test_metadata_of_everything_names_every_topic(client: RawClient) -> None:
    for version, request in ((0, MetadataRequest([])), (1, MetadataRequest(None)), (12, MetadataRequest(None))):
        answer = client.ask(ApiKey.METADATA, version, request)
        assert {"shared", "led-by-1"} <= {topic.name for topic in answer.topics}
    assert client.ask(ApiKey.METADATA, 1, MetadataRequest([])).topics == []


def _when_known(ask: Callable[[], Any]) -> Any:
    answer = ask()
    return answer if answer.topics[0].error_code == 0 else None


def test_a_topic_is_found_by_its_id_and_an_unknown_id_is_refused(cluster: Cluster, client: RawClient) -> None:
    name = f"id-{uuid.uuid4().hex[:8]}"
    created = client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)])).topics[0]
    asked = [MetadataRequestTopic(created.topic_id, None), MetadataRequestTopic(b"x" * 16, None)]
    for broker in cluster.ids:
        with RawClient(cluster.ips[broker]) as other:
            ask = partial(other.ask, ApiKey.METADATA, 12, MetadataRequest(asked))
            answer = wait_until(partial(_when_known, ask), "the topic")
            known, unknown = answer.topics
            assert (known.error_code, known.name, known.topic_id) == (0, name, created.topic_id)
            assert (unknown.error_code, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, b"x" * 16)


def create(client: RawClient, topic: CreatableTopic, **fields: Any) -> tuple[int, str | None]:
    answer = client.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic], **fields))
    return answer.topics[0].error_code, answer.topics[0].error_message


def test_topics_that_cannot_be_are_refused_with_a_sentence(client: RawClient) -> None:
    def assigned(*indexes: int) -> list[CreatableReplicaAssignment]:
        return [CreatableReplicaAssignment(index, [0]) for index in indexes]

    for topic, error in (
        (CreatableTopic("shared", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("no/slash", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("../up", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("many", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("none", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("gap", -1, -1, assigned(0, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("twice", -1, -1, assigned(0, 0)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("set", 1, 1, configs=[CreatableTopicConfig("a", "b")]), ErrorCode.INVALID_CONFIG),
    ):
        code, sentence = create(client, topic)
        assert (topic.name, code) == (topic.name, error)
        assert sentence


@pytest.mark.parametrize("version", [4, 5])
def test_a_sentence_that_is_too_long_for_the_wire_is_cut_and_the_controller_lives(
    cluster: Cluster, client: RawClient, version: int
) -> None:
    settings = [CreatableTopicConfig(letter * 32_760, "value") for letter in "abc"]
    request = CreateTopicsRequest([CreatableTopic("set", 1, 1, configs=settings)])
    (answer,) = client.ask(ApiKey.CREATE_TOPICS, version, request).topics
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert len(answer.error_message) == MAX_STRING_BYTES
    assert [process.poll() for process in cluster.processes.values()] == [None] * 4


def test_defaults_of_a_new_topic_are_the_clusters(cluster: Cluster, client: RawClient) -> None:
    name = f"defaults-{uuid.uuid4().hex[:8]}"
    assert create(client, CreatableTopic(name, -1, -1)) == (0, None)
    wait_until(lambda: len(cluster.partition(name).get("replicas", [])) == 3, "the topic")


def test_a_topic_is_only_created_when_validate_only_is_not_asked_for(cluster: Cluster, client: RawClient) -> None:
    assert create(client, CreatableTopic("wish", 1, 1), validate_only=True)[0] == ErrorCode.INVALID_REQUEST
    assert cluster.partition("wish") == {}


# ------------------------------------------------------------------------------------------------- others


def test_producer_ids_are_never_handed_out_twice(cluster: Cluster) -> None:
    ids = []
    for broker in cluster.ids:
        with RawClient(cluster.ips[broker]) as client:
            for _ in range(2):
                answer = client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest())
                assert (answer.error_code, answer.producer_epoch) == (0, 0)
                ids.append(answer.producer_id)
    assert len(set(ids)) == 6


def test_any_broker_says_which_one_coordinates_a_group(cluster: Cluster, client: RawClient) -> None:
    wait_until(lambda: not client.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("group")).error_code, "topic")
    old = client.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("group"))
    assert (old.error_code, old.node_id, old.host, old.port) == (0, 0, cluster.ips[0], 9092)
    new = client.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["group"]))
    assert [(c.key, c.error_code, c.node_id, c.port) for c in new.coordinators] == [("group", 0, 0, 9092)]


def test_what_nobody_coordinates_has_a_port_that_is_not_0(client: RawClient) -> None:
    old = client.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("id", 2))
    assert (old.error_code, old.node_id, old.host, old.port) == (15, -1, "", -1)
    new = client.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=2, coordinator_keys=["id"]))
    assert [(c.key, c.error_code, c.node_id, c.port) for c in new.coordinators] == [("id", 15, -1, -1)]


def test_the_controller_does_not_listen_to_clients(cluster: Cluster) -> None:
    with RawClient(cluster.ips[100], 9093) as client:
        assert client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        answer = client.ask(ApiKey.BROKER_HEARTBEAT, 0, BrokerHeartbeatRequest(0, 1))
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_noise_on_many_connections_does_not_disturb_a_client(cluster: Cluster, client: RawClient, topic: str) -> None:
    noise = random.Random(7)
    frames = [
        noise.randbytes(noise.randrange(1, 400)),
        struct.pack(">i", 2_147_483_647) + b"x",
        struct.pack(">i", -1),
        struct.pack(">i", 100) + b"half",
        *(struct.pack(">i", 40) + struct.pack(">hhi", key, version, 1) + noise.randbytes(32)
          for key in (0, 1, 2, 3, 4, 6, 10, 18, 19, 22, 23, 56, 62, 63, 67, 99) for version in (0, 4, 9, 12)),
    ]  # fmt: skip
    for port, ip in ((9092, cluster.ips[0]), (9093, cluster.ips[100])):
        for frame in frames:
            with RawClient(ip, port) as broken:
                broken.socket.sendall(frame)
    assert produce(client, produce_request(topic, batch(b"sound"))).error_code == 0
    assert cluster.status(0)["registered"]
    assert [process.poll() for process in cluster.processes.values()] == [None] * 4


def test_bits_flipped_in_sound_requests_never_take_the_broker_down(cluster: Cluster, topic: str) -> None:
    noise = random.Random(11)
    sound = [
        (ApiKey.PRODUCE, 9, produce_request(topic, batch(b"x" * 20))),
        (ApiKey.FETCH, 12, fetch_request(topic, 0)),
        (ApiKey.FETCH, 4, FetchRequest(topics=[FetchTopic(topic, partitions=[FetchPartition(0, fetch_offset=0)])])),
        (ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name=topic)])),
        (ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(0)])])),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 3,
         OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, -1, 0)])])),
        (ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic(topic, 1, 1)])),
    ]  # fmt: skip
    from harness.wire.frames import RequestHeader, encode_request

    for round_number in range(40):
        for key, version, body in sound:
            frame = bytearray(b"".join(encode_request(RequestHeader(key, version, round_number, "flip"), body)))
            for _ in range(noise.randrange(1, 4)):
                frame[noise.randrange(8, len(frame))] ^= 1 << noise.randrange(8)
            with RawClient(cluster.ips[0]) as client:
                client.socket.sendall(struct.pack(">i", len(frame)) + frame)
    assert cluster.status(0)["registered"]
    with RawClient(cluster.ips[0]) as client:
        assert produce(client, produce_request(topic, batch(b"sound"))).error_code == 0
