"""The proxies against plain sockets: nothing here needs Kafka."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from harness.broker.wire_tap import exchanges
from harness.errors import EnvironmentFault
from harness.model import CLIENTS, CONTROLLER, Link
from harness.targets.addresses import Address
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.proxies import Proxies
from harness.targets.kafka.releases import Metadata
from harness.wire.frames import ApiKey, RequestHeader, encode_request, encode_response
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

TIMEOUT_S = 60.0
BACKLOG = 1024
"""More than a test connects at once: past it the kernel drops what comes, and the caller tries again seconds later."""
ANSWER = bytes(4)
"""The shortest frame of Kafka's protocol: one of no bytes."""
MOMENT_S = 0.2
"""How long one waits for something that must not come."""


@pytest.fixture(scope="module")
def layout() -> Iterator[Layout]:
    claimed = Layout.claim(2, Metadata.KRAFT)
    yield claimed
    claimed.release()


@pytest.fixture(scope="module")
def running(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxies]:
    one = Proxies(layout, tmp_path_factory.mktemp("proxies"))
    one.start()
    yield one
    one.stop()


@pytest.fixture
def proxies(layout: Layout, running: Proxies) -> Iterator[Proxies]:
    """Running, and left with nothing cut."""
    yield running
    ends = (*layout.nodes, CLIENTS)
    running.mend([Link(source, destination) for source in ends for destination in ends])


@contextmanager
def listening(address: Address) -> Iterator[socket.socket]:
    with socket.create_server(address, backlog=BACKLOG) as server:
        server.settimeout(TIMEOUT_S)
        yield server


@contextmanager
def connected(layout: Layout, source: str, destination: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of one connection through a proxy: who has made it, and who has taken it."""
    listener = Listener.CLIENTS if source == CLIENTS else Listener.PEERS
    with (
        listening(layout.real(destination, listener)) as server,
        socket.create_connection(layout.seen_by(source, destination, listener), TIMEOUT_S) as near,
    ):
        far, _ = server.accept()
        with far:
            far.settimeout(TIMEOUT_S)
            yield near, far


def call(address: Address) -> bytes:
    """The first byte that somebody there says."""
    with socket.create_connection(address, TIMEOUT_S) as end:
        return received(end, 1)


def received(end: socket.socket, size: int) -> bytes:
    """Exactly so many bytes, or fewer where the stream ends."""
    data = b""
    while len(data) < size and (more := end.recv(size - len(data))):
        data += more
    return data


def nothing_comes(end: socket.socket) -> bool:
    end.settimeout(MOMENT_S)
    try:
        end.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        end.settimeout(TIMEOUT_S)
    return False


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return held


class Answering:
    """A server that answers every 14 bytes with 4."""

    def __init__(self, address: Address) -> None:
        self._server = socket.create_server(address)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with ExitStack() as ends:
            while True:
                try:
                    end, _ = self._server.accept()
                except OSError:
                    return
                ends.enter_context(end)
                end.settimeout(TIMEOUT_S)
                threading.Thread(target=self._answer, args=[end], daemon=True).start()

    def _answer(self, end: socket.socket) -> None:
        try:
            while received(end, 14):
                end.sendall(ANSWER)
        except OSError:
            pass

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(TIMEOUT_S)


@pytest.mark.usefixtures("proxies")
def test_bytes_pass_both_ways_while_nothing_is_cut(layout: Layout) -> None:
    with connected(layout, "0", "1") as (near, far):
        near.sendall(b"there")
        assert received(far, 5) == b"there"
        far.sendall(b"back")
        assert received(near, 4) == b"back"


def test_a_cut_holds_one_direction_and_lets_the_other_pass(layout: Layout, proxies: Proxies) -> None:
    with connected(layout, "0", "1") as (near, far):
        proxies.cut([Link("1", "0")])
        near.sendall(b"there")
        assert received(far, 5) == b"there"
        far.sendall(b"back")
        assert nothing_comes(near)
        assert eventually(lambda: proxies.held(Link("1", "0")) == 4)
        assert proxies.held(Link("0", "1")) == 0
        proxies.mend([Link("1", "0")])
        assert received(near, 4) == b"back"
        assert proxies.held(Link("1", "0")) == 0


def test_a_link_is_cut_in_connections_of_either_end(layout: Layout, proxies: Proxies) -> None:
    with connected(layout, "0", "1") as (near, far), connected(layout, "1", "0") as (back_near, back_far):
        proxies.cut([Link("0", "1")])
        near.sendall(b"a")
        back_far.sendall(b"b")
        assert nothing_comes(far)
        assert nothing_comes(back_near)
        assert eventually(lambda: proxies.held(Link("0", "1")) == 2)
        far.sendall(b"c")
        back_near.sendall(b"d")
        assert received(near, 1) + received(back_far, 1) == b"cd"


def test_what_was_held_is_released_whole_and_in_order(layout: Layout, proxies: Proxies) -> None:
    data = b"".join(struct.pack(">q", number) for number in range(1 << 20))
    with connected(layout, "0", "1") as (near, far):
        proxies.cut([Link("0", "1")])
        sender = threading.Thread(target=near.sendall, args=[data])
        sender.start()
        assert eventually(lambda: proxies.held(Link("0", "1")) > 1 << 16)
        assert nothing_comes(far)
        proxies.mend([Link("0", "1")])
        assert received(far, len(data)) == data
        sender.join(TIMEOUT_S)


def test_a_cut_in_the_middle_of_a_stream_lets_nothing_trickle(layout: Layout, proxies: Proxies) -> None:
    data = bytes(range(256)) * (1 << 15)
    with connected(layout, "0", "1") as (near, far):
        sender = threading.Thread(target=near.sendall, args=[data])
        sender.start()
        begun = received(far, 1 << 16)
        proxies.cut([Link("0", "1")])
        while not nothing_comes(far):
            begun += far.recv(1 << 20)
        assert len(begun) < len(data)
        proxies.mend([Link("0", "1")])
        assert begun + received(far, len(data) - len(begun)) == data
        sender.join(TIMEOUT_S)


def test_a_connection_made_during_a_cut_arrives_when_it_is_mended(layout: Layout, proxies: Proxies) -> None:
    proxies.cut([Link("0", "1")])
    with (
        listening(layout.real("1", Listener.PEERS)) as server,
        socket.create_connection(layout.seen_by("0", "1", Listener.PEERS), TIMEOUT_S) as near,
    ):
        near.sendall(b"late")
        assert eventually(lambda: proxies.held(Link("0", "1")) == 4)
        server.settimeout(MOMENT_S)
        with pytest.raises(TimeoutError):
            server.accept()
        server.settimeout(TIMEOUT_S)
        proxies.mend([Link("0", "1")])
        far, _ = server.accept()
        with far:
            far.settimeout(TIMEOUT_S)
            assert received(far, 4) == b"late"


def test_an_end_of_stream_is_held_like_bytes_and_leaves_the_other_direction_open(
    layout: Layout, proxies: Proxies
) -> None:
    with connected(layout, "0", "1") as (near, far):
        proxies.cut([Link("0", "1")])
        near.sendall(b"last")
        near.shutdown(socket.SHUT_WR)
        assert nothing_comes(far)
        far.sendall(b"heard")
        assert received(near, 5) == b"heard"
        proxies.mend([Link("0", "1")])
        assert received(far, 5) == b"last"
        far.sendall(b"still")
        assert received(near, 5) == b"still"


def test_a_reset_is_told_to_the_far_end_and_not_while_the_link_is_cut(layout: Layout, proxies: Proxies) -> None:
    with connected(layout, "0", "1") as (near, far):
        proxies.cut([Link("0", "1")])
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        assert nothing_comes(far)
        proxies.mend([Link("0", "1")])
        with pytest.raises(ConnectionResetError):
            received(far, 1)


@pytest.mark.usefixtures("proxies")
def test_who_calls_a_node_that_is_down_is_turned_away_and_reaches_it_once_it_is_up_again(layout: Layout) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            call(layout.seen_by("0", "1", Listener.PEERS))
        with connected(layout, "0", "1") as (near, far):
            near.sendall(b"up")
            assert received(far, 2) == b"up"


def test_a_refusal_does_not_pass_a_cut_either(layout: Layout, proxies: Proxies) -> None:
    proxies.cut([Link("1", "0")])
    with socket.create_connection(layout.seen_by("0", "1", Listener.PEERS), TIMEOUT_S) as near:
        assert nothing_comes(near)
        proxies.mend([Link("1", "0")])
        with pytest.raises(ConnectionResetError):
            received(near, 1)


@pytest.mark.usefixtures("proxies")
def test_the_far_end_sees_which_node_has_called(layout: Layout) -> None:
    with connected(layout, "0", "1") as (_, far):
        assert far.getpeername()[0] == layout.proxy_host("0")


@pytest.mark.usefixtures("proxies")
def test_hundreds_of_connections_do_not_mix_up_their_bytes(layout: Layout) -> None:
    number = 300
    with ExitStack() as stack:
        server = stack.enter_context(listening(layout.real("1", Listener.CLIENTS)))
        nears = [
            stack.enter_context(socket.create_connection(layout.seen_by(CLIENTS, "1", Listener.CLIENTS), TIMEOUT_S))
            for _ in range(number)
        ]
        fars = [stack.enter_context(server.accept()[0]) for _ in range(number)]
        for index, near in enumerate(nears):
            near.sendall(struct.pack(">q", index))
        for far in fars:
            far.settimeout(TIMEOUT_S)
            far.sendall(received(far, 8) * 2)
        for index, near in enumerate(nears):
            assert received(near, 16) == struct.pack(">qq", index, index)


def test_a_cut_is_proven_by_a_request_of_its_own(layout: Layout, proxies: Proxies) -> None:
    with Answering(layout.real("1", Listener.PEERS)), Answering(layout.real(CONTROLLER, Listener.CONTROLLER)):
        for link in (Link("0", "1"), Link("0", CONTROLLER)):
            assert not proxies.is_cut(link).holds
            proxies.cut([link])
            receipt = proxies.is_cut(link)
            assert receipt.holds
            assert "more bytes are withheld" in receipt.seen
            proxies.mend([link])
            assert not proxies.is_cut(link).holds


def test_what_stands_is_stalled_and_what_is_new_passes_it(layout: Layout, proxies: Proxies) -> None:
    link = Link(CLIENTS, "1")
    with Answering(layout.real("1", Listener.CLIENTS)):
        before = socket.create_connection(layout.seen_by(CLIENTS, "1", Listener.CLIENTS), TIMEOUT_S)
        with before:
            before.sendall(bytes(14))
            assert received(before, 4) == ANSWER
            assert not proxies.is_stalled(link).holds
            proxies.stall([link])
            before.sendall(bytes(14))
            receipt = proxies.is_stalled(link)
            assert receipt.holds
            assert "28 bytes are withheld" in receipt.seen
            assert nothing_comes(before)
            assert not proxies.has_gone_on(link).holds
            with socket.create_connection(layout.seen_by(CLIENTS, "1", Listener.CLIENTS), TIMEOUT_S) as after:
                after.sendall(bytes(14))
                assert received(after, 4) == ANSWER
            proxies.resume_links([link])
            assert received(before, 4) == ANSWER
        assert proxies.has_gone_on(link).holds
        assert not proxies.is_stalled(link).holds


def test_what_was_stalled_arrives_although_its_sender_has_gone(layout: Layout, proxies: Proxies) -> None:
    link = Link(CLIENTS, "1")
    with listening(layout.real("1", Listener.CLIENTS)) as server:
        address = layout.seen_by(CLIENTS, "1", Listener.CLIENTS)
        answering = threading.Thread(target=_answer_one, args=[server])
        with socket.create_connection(address, TIMEOUT_S) as near:
            far, _ = server.accept()
            answering.start()
            proxies.stall([link])
            near.sendall(b"late")
        with far:
            far.settimeout(TIMEOUT_S)
            assert nothing_comes(far)
            proxies.resume_links([link])
            assert received(far, 5) == b"late"
        answering.join(TIMEOUT_S)


def test_what_is_stalled_stays_so_when_its_link_is_cut_and_mended(layout: Layout, proxies: Proxies) -> None:
    link = Link(CLIENTS, "1")
    with Answering(layout.real("1", Listener.CLIENTS)):
        proxies.stall([link])
        proxies.cut([link])
        assert not proxies.is_stalled(link).holds, "nothing new passes, either"
        proxies.mend([link])
        assert proxies.is_stalled(link).holds
        proxies.cut([link])
        proxies.resume_links([link])
        assert not proxies.has_gone_on(link).holds, "a cut holds what was stalled before"
        proxies.mend([link])
        assert proxies.has_gone_on(link).holds


def test_where_nobody_answers_nothing_can_be_stalled(layout: Layout, proxies: Proxies) -> None:
    with pytest.raises(EnvironmentFault, match="clients->0 cannot be stalled: no answer"):
        proxies.stall([Link(CLIENTS, "0")])


def _answer_one(server: socket.socket) -> None:
    """Answer one request in the next connection."""
    end, _ = server.accept()
    with end:
        end.settimeout(TIMEOUT_S)
        received(end, 14)
        end.sendall(ANSWER)


def test_the_reverse_of_a_cut_link_is_not_taken_for_cut(layout: Layout, proxies: Proxies) -> None:
    with Answering(layout.real("1", Listener.PEERS)):
        proxies.cut([Link("1", "0")])
        receipt = proxies.is_cut(Link("0", "1"))
        assert not receipt.holds
        assert "nothing is withheld" in receipt.seen


def test_each_direction_between_clients_and_a_broker_is_proven_also_when_both_are_cut(
    layout: Layout, proxies: Proxies
) -> None:
    both = [Link(CLIENTS, "1"), Link("1", CLIENTS)]
    with Answering(layout.real("1", Listener.CLIENTS)):
        for cut in ([both[0]], [both[1]], both):
            proxies.cut(cut)
            assert [proxies.is_cut(link).holds for link in both] == [link in cut for link in both]
            proxies.mend(cut)
            assert not any(proxies.is_cut(link).holds for link in both)


def test_a_node_that_is_silent_by_itself_is_not_taken_for_cut_off(layout: Layout, proxies: Proxies) -> None:
    assert not proxies.is_cut(Link("0", "1")).holds
    with listening(layout.real("1", Listener.PEERS)):
        assert not proxies.is_cut(Link("0", "1")).holds
        proxies.cut([Link("0", "1")])
        assert proxies.is_cut(Link("0", "1")).holds


def test_a_node_that_does_not_exist_is_refused_by_name(proxies: Proxies) -> None:
    with pytest.raises(EnvironmentFault, match="no node '7'"):
        proxies.cut([Link("0", "7")])


HARNESS = """
import sys, time
from pathlib import Path
from harness.targets.kafka.layout import Layout
from harness.targets.kafka.proxies import Proxies
from harness.targets.kafka.releases import Metadata
proxies = Proxies(Layout.claim(1, Metadata.KRAFT), Path(sys.argv[1]))
proxies.start()
print(proxies.pid, flush=True)
time.sleep(600)
"""


def test_the_proxies_do_not_outlive_a_harness_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    ) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        assert psutil.pid_exists(pid)
        harness.send_signal(signal.SIGKILL)
        assert eventually(lambda: not psutil.pid_exists(pid))


# ------------------------------------------------------------------------------------------------------ the wire tap


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def api_versions_exchange(number: int) -> tuple[bytes, bytes]:
    """A request and its response, as frames."""
    header = RequestHeader(ApiKey.API_VERSIONS, 3, number, "me")
    answer = encode_response(ApiKey.API_VERSIONS, 3, number, ApiVersionsResponse(0))
    return frame(b"".join(encode_request(header, ApiVersionsRequest()))), frame(b"".join(answer))


def test_what_passes_a_tapped_relay_is_not_recorded_or_comes_changed(tmp_path: Path) -> None:
    path, layout = tmp_path / "wire.jsonl", Layout.claim(2, Metadata.KRAFT)
    one = Proxies(layout, tmp_path, {"0": path})
    one.start()
    try:
        with connected(layout, CLIENTS, "0") as (near, far), connected(layout, "1", "0") as (peer, _):
            for number in (1, 2):
                request, response = api_versions_exchange(number)
                near.sendall(request)
                assert received(far, len(request)) == request
                far.sendall(response)
                assert received(near, len(response)) == response
            peer.sendall(frame(b"nonsense!!") + b"\xff\xff\xff\xffmore")
        with connected(layout, CLIENTS, "1") as (near, far):  # has no tap
            near.sendall(request)
            assert received(far, len(request)) == request
    finally:
        one.stop()
        layout.release()
    with path.open("rb") as lines:
        rows = list(exchanges(0, lines))
    told = [(row["peer"], row["client_id"], row["correlation_id"], row["error"]) for row in rows if not row["problem"]]
    assert told == [(CLIENTS, "me", 1, 0), (CLIENTS, "me", 2, 0)]
    problems = [(row["peer"], row["problem"]) for row in rows if row["problem"]]
    assert problems == [("1", "there is no API with key 28271"), ("1", "a length that no frame has")]
