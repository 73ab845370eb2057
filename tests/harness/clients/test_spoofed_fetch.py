"""A fetch that claims to be a follower's is asked in a version that the broker speaks."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from harness.clients.spoofed_fetch import spoof_fetch
from harness.model import NodeId, TopicPartition
from harness.orders import SpoofedFetchOrder
from harness.wire.frames import decode_request, encode_response
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from harness.wire.messages.fetch import FetchRequest, FetchResponse

ORDER = SpoofedFetchOrder(NodeId(0), NodeId(1), (TopicPartition("ledger", 0),), 2)
LENGTH = struct.Struct(">i")


class OldBroker:
    """Speaks Fetch up to a version, and hangs up on whoever asks in a newer one."""

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self.asked: list[tuple[int, FetchRequest]] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listening.getsockname()
        return host, port

    def close(self) -> None:
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection, connection.makefile("rb") as stream:
            for answer in (ApiVersionsResponse(api_keys=[ApiVersion(ApiKey.FETCH, 0, self.newest)]), FetchResponse()):
                (size,) = LENGTH.unpack(stream.read(LENGTH.size))
                header, body = decode_request(stream.read(size))
                if isinstance(body, FetchRequest):
                    if header.api_version > self.newest:
                        return
                    self.asked.append((header.api_version, body))
                frame = b"".join(encode_response(answer.api_key, header.api_version, header.correlation_id, answer))
                connection.sendall(LENGTH.pack(len(frame)) + frame)


@pytest.fixture(params=[3, 11, 17])
def broker(request: pytest.FixtureRequest) -> Iterator[OldBroker]:
    made = OldBroker(request.param)
    yield made
    made.close()


def test_it_is_asked_in_the_newest_version_that_the_broker_knows_and_that_names_the_replica(broker: OldBroker) -> None:
    assert spoof_fetch(broker.address, ORDER) is None
    ((version, request),) = broker.asked
    assert (version, request.replica_id) == (min(broker.newest, 12), 1)


def test_a_broker_that_is_not_there_is_said_not_to_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    assert "node 0 does not answer FETCH" in str(spoof_fetch(address, ORDER))
