"""Claims loopback addresses for one cluster: a free ``127.a.b.0/24`` and three free ports.

Every node has an address of its own, so that a connection's source identifies the node. The claim is a listening socket
at ``127.a.b.1``: the kernel closes it with the process, so a dead harness blocks nothing.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER_ID, NodeId

Address = tuple[str, int]

_PORT_BASES = (9092, 19092, 29092, 39092)
_ATTEMPTS = 32


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one cluster; :meth:`release` gives them back.

    Attributes:
        subnet: the first three octets, ``"127.a.b"``.
        port: of the brokers' Kafka listeners; the controller's is one, the control channels' two higher.
    """

    subnet: str
    port: int
    claim_socket: socket.socket

    @classmethod
    def claim(cls, brokers: int) -> Self:
        """Claim addresses for ``brokers`` brokers and a controller.

        Raises:
            EnvironmentFault: no candidate was free.
        """
        return cls(*claim_network(lambda subnet, port: _needed(subnet, port, brokers)))

    def host(self, node: NodeId) -> str:
        """The address of ``node``: 127.a.b.10 for broker 0, 127.a.b.100 for the controller."""
        return node_host(self.subnet, node)

    def listener(self, node: NodeId) -> Address:
        """The Kafka listener of ``node``."""
        return _listener(self.subnet, self.port, node)

    def control(self, node: NodeId) -> Address:
        """The control channel of ``node``."""
        return _control(self.subnet, self.port, node)

    def release(self) -> None:
        """Give the claim back; idempotent."""
        self.claim_socket.close()


def node_host(subnet: str, node: NodeId) -> str:
    """The address of ``node`` in a cluster's network."""
    return f"{subnet}.{node if node >= CONTROLLER_ID else 10 + node}"


def claim_network(needed: Callable[[str, int], Iterable[Address]]) -> tuple[str, int, socket.socket]:
    """Claim a network for one cluster.

    Args:
        needed: the addresses that must be free, given the subnet, ``"127.a.b"``, and the first of the ports.

    Returns:
        The subnet, the first port, and the listening socket that is the claim: closing it gives the network back.

    Raises:
        EnvironmentFault: no candidate was free.
    """
    for subnet, port in _candidates():
        claim_socket = _listening(f"{subnet}.1", port)
        if claim_socket is None:
            continue
        if all(map(_is_free, needed(subnet, port))):
            return subnet, port, claim_socket
        claim_socket.close()
    raise EnvironmentFault(
        f"no free loopback addresses were found in {_ATTEMPTS} networks 127.a.b.0/24.",
        "Stop whatever listens on 0.0.0.0 at ports 9092, 19092, 29092 and 39092.",
    )


def _needed(subnet: str, port: int, brokers: int) -> Iterator[Address]:
    for node in (*map(NodeId, range(brokers)), CONTROLLER_ID):
        yield _listener(subnet, port, node)
        yield _control(subnet, port, node)


def _listener(subnet: str, port: int, node: NodeId) -> Address:
    return node_host(subnet, node), port + (1 if node == CONTROLLER_ID else 0)


def _control(subnet: str, port: int, node: NodeId) -> Address:
    return node_host(subnet, node), port + 2


def _candidates() -> Iterator[tuple[str, int]]:
    drawn = random.SystemRandom()
    for attempt in range(_ATTEMPTS):
        subnet = f"127.{drawn.randrange(1, 255)}.{drawn.randrange(255)}"
        yield subnet, _PORT_BASES[attempt * len(_PORT_BASES) // _ATTEMPTS]


def _listening(host: str, port: int) -> socket.socket | None:
    listener = socket.socket()
    try:
        listener.bind((host, port))
        listener.listen(1)
    except OSError:
        listener.close()
        return None
    return listener


def _is_free(address: Address) -> bool:
    listener = _listening(*address)
    if listener is None:
        return False
    listener.close()
    return True
