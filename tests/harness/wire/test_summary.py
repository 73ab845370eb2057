from __future__ import annotations

from random import Random

import pytest

from harness.history.schema import WIRE
from harness.wire.batches import build, headers, seal
from harness.wire.declaration import Message
from harness.wire.frames import ApiKey, RequestHeader, encode_request, encode_response
from harness.wire.messages.consumers import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from harness.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from harness.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from harness.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from harness.wire.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from harness.wire.parts import Part
from harness.wire.summary import Summaries, merged
from tests.harness.wire.every_message import EVERY
from tests.harness.wire.test_hostile_bytes import frame_of

COLUMNS = {column.name for column in WIRE.columns}
SENT = build([b"a", b"b"], producer_id=9, producer_epoch=1, base_sequence=40)
TOPIC_ID = bytes(range(16))


def exchanged(asked: Message, answered: Message | None, version: int, summaries: Summaries | None = None) -> list[Part]:
    """The rows of a request and its response, by what a tap makes of their frames."""
    known = summaries or Summaries()
    request = known.request(b"".join(encode_request(RequestHeader(asked.api_key, version, 7, "me"), asked)))
    assert (request.problem, request.client_id, request.correlation_id) == (None, "me", 7)
    if answered is None:
        return merged(request.parts, [])
    frame = b"".join(encode_response(asked.api_key, version, 7, answered))
    response = known.response(asked.api_key.name, version, frame)
    assert response.problem is None
    return merged(request.parts, response.parts)


def produce(acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks, topic_data=[TopicProduceData("ledger", partition_data=[PartitionProduceData(3, SENT)])]
    )


def test_a_produced_batch_lacks_what_its_answer_says_of_it() -> None:
    answer = ProduceResponse(
        [TopicProduceResponse("ledger", partition_responses=[PartitionProduceResponse(3, 0, 100)])]
    )
    (row,) = exchanged(produce(), answer, 9)
    assert (row["topic"], row["partition"], row["acks"], row["error"]) == ("ledger", 3, -1, 0)
    assert (row["base_offset"], row["end_offset"], row["records"]) == (100, 102, 2)
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (9, 1, 40)
    assert row["batch_crc"] == headers(SENT)[0].crc


def test_a_refused_batch_is_given_an_offset() -> None:
    answer = ProduceResponse([TopicProduceResponse("ledger", partition_responses=[PartitionProduceResponse(3, 6, -1)])])
    (row,) = exchanged(produce(), answer, 9)
    assert row["error"] == 6
    assert not {"base_offset", "end_offset"} & row.keys()


def test_a_response_is_awaited_that_acks_0_does_not_have() -> None:
    frame = b"".join(encode_request(RequestHeader(ApiKey.PRODUCE, 9, 7, None), produce(acks=0)))
    assert not Summaries().request(frame).is_answered


def fetch(version: int) -> FetchRequest:
    topic = FetchTopic("ledger", partitions=[FetchPartition(0, 4, 7)])
    if version >= 13:
        topic = FetchTopic(topic_id=TOPIC_ID, partitions=topic.partitions)
    return FetchRequest(topics=[topic])


def fetched(version: int, records: bytes) -> FetchResponse:
    data = [PartitionData(0, 0, 12, 11, 0, records=records)]
    topic = FetchableTopicResponse("ledger", partitions=data)
    if version >= 13:
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=data)
    return FetchResponse(responses=[topic])


def test_a_batch_of_a_fetch_is_left_out_or_one_that_is_torn_is_not() -> None:
    records = bytes(build([b"a"], base_offset=7) + build([b"b"] * 3, base_offset=8) + build([b"c"], base_offset=11))
    rows = exchanged(fetch(12), fetched(12, records[:-1]), 12)
    assert [(row["base_offset"], row["end_offset"]) for row in rows] == [(7, 8), (8, 11)]
    assert {(row["offset"], row["current_leader_epoch"], row["high_watermark"]) for row in rows} == {(7, 4, 12)}


def test_an_empty_fetch_leaves_no_row() -> None:
    (row,) = exchanged(fetch(12), fetched(12, b""), 12)
    assert (row["offset"], row["last_stable_offset"]) == (7, 11)
    assert "base_offset" not in row


def test_a_topic_that_is_named_by_its_id_has_no_name_although_metadata_told_it() -> None:
    summaries, records = Summaries(), bytes(build([b"a"], base_offset=7))
    assert {row.get("topic") for row in exchanged(fetch(13), fetched(13, records), 13, summaries)} == {None}
    metadata = MetadataResponse(topics=[MetadataResponseTopic(0, "ledger", TOPIC_ID)])
    summaries.response("METADATA", 12, b"".join(encode_response(ApiKey.METADATA, 12, 1, metadata)))
    (row,) = exchanged(fetch(13), fetched(13, records), 13, summaries)
    assert (row["topic"], row["base_offset"]) == ("ledger", 7)


def test_a_committed_offset_is_not_that_of_its_group() -> None:
    def asked(group: str) -> OffsetFetchRequestGroup:
        return OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopic("ledger", [0])])

    def told(group: str, offset: int) -> OffsetFetchResponseGroup:
        partition = OffsetFetchResponsePartition(0, offset)
        return OffsetFetchResponseGroup(group, [OffsetFetchResponseTopic("ledger", [partition])])

    request = OffsetFetchRequest(groups=[asked("one"), asked("two")])
    rows = exchanged(request, OffsetFetchResponse(groups=[told("one", 5), told("two", 8)]), 8)
    assert [(row["group"], row["offset"]) for row in rows] == [("one", 5), ("two", 8)]


def test_the_end_of_a_transaction_is_that_of_the_next_one() -> None:
    request = EndTxnRequest("transfers", 9, 1, committed=True)
    (row,) = exchanged(request, EndTxnResponse(producer_id=9, producer_epoch=2), 5)
    assert (row["producer_id"], row["producer_epoch"], row["commits"], row["error"]) == (9, 1, True, 0)


def test_markers_for_one_partition_are_mixed_up() -> None:
    def marker(producer: int, *, commits: bool) -> WritableTxnMarker:
        return WritableTxnMarker(producer, 0, commits, [WritableTxnMarkerTopic("ledger", [0])], 3)

    def result(producer: int, error: int) -> WritableTxnMarkerResult:
        partition = WritableTxnMarkerPartitionResult(0, error)
        return WritableTxnMarkerResult(producer, [WritableTxnMarkerTopicResult("ledger", [partition])])

    request = WriteTxnMarkersRequest([marker(1, commits=True), marker(2, commits=False)])
    rows = exchanged(request, WriteTxnMarkersResponse([result(1, 0), result(2, 47)]), 1)
    assert [(row["producer_id"], row["commits"], row["error"]) for row in rows] == [(1, True, 0), (2, False, 47)]


@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_a_message_has_no_summary_or_one_with_other_names_than_the_columns(cls: type[Message], version: int) -> None:
    frame = frame_of(cls, version)
    if cls.direction == "request":
        request = Summaries().request(frame)
        assert (request.api, request.version, request.correlation_id) == (cls.api_key.name, version, 7)
        parts, problem = request.parts, request.problem
    else:
        parts, problem = Summaries().response(cls.api_key.name, version, frame)
    assert problem is None
    assert parts
    assert {name for part in parts for name in part} <= COLUMNS


@pytest.mark.parametrize("seed", range(50))
def test_hostile_bytes_end_a_tap(seed: int) -> None:
    random = Random(seed)
    noise = random.randbytes(random.randrange(200))
    records = bytearray(SENT)
    records[random.randrange(len(records))] ^= 1 << random.randrange(8)
    for frame in (noise, noise[:1], b""):
        assert Summaries().request(frame).parts
        for api in ApiKey:
            assert Summaries().response(api.name, random.randrange(20), noise).parts
    assert exchanged(
        ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])]), None, 9
    )


def test_an_unknown_api_or_version_is_no_row() -> None:
    unknown = Summaries().request(b"\x03\xe8\x00\x02\x00\x00\x00\x09\xff\xff")
    assert (unknown.api, unknown.version, unknown.correlation_id) == ("1000", 2, 9)
    assert unknown.problem == "there is no API with key 1000"
    newer = Summaries().request(b"\x00\x00\x03\xe7\x00\x00\x00\x09\x00\x02me")
    assert (newer.api, newer.version, newer.client_id) == ("PRODUCE", 999, "me")
    assert newer.problem == "PRODUCE v999 is not supported"


def test_the_seal_of_a_batch_is_not_that_of_the_log() -> None:
    """A leader patches what the checksum leaves out, so that a copy is known again."""
    copy = bytearray(SENT)
    copy[:8] = (77).to_bytes(8, "big")
    assert headers(copy)[0].crc == headers(SENT)[0].crc
    seal(copy)
    assert headers(copy)[0].crc == headers(SENT)[0].crc
