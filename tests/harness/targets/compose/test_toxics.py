"""Links between clients and brokers, held back by Toxiproxy."""

from __future__ import annotations

import socket
import socketserver
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harness.errors import EnvironmentFault
from harness.model import CLIENTS, Link
from harness.targets.addresses import Address
from harness.targets.compose.toxics import PROBE_PORT, Toxics
from harness.targets.link_probe import ping_as_client
from tests.harness.targets.compose.conftest import Engine

THERE, BACK = Link(CLIENTS, "0"), Link("0", CLIENTS)
TIMEOUT_S = 60.0
LATE = pytest.mark.nightly("by day one direction is cut by itself")
PROXY_PORT = 20000


class Broker(socketserver.BaseRequestHandler):
    """Answers whatever it is told with the same."""

    def handle(self) -> None:
        """Until its client has gone."""
        while told := self.request.recv(64):
            self.request.sendall(told)


class Brokers(socketserver.ThreadingTCPServer):
    """One for each connection."""

    daemon_threads = True
    block_on_close = False


def free_port() -> int:
    """Of 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def toxics_and_proxy(engine: Engine) -> Iterator[tuple[Toxics, Address]]:
    """Toxiproxy in a network of its own, with a proxy in front of a broker that answers."""
    engine.need("toxiproxy")
    api, proxy, probe = (("127.0.0.1", free_port()) for _ in range(3))
    published = {"8474/tcp": api, f"{PROXY_PORT}/tcp": proxy, f"{PROBE_PORT}/tcp": probe}
    with ExitStack() as stack:
        network = engine.client.networks.create(f"seawall-test-{uuid.uuid4().hex[:8]}")
        stack.callback(network.remove)
        network.reload()
        broker = stack.enter_context(Brokers((network.attrs["IPAM"]["Config"][0]["Gateway"], 0), Broker))
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        stack.callback(broker.shutdown)
        container = engine.client.containers.run(
            "seawall/toxiproxy", network=network.name, ports=published, detach=True
        )
        stack.callback(container.remove, force=True)
        toxics = Toxics(api, {"0": proxy}, probe, answers)
        toxics.await_up(TIMEOUT_S)
        toxics.create("0", f"0.0.0.0:{PROXY_PORT}", ":".join(map(str, broker.server_address)))
        yield toxics, proxy


@pytest.mark.parametrize(
    "links",
    [
        pytest.param([THERE], id="there"),
        pytest.param([BACK], id="back", marks=LATE),
        pytest.param([THERE, BACK], id="both", marks=LATE),
    ],
)
def test_each_direction_is_cut_by_itself_and_nothing_is_lost(
    toxics_and_proxy: tuple[Toxics, Address], links: list[Link]
) -> None:
    toxics, proxy = toxics_and_proxy
    with socket.create_connection(proxy, TIMEOUT_S) as client:
        client.sendall(b"before")
        assert client.recv(64) == b"before"
        toxics.cut(links)
        toxics.cut(links)
        client.sendall(b"meanwhile")
        for link in (THERE, BACK):
            assert toxics.is_cut(link).holds is (link in links), link
            assert toxics.carries(link).holds is (link not in links), link
        toxics.mend([THERE, BACK])
        assert client.recv(64) == b"meanwhile"
    for link in (THERE, BACK):
        assert not toxics.is_cut(link).holds
        assert toxics.carries(link).holds


def test_a_broker_without_a_proxy_is_named(toxics_and_proxy: tuple[Toxics, Address]) -> None:
    with pytest.raises(EnvironmentFault, match=r"Toxiproxy has no proxy '7'\."):
        toxics_and_proxy[0].cut([Link(CLIENTS, "7")])


def test_links_between_brokers_are_not_its_affair(toxics_and_proxy: tuple[Toxics, Address]) -> None:
    with pytest.raises(EnvironmentFault, match=r"no proxy is on the link 0->1: neither end is clients\."):
        toxics_and_proxy[0].cut([Link("0", "1")])


def test_a_toxiproxy_that_is_not_there_is_named_by_its_address() -> None:
    port = free_port()
    with pytest.raises(EnvironmentFault, match=rf"Toxiproxy at 127\.0\.0\.1:{port} did not execute a request: "):
        Toxics(("127.0.0.1", port), {}, ("127.0.0.1", PROBE_PORT), answers).await_up(0)


def answers(listener: Address, timeout_s: float) -> bool:
    return ping_as_client(listener, timeout_s, lambda: 0) is None
