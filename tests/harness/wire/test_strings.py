"""Strings that are longer than Kafka's: what is for people is cut, everything else is refused, at both ends."""

from __future__ import annotations

import pytest

from harness.wire.declaration import MAX_STRING_BYTES, NO_UUID
from harness.wire.errors import WireError
from harness.wire.frames import (
    ApiKey,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from harness.wire.messages.topics import CreatableTopic, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from harness.wire.primitives import encode_uvarint

VERSIONS = [4, 7]  # lengths of two bytes, and compact ones


def refused(name: str, sentence: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name, NO_UUID, 40, sentence, configs=[])])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("x" * MAX_STRING_BYTES, "x" * MAX_STRING_BYTES),
        ("x" * (MAX_STRING_BYTES + 1), "x" * MAX_STRING_BYTES),
        ("x" + "\u00fc" * 20_000, "x" + "\u00fc" * 16_383),
        ("\u00fc" * 20_000, "\u00fc" * 16_383),
    ],
)
def test_an_error_message_that_is_too_long_is_cut_between_two_characters(
    version: int, sentence: str, kept: str
) -> None:
    sent = b"".join(encode_response(ApiKey.CREATE_TOPICS, version, 1, refused("t", sentence)))
    _, heard = decode_response(ApiKey.CREATE_TOPICS, version, sent)
    assert isinstance(heard, CreateTopicsResponse)
    assert heard.topics[0].error_message == kept


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_is_too_long_is_not_encoded(version: int) -> None:
    with pytest.raises(WireError, match="name"):
        encode_response(ApiKey.CREATE_TOPICS, version, 1, refused("x" * (MAX_STRING_BYTES + 1), ""))


def test_a_compact_length_beyond_the_longest_string_is_refused_as_by_kafka() -> None:
    longest = CreateTopicsRequest([CreatableTopic("x" * MAX_STRING_BYTES, 1, 1)])
    frame = b"".join(encode_request(RequestHeader(ApiKey.CREATE_TOPICS, 7, 1, None), longest))
    assert decode_request(frame)[1] == longest
    length = encode_uvarint(MAX_STRING_BYTES + 1)
    longer = frame.replace(length + b"x", encode_uvarint(MAX_STRING_BYTES + 2) + b"xx")
    assert len(longer) == len(frame) + 1
    with pytest.raises(WireError, match="a length of 32768 cannot be"):
        decode_request(longer)
