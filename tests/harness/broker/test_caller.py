from harness.broker.caller import Caller
from harness.broker.ports import Connection
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire.declaration import Message
from harness.wire.frames import decode_request, encode_response
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

ADDRESS = ("127.0.0.1", 9092)


class Server:
    """Answers with the number of the request, when told to."""

    def __init__(self, world: VirtualScheduler, *, answers: bool = True) -> None:
        self.answers = answers
        self.connections: list[Connection] = []
        self.requests: list[int] = []
        self.network = SimulatedNetwork(world, "0")
        self.network.listen(ADDRESS, self.accept)

    def accept(self, connection: Connection) -> "Server":
        self.connections.append(connection)
        return self

    def on_frame(self, frame: memoryview) -> None:
        header, _ = decode_request(frame)
        self.requests.append(header.correlation_id)
        if self.answers:
            self.answer(header.correlation_id)

    def answer(self, correlation_id: int) -> None:
        body = ApiVersionsResponse(throttle_time_ms=correlation_id)
        self.connections[-1].send(encode_response(ApiKey.API_VERSIONS, 1, correlation_id, body))

    def on_lost(self) -> None:
        pass


class Calls:
    def __init__(self, world: VirtualScheduler) -> None:
        self.world = world
        self.network = SimulatedNetwork(world, "1")
        self.caller = Caller(self.network, ADDRESS, "0", "test")
        self.answers: list[int | None] = []

    def call(self, timeout_s: float = 1.0) -> None:
        self.caller.call(ApiKey.API_VERSIONS, 1, ApiVersionsRequest(), timeout_s, self.answered)

    def answered(self, body: Message | None) -> None:
        assert body is None or isinstance(body, ApiVersionsResponse)
        self.answers.append(None if body is None else body.throttle_time_ms)


def test_requests_made_before_the_connection_stands_are_sent_once_it_does() -> None:
    world = VirtualScheduler()
    server, calls = Server(world), Calls(world)
    calls.call()
    calls.call()
    world.sleep(0)
    assert (calls.answers, len(server.connections)) == ([0, 1], 1)


def test_a_refused_connection_answers_everyone_with_none_and_the_next_request_tries_again() -> None:
    world = VirtualScheduler()
    calls = Calls(world)
    calls.call()
    calls.call()
    world.sleep(0)
    assert calls.answers == [None, None]
    Server(world)
    calls.call()
    world.sleep(0)
    assert calls.answers == [None, None, 2]


def test_a_late_answer_takes_the_connection_down_and_is_not_heard() -> None:
    world = VirtualScheduler()
    server, calls = Server(world, answers=False), Calls(world)
    calls.call(timeout_s=1.0)
    calls.call(timeout_s=5.0)
    world.sleep(1.1)
    assert calls.answers == [None, None]
    server.answer(0)
    world.sleep(10)
    assert calls.answers == [None, None]
    server.answers = True
    calls.call()
    world.sleep(0)
    assert (calls.answers[2:], len(server.connections)) == ([2], 2)


def test_a_lost_connection_answers_everyone_with_none_once() -> None:
    world = VirtualScheduler()
    server, calls = Server(world, answers=False), Calls(world)
    calls.call()
    world.sleep(0)
    server.connections[0].close()
    world.sleep(5)
    assert calls.answers == [None]


def test_an_answer_to_another_request_costs_the_peer_the_connection() -> None:
    world = VirtualScheduler()
    server, calls = Server(world, answers=False), Calls(world)
    calls.call()
    world.sleep(0)
    server.answer(5)
    world.sleep(0)
    assert calls.answers == [None]


def test_an_answer_that_nobody_waits_for_costs_the_peer_the_connection() -> None:
    world = VirtualScheduler()
    server, calls = Server(world), Calls(world)
    calls.call()
    world.sleep(0)
    server.answer(1)
    world.sleep(0)
    calls.call()
    world.sleep(0)
    assert (calls.answers, len(server.connections)) == ([0, 1], 2)


def test_a_caller_closed_while_connecting_hangs_up_on_the_late_connection() -> None:
    world = VirtualScheduler()
    server, calls = Server(world), Calls(world)
    calls.call()
    calls.caller.close()
    world.sleep(0)
    assert calls.answers == [None]
    assert server.requests == []
    assert server.network.streams == calls.network.streams == {}
