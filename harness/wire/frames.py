"""Encodes and decodes frames: a header and a body, without the length in front, which the connection adds.

Request headers are version 1, or version 2 where the body is flexible; response headers are version 0 or 1
(``RequestHeader.json``, ``ResponseHeader.json``). The response to ApiVersions has header version 0 whatever its
own version is, because the client reads it before it knows the broker's versions (KIP-511).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from harness.wire import messages as _  # noqa: F401 (importing the messages is what declares them)
from harness.wire import primitives
from harness.wire.declaration import MESSAGES, Buffer, Message
from harness.wire.decoding import Decoder, decoder
from harness.wire.encoding import Cuts, encoder
from harness.wire.errors import WireError
from harness.wire.keys import ApiKey

__all__ = [
    "ADVERTISED",
    "SUPPORTED",
    "ApiKey",
    "Buffer",
    "Message",
    "RequestHeader",
    "UnsupportedVersion",
    "WireError",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

_HEADER = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError)
_KEYS: Mapping[int, ApiKey] = {int(key): key for key in ApiKey}

SUPPORTED: Mapping[ApiKey, tuple[int, int]] = MappingProxyType(
    {key: MESSAGES["request", key].versions for key in sorted(ApiKey)}
)
"""The versions there are codecs for, first and last inclusive."""

_NOT_FOR_CLIENTS = {
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,  # for real brokers; the built-in cluster reassigns nothing
    ApiKey.ALTER_REPLICA_LOG_DIRS,  # for real brokers; the built-in ones place replicas by a rule
    ApiKey.DESCRIBE_QUORUM,  # for real brokers; the built-in cluster has one controller
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.ALTER_PARTITION,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.SHARE_ACKNOWLEDGE,  # for wire taps, and so is SHARE_FETCH; the built-in cluster has no share groups
    ApiKey.SHARE_FETCH,
}

ADVERTISED: Mapping[ApiKey, tuple[int, int]] = MappingProxyType(
    {key: versions for key, versions in SUPPORTED.items() if key not in _NOT_FOR_CLIENTS}
    | {
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),  # the later ones are for brokers (KIP-890)
        ApiKey.FETCH: (4, 12),  # 3 is for asking brokers of 0.10.2; the later ones, with topic ids, are for replicas
        ApiKey.DESCRIBE_LOG_DIRS: (1, SUPPORTED[ApiKey.DESCRIBE_LOG_DIRS][1]),  # KIP-896; 0: real brokers of 1.0
        ApiKey.METADATA: (0, 12),  # 13 is read where a client asks a real broker
        ApiKey.PRODUCE: (0, 12),  # see harness.wire.messages.produce: 0 by KAFKA-18659, and 13 is for wire taps
        ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, SUPPORTED[ApiKey.OFFSET_FOR_LEADER_EPOCH][1]),  # KIP-896; 0-1: replicas
    }
)
"""The versions in an ApiVersions response, by ascending key; both bounds inclusive."""


class RequestHeader(NamedTuple):
    """The header of a request. ``client_id`` may be None; the response has the same ``correlation_id``."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersion(WireError):
    """A known API in a version without a codec.

    Attributes:
        header: of the request. An unsupported *ApiVersions* request is answered in version 0 with error 35.
    """

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"{header.api_key.name} v{header.api_version} is not supported")
        self.header = header


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Decode one request. It ignores bytes after it, as Kafka does: librdkafka leaves some in a MetadataRequest.

    Returns:
        The header and the body. Records in it are memoryviews into ``frame``; everything else is copied.

    Raises:
        UnsupportedVersion: the API is known but not in that version.
        WireError: the API is unknown, or the bytes are malformed.
    """
    view = _bytes_view(frame)
    try:
        header, position = _request_header(view)
        first, last = SUPPORTED[header.api_key]
        if not first <= header.api_version <= last:
            raise UnsupportedVersion(header)
        flexible, decode = _request_plan(header.api_key, header.api_version)
        if flexible:
            position = primitives.skip_tagged_fields(view, position + 1, view[position])
        body, position = decode(view, position)
    except _MALFORMED as error:
        raise WireError(f"a request is malformed: {error}") from error
    if position > len(view):
        raise WireError(f"a request of {position} bytes in a frame of {len(view)}")
    return header, body


def encode_request(header: RequestHeader, body: Message) -> list[Buffer]:
    """Encode one request as segments to be sent in order; records are passed through uncopied."""
    cls, version = type(body), header.api_version
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    out = bytearray(_HEADER.pack(header.api_key, version, header.correlation_id, length))
    out += client_id
    if version >= cls.flexible:
        out.append(0)
    cuts: Cuts = []
    encoder(cls, version)(body, out, cuts)
    return _segments(out, cuts)


def encode_response(api_key: ApiKey, version: int, correlation_id: int, body: Message) -> list[Buffer]:
    """Encode one response as segments to be sent in order; records are passed through uncopied."""
    out = bytearray(_CORRELATION.pack(correlation_id))
    if _response_header_is_flexible(api_key, version):
        out.append(0)
    cuts: Cuts = []
    encoder(type(body), version)(body, out, cuts)
    return _segments(out, cuts)


def decode_response(api_key: ApiKey, version: int, frame: Buffer) -> tuple[int, Message]:
    """Decode the response to a request of ``version``.

    An unsupported ApiVersions request is answered in version 0: the caller, who knows what it sent, decodes again
    with ``version`` 0 on failure.

    Returns:
        The correlation id and the body. Records in it are memoryviews into ``frame``.

    Raises:
        WireError: the bytes are malformed.
    """
    view = _bytes_view(frame)
    try:
        (correlation_id,) = _CORRELATION.unpack_from(view)
        position = _CORRELATION.size
        if _response_header_is_flexible(api_key, version):
            position = primitives.skip_tagged_fields(view, position + 1, view[position])
        body, position = decoder(MESSAGES["response", api_key], version)(view, position)
    except _MALFORMED as error:
        raise WireError(f"a response to {api_key.name} v{version} is malformed: {error}") from error
    if position != len(view):
        raise WireError(f"a response of {position} bytes in a frame of {len(view)}")
    return correlation_id, body


def _request_header(view: memoryview) -> tuple[RequestHeader, int]:
    number, version, correlation_id, length = _HEADER.unpack_from(view)
    api_key = _KEYS.get(number)
    if api_key is None:
        raise WireError(f"there is no API with key {number}")
    position = _HEADER.size
    if length < 0:
        if length < -1:
            primitives.refuse_length("client_id", length)
        return RequestHeader(api_key, version, correlation_id, None), position
    stop = position + length
    if stop > len(view):
        primitives.refuse_length("client_id", length)
    return RequestHeader(api_key, version, correlation_id, str(view[position:stop], "utf-8")), stop


def _bytes_view(frame: Buffer) -> memoryview:
    view = memoryview(frame)
    assert view.format == "B", "a frame is a buffer of bytes"
    return view


@cache
def _request_plan(api_key: ApiKey, version: int) -> tuple[bool, Decoder]:
    cls = MESSAGES["request", api_key]
    return version >= cls.flexible, decoder(cls, version)


@cache
def _response_header_is_flexible(api_key: ApiKey, version: int) -> bool:
    return api_key != ApiKey.API_VERSIONS and version >= MESSAGES["response", api_key].flexible


def _segments(out: bytearray, cuts: Cuts) -> list[Buffer]:
    if not cuts:
        return [out]
    view, start = memoryview(out), 0
    segments: list[Buffer] = []
    for position, blob in cuts:
        if position > start:
            segments.append(view[start:position])
        segments.append(blob)
        start = position
    if start < len(out):
        segments.append(view[start:])
    return segments
