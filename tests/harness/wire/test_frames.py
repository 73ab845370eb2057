from __future__ import annotations

import subprocess
import sys

import pytest

from harness.wire.frames import (
    ADVERTISED,
    SUPPORTED,
    ApiKey,
    Message,
    RequestHeader,
    UnsupportedVersion,
    WireError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from harness.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from harness.wire.messages.control import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from harness.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from harness.wire.messages.metadata import MetadataRequest
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def response(version: int, body: Message) -> str:
    return b"".join(encode_response(body.api_key, version, 7, body)).hex(" ")


def request(version: int, body: Message) -> bytes:
    return b"".join(encode_request(RequestHeader(body.api_key, version, 7, "c"), body))


def spaced(*parts: str) -> str:
    return bytes.fromhex("".join(parts)).hex(" ")


# ------------------------------------------------------------------------------------------------ golden bytes


def test_an_unsupported_api_versions_request_is_answered_in_another_format_than_v0() -> None:
    body = ApiVersionsResponse(35, [ApiVersion(18, 0, 4)], throttle_time_ms=9)
    assert response(0, body) == spaced("00000007", "0023", "00000001", "0012 0000 0004")


def test_an_api_versions_response_has_a_flexible_header() -> None:
    body = ApiVersionsResponse(0, [ApiVersion(18, 0, 4)])
    assert response(3, body) == spaced("00000007", "0000", "02", "0012 0000 0004 00", "00000000", "00")


def test_a_flexible_response_lacks_the_flexible_header() -> None:
    body = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, records=b"\xaa\xbb")])])
    assert response(12, body) == spaced(
        "00000007 00", "00000000", "0000", "00000000",
        "02", "02 74", "02", "00000000 0000", "0000000000000000", "ffffffffffffffff", "ffffffffffffffff",
        "00", "ffffffff", "03 aabb", "00", "00", "00",
    )  # fmt: skip


def test_leader_and_isr_v4_differs_from_kafkas_definition() -> None:
    state = LeaderAndIsrPartitionState(1, 2, 3, 4, [3], 5, [3, 6], [7], [8], is_new=True)
    body = LeaderAndIsrRequest(100, 2, 9, [LeaderAndIsrTopicState("t", [state])], [LeaderAndIsrLiveLeader(3, "h", 80)])
    assert request(4, body).hex(" ") == spaced(
        "0004 0004 00000007 0001 63 00",
        "00000064 00000002 0000000000000009",
        "02", "02 74",
        "02", "00000001 00000002 00000003 00000004", "02 00000003", "00000005", "03 00000003 00000006",
        "02 00000007", "02 00000008", "01", "00",
        "00",
        "02", "00000003 02 68 00000050 00",
        "00",
    )  # fmt: skip


def test_update_metadata_v6_differs_from_kafkas_definition() -> None:
    state = UpdateMetadataPartitionState(1, 2, 3, 4, [3], 5, [3, 6], [6])
    broker = UpdateMetadataBroker(3, [UpdateMetadataEndpoint(80, "h", "L", 0)], None)
    body = UpdateMetadataRequest(100, 2, 9, [UpdateMetadataTopicState("t", [state])], [broker])
    assert request(6, body).hex(" ") == spaced(
        "0006 0006 00000007 0001 63 00",
        "00000064 00000002 0000000000000009",
        "02", "02 74",
        "02", "00000001 00000002 00000003 00000004", "02 00000003", "00000005", "03 00000003 00000006",
        "02 00000006", "00",
        "00",
        "02", "00000003", "02", "00000050 02 68 02 4c 0000 00", "00", "00",
        "00",
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- headers


@pytest.mark.parametrize("client_id", [None, "", "prüfer"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_client_id_is_lost_in_a_request_header(client_id: str | None, version: int) -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, version, -5, client_id)
    assert decode_request(b"".join(encode_request(header, ApiVersionsRequest()))) == (header, ApiVersionsRequest())


@pytest.mark.parametrize(("api_key", "version"), [(18, 5), (18, 32767), (0, 2), (1, 19), (0, -1)])
def test_an_unsupported_version_cannot_be_answered(api_key: int, version: int) -> None:
    frame = (
        api_key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + bytes.fromhex("00000009 0001 78 00 ff")
    )
    with pytest.raises(UnsupportedVersion) as raised:
        decode_request(frame)
    assert raised.value.header == RequestHeader(ApiKey(api_key), version, 9, "x")


@pytest.mark.parametrize(
    "frame", ["", "0012", "0012 0000 00000001", "0012 0000 00000001 fffe", "0012 0000 00000001 0005 61"]
)
def test_a_torn_request_header_is_taken(frame: str) -> None:
    with pytest.raises(WireError):
        decode_request(bytes.fromhex(frame))


def test_a_request_of_an_unknown_api_is_taken() -> None:
    with pytest.raises(WireError, match="key 999"):
        decode_request(bytes.fromhex("03e7 0000 00000001 ffff"))


# ------------------------------------------------------------------------------------------------ tagged fields


def test_unknown_tagged_fields_are_not_skipped() -> None:
    plain = request(3, ApiVersionsRequest("librdkafka", "2.16"))
    header, body = plain[:11], plain[12:-1]
    two = bytes.fromhex("02 2a 03 616263 ac02 00")
    assert decode_request(header + two + body + two)[1] == ApiVersionsRequest("librdkafka", "2.16")


def test_a_known_tagged_field_is_lost_among_unknown_ones() -> None:
    plain = request(12, FetchRequest())[:-1]
    frame = plain + bytes.fromhex("03 07 01 ff 00 03 026464 09 00")
    with pytest.raises(WireError):
        decode_request(frame)
    frame = plain + bytes.fromhex("03 07 01 ff 00 03 036464 09 00")
    assert decode_request(frame)[1] == FetchRequest(cluster_id="dd")


@pytest.mark.parametrize("tags", ["01 2a 03 6162", "01 2a ff", "02 2a 00", "ffffffff0f 2a 00", "01 00 05 036464", "80"])
def test_tagged_fields_beyond_the_end_are_taken(tags: str) -> None:
    with pytest.raises(WireError):
        decode_request(request(12, FetchRequest())[:-1] + bytes.fromhex(tags))


# ----------------------------------------------------------------------------------------------------- records


def test_records_are_copied_when_decoded() -> None:
    frame = bytearray(
        request(
            9, ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, b"batch")])])
        )
    )
    _, body = decode_request(memoryview(frame))
    assert isinstance(body, ProduceRequest)
    records = body.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


@pytest.mark.parametrize("version", [4, 12])
def test_records_are_copied_when_encoded(version: int) -> None:
    first, second = memoryview(bytearray(b"one")), memoryview(bytearray(b"two"))
    parts = [PartitionData(0, records=first), PartitionData(1, records=b""), PartitionData(2, records=second)]
    body = FetchResponse(responses=[FetchableTopicResponse("t", partitions=parts)])
    segments = encode_response(ApiKey.FETCH, version, 7, body)
    assert [segment for segment in segments if segment is first or segment is second] == [first, second]
    assert all(len(segment) for segment in segments)
    assert decode_response(ApiKey.FETCH, version, b"".join(segments)) == (7, body)


# ---------------------------------------------------------------------------------------------------- versions


def test_apis_between_nodes_or_of_real_brokers_alone_are_advertised() -> None:
    between = {4, 5, 6, 56, 62, 63, 67, 73}
    of_real_brokers = {34, 45, 55, 78, 79}
    assert set(ADVERTISED) == set(SUPPORTED) - between - of_real_brokers
    assert list(ADVERTISED) == sorted(ADVERTISED)


def test_an_advertised_version_has_no_codec() -> None:
    lacking = {
        (key, version)
        for key, (first, last) in ADVERTISED.items()
        for version in range(first, last + 1)
        if not SUPPORTED[key][0] <= version <= SUPPORTED[key][1]
    }
    assert lacking == {(ApiKey.PRODUCE, 0), (ApiKey.PRODUCE, 1), (ApiKey.PRODUCE, 2)}  # on purpose: KAFKA-18659


def test_old_replicas_cannot_ask_for_epochs_without_fencing() -> None:
    assert SUPPORTED[ApiKey.OFFSET_FOR_LEADER_EPOCH][0] == 0


def test_every_topic_is_not_what_null_asks_for() -> None:
    assert decode_request(request(1, MetadataRequest(topics=None)))[1] == MetadataRequest(topics=None)
    assert decode_request(request(1, MetadataRequest(topics=[])))[1] == MetadataRequest(topics=[])


def test_speaking_the_protocol_imports_what_it_does_not_need() -> None:
    probe = (
        "import sys, harness.wire.frames, harness.wire.batches\n"
        "print([name for name in ('asyncio', 'socket', 'logging', 'crc32c', 'uuid') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
