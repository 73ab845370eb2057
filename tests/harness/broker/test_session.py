from __future__ import annotations

import struct
from typing import cast

from harness.broker.codes import FrontError
from harness.broker.ports import Connection
from harness.broker.session import MAX_UNANSWERED, Request, Session, answer_api_versions, only_from
from harness.simulation.stack.network import SimulatedNetwork, Stream
from harness.simulation.stack.world import World
from harness.wire.frames import ADVERTISED, RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

ADDRESS = ("10.0.0.10", 9092)


class Front:
    """A session whose handler keeps the requests, and what its peer receives."""

    def __init__(self, peer: str = "clients") -> None:
        self.kept: list[Request] = []
        self.frames: list[bytes] = []
        self.is_hung_up = False
        self.world = World()
        SimulatedNetwork(self.world, "0").listen(ADDRESS, self.accept)
        SimulatedNetwork(self.world, peer).connect(ADDRESS, "0", self.connected, lambda: None)
        self.world.sleep(0)

    def accept(self, connection: Connection) -> Session:
        handlers = {
            ApiKey.METADATA: self.kept.append,
            ApiKey.API_VERSIONS: answer_api_versions,
            ApiKey.UPDATE_METADATA: only_from("controller".__eq__, self.kept.append),
        }
        self.connection = cast("Stream", connection)
        self.session = Session(connection, 0, handlers)
        return self.session

    def connected(self, connection: Connection) -> Front:
        self.peer = connection
        return self

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_lost(self) -> None:
        self.is_hung_up = True

    def send(self, frame: bytes) -> None:
        self.session.on_frame(memoryview(bytearray(frame)))
        self.world.sleep(0)

    def ask(self, correlation_id: int) -> None:
        header = RequestHeader(ApiKey.METADATA, 5, correlation_id, "test")
        self.send(b"".join(encode_request(header, MetadataRequest())))

    def sent(self) -> list[int]:
        self.world.sleep(0)
        return [decode_response(ApiKey.METADATA, 5, frame)[0] for frame in self.frames]


def test_answers_leave_in_the_order_of_the_requests() -> None:
    front = Front()
    for number in range(3):
        front.ask(number)
    front.kept[2].answer(MetadataResponse())
    front.kept[1].answer(MetadataResponse())
    assert front.sent() == []
    front.kept[0].answer(MetadataResponse())
    assert front.sent() == [0, 1, 2]


def test_a_request_that_wants_no_answer_does_not_block_those_behind_it() -> None:
    front = Front()
    front.ask(0)
    front.ask(1)
    front.kept[1].answer(MetadataResponse())
    front.kept[0].answer(None)
    assert front.sent() == [1]


def test_a_connection_with_too_many_unanswered_requests_is_not_read_until_half_are_answered() -> None:
    front = Front()
    for number in range(MAX_UNANSWERED):
        assert not front.connection.is_paused
        front.ask(number)
    assert front.connection.is_paused
    for request in front.kept[: MAX_UNANSWERED // 2]:
        assert front.connection.is_paused
        request.answer(MetadataResponse())
    front.kept[MAX_UNANSWERED // 2].answer(MetadataResponse())
    assert not front.connection.is_paused


def test_a_held_connection_is_not_read_until_every_hold_is_released() -> None:
    front = Front()
    front.session.hold()
    front.session.hold()
    front.session.release()
    assert front.connection.is_paused
    front.session.release()
    assert not front.connection.is_paused


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_error_35() -> None:
    front = Front()
    front.send(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"whatever that version says")
    correlation_id, body = decode_response(ApiKey.API_VERSIONS, 0, front.frames[0])
    assert isinstance(body, ApiVersionsResponse)
    assert (correlation_id, body.error_code) == (7, FrontError.UNSUPPORTED_VERSION)
    assert [key.api_key for key in body.api_keys] == list(ADVERTISED)


def test_an_unknown_version_of_anything_else_costs_the_connection() -> None:
    front = Front()
    front.send(struct.pack(">hhih", ApiKey.METADATA, 99, 7, -1))
    assert front.is_hung_up


def test_an_unknown_api_costs_the_connection() -> None:
    front = Front()
    front.send(struct.pack(">hhih", 71, 0, 7, -1))
    assert front.is_hung_up


def test_a_known_api_that_is_not_served_here_costs_the_connection() -> None:
    front = Front()
    header = RequestHeader(ApiKey.FIND_COORDINATOR, 0, 0, None)
    from harness.wire.messages import FindCoordinatorRequest

    front.send(b"".join(encode_request(header, FindCoordinatorRequest(key="group"))))
    assert front.is_hung_up


def test_a_torn_request_costs_the_connection() -> None:
    front = Front()
    frame = b"".join(encode_request(RequestHeader(ApiKey.API_VERSIONS, 3, 0, "test"), ApiVersionsRequest("a", "b")))
    front.send(frame[:-2])
    assert front.is_hung_up


def test_a_client_that_pretends_to_be_the_controller_is_disconnected() -> None:
    from harness.wire.messages import UpdateMetadataRequest

    frame = b"".join(encode_request(RequestHeader(ApiKey.UPDATE_METADATA, 6, 0, None), UpdateMetadataRequest(100, 9)))
    client, controller = Front("clients"), Front("controller")
    client.send(frame)
    controller.send(frame)
    assert (client.is_hung_up, client.kept) == (True, [])
    assert (controller.is_hung_up, len(controller.kept)) == (False, 1)
