from __future__ import annotations

import socket

from harness.model import CONTROLLER_ID, NodeId
from harness.targets.addresses import Addresses


def test_two_clusters_never_share_a_network() -> None:
    claimed = [Addresses.claim(3) for _ in range(5)]
    assert len({one.subnet for one in claimed}) == 5
    for one in claimed:
        one.release()


def test_every_node_has_an_address_of_its_own_that_can_be_listened_on() -> None:
    addresses = Addresses.claim(3)
    nodes = [*map(NodeId, range(3)), CONTROLLER_ID]
    taken = [socket.create_server(where(node)) for node in nodes for where in (addresses.listener, addresses.control)]
    assert len({addresses.host(node) for node in nodes}) == 4
    for listener in taken:
        listener.close()
    addresses.release()


def test_a_claim_ends_with_its_release() -> None:
    addresses = Addresses.claim(1)
    addresses.release()
    addresses.release()
    socket.create_server((f"{addresses.subnet}.1", addresses.port)).close()
