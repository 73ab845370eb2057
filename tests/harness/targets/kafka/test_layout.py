from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from harness.model import CLIENTS, CONTROLLER
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.releases import Metadata


@pytest.fixture(params=Metadata)
def layout(request: pytest.FixtureRequest) -> Iterator[Layout]:
    """Addresses for three brokers."""
    claimed = Layout.claim(3, request.param)
    yield claimed
    claimed.release()


def test_every_directed_pair_that_talks_has_a_proxy_of_its_own(layout: Layout) -> None:
    routes = layout.routes()
    pairs = {(route.source, route.destination) for route in routes}
    brokers = layout.broker_names
    assert {pair for pair in product(brokers, brokers) if len(set(pair)) == 2} <= pairs
    assert {(node, CONTROLLER) for node in brokers} <= pairs
    assert {(CLIENTS, node) for node in brokers} <= pairs
    assert len({route.listens for route in routes}) == len(routes)


def test_the_harness_and_a_node_that_talks_to_itself_meet_no_proxy(layout: Layout) -> None:
    assert not any(route.listener is Listener.HARNESS for route in layout.routes())
    assert layout.seen_by("1", "1", Listener.PEERS) == layout.real("1", Listener.PEERS)
    assert not any(route.source == route.destination for route in layout.routes())


def test_a_hosts_file_leads_to_the_node_itself_and_for_all_others_to_its_own_proxies(layout: Layout) -> None:
    hosts = {name: address for address, name in map(str.split, layout.hosts_file("1").splitlines())}
    assert hosts["broker-1"] == layout.host("1")
    assert {hosts["broker-0"], hosts["broker-2"], hosts["controller"]} == {layout.proxy_host("1")}
    assert hosts["localhost"] == "127.0.0.1"


def test_a_claim_ends_with_its_release() -> None:
    first = Layout.claim(1, Metadata.KRAFT)
    first.release()
    first.release()
    assert first.claim_socket.fileno() == -1
