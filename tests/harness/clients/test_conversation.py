"""Talking to a broker that is played by a few lines."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.model import NodeId
from harness.targets.addresses import Address
from harness.wire.frames import ApiKey, RequestHeader, decode_request, encode_response
from harness.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse

TIMEOUT_S = 5.0

Play = Callable[[socket.socket, RequestHeader], None]


class HangUp(Exception):
    """Close the connection."""


def answer(connection: socket.socket, header: RequestHeader) -> None:
    """As a broker that speaks Metadata 1 to 7, and says as controller the version that it was asked in."""
    if header.api_key == ApiKey.API_VERSIONS:
        body: object = ApiVersionsResponse(api_keys=[ApiVersion(ApiKey.METADATA, 1, 7)])
    else:
        body = MetadataResponse(controller_id=header.api_version)
    assert isinstance(body, ApiVersionsResponse | MetadataResponse)
    frame = b"".join(encode_response(header.api_key, header.api_version, header.correlation_id, body))
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def answer_once(connection: socket.socket, header: RequestHeader) -> None:
    """Hang up after the first answer to a question proper."""
    answer(connection, header)
    if header.api_key != ApiKey.API_VERSIONS:
        raise HangUp


def say_nothing(connection: socket.socket, header: RequestHeader) -> None:
    """As one that is paused."""


def babble(connection: socket.socket, header: RequestHeader) -> None:
    """As nobody who speaks Kafka."""
    connection.sendall(struct.pack(">i", -5))


class Broker:
    """Listens, and plays."""

    def __init__(self, play: Play) -> None:
        self.connections = 0
        self._play = play
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._server.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            with suppress(HangUp), connection, connection.makefile("rb") as stream:
                while prefix := stream.read(4):
                    header, _ = decode_request(stream.read(struct.unpack(">i", prefix)[0]))
                    self._play(connection, header)

    def close(self) -> None:
        with suppress(OSError):  # closed before
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(TIMEOUT_S)


@pytest.fixture
def meet() -> Iterator[Callable[[Play, float], tuple[Broker, Conversation]]]:
    brokers: list[Broker] = []
    talks: list[Conversation] = []

    def introduce(play: Play, timeout_s: float = TIMEOUT_S) -> tuple[Broker, Conversation]:
        brokers.append(Broker(play))
        talks.append(Conversation(NodeId(2), brokers[-1].address, timeout_s))
        return brokers[-1], talks[-1]

    yield introduce
    for talk in talks:
        talk.close()
    for broker in brokers:
        broker.close()


Meet = Callable[..., tuple[Broker, Conversation]]


def ask(talk: Conversation, newest: int = 12) -> int:
    return talk.ask(MetadataRequest(topics=[]), MetadataResponse, newest).controller_id


def test_a_question_is_asked_in_the_newest_version_that_everybody_understands(meet: Meet) -> None:
    broker, talk = meet(answer)
    assert [ask(talk), ask(talk, newest=4)] == [7, 4]
    assert talk.version(ApiKey.METADATA, 12) == 7
    assert broker.connections == 1


def test_who_has_hung_up_since_the_last_question_is_called_again(meet: Meet) -> None:
    broker, talk = meet(answer_once)
    assert [ask(talk) for _ in range(3)] == [7, 7, 7]
    assert broker.connections == 3


def test_a_version_that_nobody_shares_is_named(meet: Meet) -> None:
    _, talk = meet(answer)
    with pytest.raises(NoAnswer, match="speaks METADATA in versions 1 to 7, and 0 to 0 would be understood"):
        ask(talk, newest=0)


@pytest.mark.parametrize(
    ("play", "timeout_s", "says"), [(say_nothing, 0.2, "timed out"), (babble, TIMEOUT_S, "an answer of -5 bytes")]
)
def test_silence_and_babble_are_no_answer(meet: Meet, play: Play, timeout_s: float, says: str) -> None:
    _, talk = meet(play, timeout_s)
    with pytest.raises(NoAnswer, match=f"node 2 does not answer METADATA: {says}"):
        ask(talk)


def test_a_broker_that_is_gone_gives_no_answer(meet: Meet) -> None:
    broker, talk = meet(answer_once)
    ask(talk)
    broker.close()
    with pytest.raises(NoAnswer, match=r"node 2 does not answer METADATA: .*refused"):
        ask(talk)
