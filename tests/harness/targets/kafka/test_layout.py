from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from harness.model import CLIENTS
from harness.targets.kafka.layout import Control, Layout, Listener
from harness.targets.kafka.releases import Metadata

WAYS = [(Metadata.ZOOKEEPER, Control.ONE), *product([Metadata.KRAFT], Control)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0].name}-{way[1].value}")
def layout(request: pytest.FixtureRequest) -> Iterator[Layout]:
    """Addresses for three brokers."""
    claimed = Layout.claim(3, *request.param)
    yield claimed
    claimed.release()


def test_every_directed_pair_that_talks_has_a_proxy_of_its_own(layout: Layout) -> None:
    routes = layout.routes()
    pairs = {(route.source, route.destination) for route in routes}
    brokers = layout.broker_names
    assert {pair for pair in product(brokers, brokers) if len(set(pair)) == 2} <= pairs
    controllers = layout.controllers
    assert {pair for pair in product((*brokers, *controllers), controllers) if len(set(pair)) == 2} <= pairs
    assert {(CLIENTS, node) for node in brokers} <= pairs
    assert len({route.listens for route in routes}) == len(routes)


def test_the_harness_and_a_node_that_talks_to_itself_meet_no_proxy(layout: Layout) -> None:
    assert not any(route.listener is Listener.HARNESS for route in layout.routes())
    assert layout.seen_by("1", "1", Listener.PEERS) == layout.real("1", Listener.PEERS)
    assert not any(route.source == route.destination for route in layout.routes())


def test_a_hosts_file_leads_to_the_node_itself_and_for_all_others_to_its_own_proxies(layout: Layout) -> None:
    hosts = {name: address for address, name in map(str.split, layout.hosts_file("1").splitlines())}
    assert hosts["broker-1"] == layout.host("1")
    others = [layout.hostname(node) for node in layout.nodes if node != "1"]
    assert {hosts[name] for name in others} == {layout.proxy_host("1")}
    assert hosts["localhost"] == "127.0.0.1"


def test_who_controls_is_one_node_or_three_or_every_broker() -> None:
    nodes = {control: list(control.nodes(3)) for control in Control}
    assert nodes[Control.ONE] == ["0", "1", "2", "controller"]
    assert nodes[Control.QUORUM] == ["0", "1", "2", "controller-1", "controller-2", "controller-3"]
    assert nodes[Control.COMBINED] == Control.COMBINED.controllers(3) == ["0", "1", "2"]


def test_a_claim_ends_with_its_release() -> None:
    first = Layout.claim(1, Metadata.KRAFT)
    first.release()
    first.release()
    assert first.claim_socket.fileno() == -1
