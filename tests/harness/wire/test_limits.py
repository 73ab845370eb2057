"""What one request may make a node do before anybody has looked at it."""

from __future__ import annotations

import pytest

from harness.wire import primitives
from harness.wire.declaration import MAX_ELEMENTS, MESSAGES, Message
from harness.wire.errors import WireError
from harness.wire.frames import ApiKey, RequestHeader, decode_request, decode_response, encode_request, encode_response
from harness.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from harness.wire.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest


def decoded(key: ApiKey, version: int, body: Message) -> None:
    decode_request(b"".join(encode_request(RequestHeader(key, version, 0, "me"), body)))


@pytest.mark.parametrize("version", [5, 9])
def test_the_elements_of_one_array_are_counted(version: int) -> None:
    decoded(ApiKey.METADATA, version, MetadataRequest([MetadataRequestTopic(name="t")] * MAX_ELEMENTS))
    with pytest.raises(WireError, match=f"more than {MAX_ELEMENTS} elements"):
        decoded(ApiKey.METADATA, version, MetadataRequest([MetadataRequestTopic(name="t")] * (MAX_ELEMENTS + 1)))


def test_the_elements_of_nested_arrays_are_counted_together() -> None:
    def asking(topics: int, partitions: int) -> ListOffsetsRequest:
        return ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0)] * partitions)] * topics)

    decoded(ApiKey.LIST_OFFSETS, 7, asking(100, 99))
    with pytest.raises(WireError, match="more than"):
        decoded(ApiKey.LIST_OFFSETS, 7, asking(100, 100))


def test_arrays_of_numbers_are_counted_too() -> None:
    assignment = CreatableReplicaAssignment(0, list(range(MAX_ELEMENTS)))
    with pytest.raises(WireError, match="more than"):
        decoded(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("t", -1, -1, [assignment])]))


def test_what_a_client_asked_for_is_not_counted() -> None:
    body = MetadataResponse(topics=[MetadataResponseTopic(0, "t")] * (MAX_ELEMENTS + 1))
    frame = b"".join(encode_response(ApiKey.METADATA, 5, 0, body))
    assert decode_response(ApiKey.METADATA, 5, frame)[1] == body


def test_every_request_declares_how_many_elements_it_may_have() -> None:
    assert {cls.max_elements is not None for (kind, _), cls in MESSAGES.items() if kind == "request"} == {True}
    assert {cls.max_elements for (kind, _), cls in MESSAGES.items() if kind == "response"} == {None}


def test_unknown_tagged_fields_are_counted() -> None:
    field = b"\x63\x00"
    most = bytes([primitives.MAX_TAGGED_FIELDS])
    assert primitives.skip_tagged_fields(memoryview(field * 64), 0, most[0]) == 128
    with pytest.raises(WireError, match="65 tagged fields"):
        primitives.skip_tagged_fields(memoryview(field * 65), 0, most[0] + 1)
