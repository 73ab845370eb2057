from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.wire.declaration import MESSAGES, Message, Struct, all_fields, wire_fields
from harness.wire.encoding import encoder
from harness.wire.frames import (
    SUPPORTED,
    ApiKey,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from harness.wire.messages.api_versions import ApiVersionsResponse
from harness.wire.messages.fetch import DivergingEpoch, FetchPartition, FetchRequest, FetchResponse, PartitionData
from harness.wire.messages.metadata import MetadataRequest
from harness.wire.messages.produce import ProduceRequest
from tests.harness.wire.every_message import SAMPLED

quick = settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def round_trip(body: Message, version: int) -> Message:
    if body.direction == "request":
        header = RequestHeader(body.api_key, version, 7, "client")
        told, decoded = decode_request(b"".join(encode_request(header, body)))
        assert told == header
        return decoded
    correlation_id, decoded = decode_response(
        body.api_key, version, b"".join(encode_response(body.api_key, version, 7, body))
    )
    assert correlation_id == 7
    return decoded


@pytest.mark.parametrize(("cls", "version"), SAMPLED)
@quick
@given(data=st.data())
def test_a_message_changes_on_its_way_over_the_wire(
    bodies: Any, cls: type[Message], version: int, data: st.DataObject
) -> None:
    body = data.draw(bodies(cls, version))
    assert round_trip(body, version) == body


@pytest.mark.parametrize("direction", ["request", "response"])
@pytest.mark.parametrize("api_key", list(ApiKey))
def test_an_api_lacks_a_direction_or_its_versions_differ(direction: Any, api_key: ApiKey) -> None:
    assert MESSAGES[direction, api_key].versions == SUPPORTED[api_key]


def test_a_field_that_a_version_lacks_is_encoded_or_does_not_decode_to_its_default() -> None:
    body = FetchRequest(session_id=9, session_epoch=3, rack_id="r", cluster_id="c")
    assert round_trip(body, 4) == FetchRequest()
    assert round_trip(body, 7) == FetchRequest(session_id=9, session_epoch=3)
    assert round_trip(body, 12) == body


def test_two_decoded_messages_share_a_list() -> None:
    frame = b"".join(encode_request(RequestHeader(ApiKey.FETCH, 4, 1, None), FetchRequest()))
    (_, first), (_, second) = decode_request(frame), decode_request(frame)
    assert isinstance(first, FetchRequest)
    first.forgotten_topics_data.append(None)  # type: ignore[arg-type]
    assert second == FetchRequest()


def test_a_tagged_struct_at_its_default_takes_up_bytes() -> None:
    plain = PartitionData(3, high_watermark=5)
    told = PartitionData(3, high_watermark=5, diverging_epoch=DivergingEpoch())
    assert body_bytes(fetched(plain), 12) == body_bytes(fetched(told), 12)


def fetched(partition: PartitionData) -> FetchResponse:
    from harness.wire.messages.fetch import FetchableTopicResponse

    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])


def body_bytes(body: Message, version: int) -> bytes:
    out = bytearray()
    encoder(type(body), version)(body, out, [])
    return bytes(out)


def test_null_is_encoded_where_the_version_does_not_allow_it() -> None:
    with pytest.raises(TypeError):
        body_bytes(MetadataRequest(topics=None), 0)


def test_a_message_shows_what_it_does_not_say() -> None:
    assert repr(FetchPartition(3, fetch_offset=7)) == "FetchPartition(partition=3, fetch_offset=7)"
    assert repr(FetchPartition()) == "FetchPartition()"


def test_messages_of_different_kinds_are_equal() -> None:
    assert ProduceRequest() != FetchRequest()
    assert ApiVersionsResponse() != ApiVersionsResponse(error_code=35)


def structs(cls: type[Struct]) -> list[type[Struct]]:
    inner = [wire.element for _, wire in all_fields(cls) if isinstance(wire.element, type)]
    return [cls, *(found for element in inner for found in structs(element))]


@pytest.mark.parametrize("cls", list(MESSAGES.values()))
def test_a_tagged_field_exists_before_the_message_is_flexible(cls: type[Message]) -> None:
    for part in structs(cls):
        for version in range(cls.versions[0], min(cls.flexible, cls.versions[1] + 1)):
            assert not [name for name, wire in wire_fields(part, version) if wire.tag is not None]
