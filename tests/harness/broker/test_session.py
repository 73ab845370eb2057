from __future__ import annotations

import struct
from typing import Any, cast

import pytest

from harness.broker.ports import Connection
from harness.broker.session import MAX_UNANSWERED, Handle, Request, Session, answer_api_versions, only_from
from harness.error_codes import ErrorCode
from harness.simulation.stack.network import SimulatedNetwork, Stream
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire.frames import ADVERTISED, RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from harness.wire.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from harness.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from harness.wire.messages.produce import ProduceRequest

ADDRESS = ("10.0.0.10", 9092)


class Front:
    """A session whose handler keeps the requests, and what its peer receives.

    ``serve`` handles Metadata, Produce and UpdateMetadata instead.
    """

    def __init__(self, peer: str = "clients", serve: Handle | None = None) -> None:
        self.kept: list[Request] = []
        self.reports: list[tuple[str, Exception]] = []
        self.serve = serve or self.kept.append
        self.frames: list[bytes] = []
        self.is_hung_up = False
        self.world = VirtualScheduler()
        SimulatedNetwork(self.world, "0").listen(ADDRESS, self.accept)
        SimulatedNetwork(self.world, peer).connect(ADDRESS, "0", self.connected, lambda: None)
        self.world.sleep(0)

    def accept(self, connection: Connection) -> Session:
        handlers = {
            ApiKey.METADATA: self.serve,
            ApiKey.PRODUCE: self.serve,
            ApiKey.API_VERSIONS: answer_api_versions,
            ApiKey.UPDATE_METADATA: only_from("controller".__eq__, self.serve),
        }
        self.connection = cast("Stream", connection)
        self.session = Session(connection, 0, handlers, self.report)
        return self.session

    def report(self, request: str, error: Exception) -> None:
        self.reports.append((request, error))

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

    def answer(self, number: int = 0) -> Any:
        """The body of an answer to a Metadata request."""
        return decode_response(ApiKey.METADATA, 5, self.frames[number])[1]

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
    assert (correlation_id, body.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
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
    from harness.wire.messages.coordination import FindCoordinatorRequest

    front.send(b"".join(encode_request(header, FindCoordinatorRequest(key="group"))))
    assert front.is_hung_up


def test_a_torn_request_costs_the_connection() -> None:
    front = Front()
    frame = b"".join(encode_request(RequestHeader(ApiKey.API_VERSIONS, 3, 0, "test"), ApiVersionsRequest("a", "b")))
    front.send(frame[:-2])
    assert front.is_hung_up


UPDATE = b"".join(encode_request(RequestHeader(ApiKey.UPDATE_METADATA, 6, 0, None), UpdateMetadataRequest(100, 9)))


def test_a_client_that_pretends_to_be_the_controller_is_refused() -> None:
    client, controller = Front("clients"), Front("controller")
    client.send(UPDATE)
    controller.send(UPDATE)
    _, body = decode_response(ApiKey.UPDATE_METADATA, 6, client.frames[0])
    assert body == UpdateMetadataResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert (client.is_hung_up, client.kept) == (False, [])
    assert (controller.frames, len(controller.kept)) == ([], 1)


def failing(error: Exception) -> Handle:
    def fail(_: Request) -> None:
        raise error

    return fail


TWO_TOPICS = [MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]


def test_a_request_that_cannot_be_served_is_reported_and_answered_and_its_connection_lives_on() -> None:
    error = KeyError("a bug")
    front = Front(serve=failing(error))
    header = RequestHeader(ApiKey.METADATA, 5, 0, "test")
    front.send(b"".join(encode_request(header, MetadataRequest(TWO_TOPICS))))
    assert [topic.error_code for topic in front.answer().topics] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert front.reports == [("METADATA version 5", error)]
    front.send(b"".join(encode_request(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "test"), ApiVersionsRequest())))
    assert decode_response(ApiKey.API_VERSIONS, 0, front.frames[1])[0] == 1


def test_a_broken_invariant_is_not_survived() -> None:
    with pytest.raises(AssertionError, match="broken"):
        Front(serve=failing(AssertionError("broken"))).ask(0)


def test_what_the_controller_asks_is_not_survived_either() -> None:
    with pytest.raises(KeyError):
        Front("controller", failing(KeyError("a bug"))).send(UPDATE)


@pytest.mark.parametrize("unspeakable", ["x" * 32_768, None])
def test_an_answer_that_cannot_be_encoded_is_an_unknown_server_error(unspeakable: str | None) -> None:
    front = Front()
    front.ask(0)
    front.ask(1)
    front.kept[0].answer(MetadataResponse(topics=[MetadataResponseTopic(0, unspeakable)]))
    front.kept[1].answer(MetadataResponse())
    assert front.sent() == [0, 1]
    assert [name for name, _ in front.reports] == ["METADATA version 5"]
    assert front.answer() == MetadataResponse()


def test_what_comes_late_to_a_request_that_could_not_be_served_is_dropped() -> None:
    kept: list[Request] = []

    def fail_late(request: Request) -> None:
        kept.append(request)
        raise KeyError("a bug")

    front = Front(serve=fail_late)
    front.ask(0)
    kept[0].answer(MetadataResponse())
    assert front.sent() == [0]


def test_a_request_that_fails_after_its_answer_is_answered_once() -> None:
    def answer_and_fail(request: Request) -> None:
        request.answer(MetadataResponse())
        raise KeyError("a bug")

    front = Front(serve=answer_and_fail)
    front.ask(0)
    assert (front.sent(), len(front.reports)) == ([0], 1)


def test_a_produce_that_wants_no_answer_and_cannot_be_served_costs_the_connection() -> None:
    front = Front(serve=failing(KeyError("a bug")))
    front.send(b"".join(encode_request(RequestHeader(ApiKey.PRODUCE, 9, 0, "test"), ProduceRequest(acks=0))))
    assert (front.is_hung_up, front.frames) == (True, [])
