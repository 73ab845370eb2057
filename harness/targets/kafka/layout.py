"""Assigns addresses, ports and host names to the nodes of a real Kafka cluster and to the proxies between them.

Every node listens at an address of its own, and no node knows the real address of another: its hosts file
(``jdk.net.hosts.file``) leads every other name to the *proxy address* of the node itself, where a proxy for each
destination listens at the destination's own port. So the proxy of a connection identifies its source and destination,
and each directed link can be cut by itself. Clients have a proxy address, too, which the brokers advertise to them.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Protocol, Self

from harness.model import CLIENTS, CONTROLLER, CONTROLLER_ID, NodeId, is_broker, node_id, node_name
from harness.targets.addresses import Address, claim_network, node_host
from harness.targets.kafka.releases import Metadata

_PORTS_PER_NODE = 10
_CLIENTS_PROXY = 149
_FIRST_PROXY = 150


QUORUM = 3
"""The number of dedicated controllers of a quorum."""


class Control(Enum):
    """Which nodes are controllers.

    ``ONE``: the node ``controller``. With KRaft also a ``QUORUM`` of ``controller-1`` to ``controller-3``, or
    ``COMBINED``: every broker is a controller, too.
    """

    ONE = "one"
    QUORUM = "quorum"
    COMBINED = "combined"

    def controllers(self, brokers: int) -> Sequence[str]:
        """The controllers of a cluster with so many brokers."""
        match self:
            case Control.ONE:
                return [CONTROLLER]
            case Control.QUORUM:
                return [node_name(NodeId(CONTROLLER_ID + number)) for number in range(1, QUORUM + 1)]
            case Control.COMBINED:
                return broker_names(brokers)

    def nodes(self, brokers: int) -> Sequence[str]:
        """The names of all nodes: the brokers in order, then the controllers that are none."""
        return [*broker_names(brokers), *(name for name in self.controllers(brokers) if not is_broker(name))]

    def in_words(self, brokers: int) -> str:
        """A cluster with so many brokers."""
        others = {Control.ONE: " and a controller", Control.QUORUM: f" and {QUORUM} controllers"}
        return f"{brokers} brokers{others.get(self, ', which are the controllers')}"


def broker_names(brokers: int) -> Sequence[str]:
    """Of so many."""
    return [node_name(NodeId(number)) for number in range(brokers)]


class Listener(Enum):
    """The listeners of a node, each at its own port; the value is the port's place among the node's.

    ``HARNESS`` is for the harness alone: it is advertised with its real address, and no proxy lies in between.
    """

    PEERS = 0
    CLIENTS = 1
    HARNESS = 2
    CONTROLLER = 3
    ZOOKEEPER = 4


@dataclass(frozen=True, slots=True)
class Route:
    """One proxy: ``source`` reaches ``listener`` of node ``destination`` by connecting to ``listens``.

    Attributes:
        source: the name of a node, or ``CLIENTS``.
        leads_to: the real address.
    """

    source: str
    destination: str
    listener: Listener
    listens: Address
    leads_to: Address


class Routing(Protocol):
    """The proxies of a cluster."""

    @property
    def nodes(self) -> Sequence[str]:
        """The names of the nodes."""
        ...

    def listeners(self, node: str) -> Sequence[Listener]:
        """The listeners of ``node``."""
        ...

    def proxy_host(self, source: str) -> str:
        """The host to which ``source``, a node or ``CLIENTS``, connects for every destination."""
        ...

    def routes(self) -> Sequence[Route]:
        """Every proxy."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """The addresses of one cluster, claimed until :meth:`release`.

    Attributes:
        metadata: ZooKeeper or KRaft. With ZooKeeper the node ``controller`` is ZooKeeper and a broker with the id 100,
            which holds no replicas and is Kafka's controller; with KRaft it is the controller alone.
        control: which nodes are controllers.
        brokers: how many, with the ids 0, 1, 2 ...
        subnet: the first three octets, ``"127.a.b"``.
        port: the first of all ports.
    """

    metadata: Metadata
    control: Control
    brokers: int
    subnet: str
    port: int
    claim_socket: socket.socket

    @classmethod
    def claim(cls, brokers: int, metadata: Metadata, control: Control = Control.ONE) -> Self:
        """Claim addresses for ``brokers`` brokers and their controllers.

        Raises:
            EnvironmentFault: none were free.
        """

        def needed(subnet: str, port: int) -> Iterator[Address]:
            layout = cls(metadata, control, brokers, subnet, port, unclaimed)
            yield from (layout.real(name, one) for name in layout.nodes for one in layout.listeners(name))
            yield from (route.listens for route in layout.routes())

        with socket.socket() as unclaimed:
            return cls(metadata, control, brokers, *claim_network(needed))

    def release(self) -> None:
        """Give the claim back; idempotent."""
        self.claim_socket.close()

    # ------------------------------------------------------------------------------------------------ nodes

    @property
    def nodes(self) -> Sequence[str]:
        """The names of all nodes: the brokers in order, then the controllers that are none."""
        return self.control.nodes(self.brokers)

    @property
    def broker_names(self) -> Sequence[str]:
        """The names of those nodes that hold replicas."""
        return broker_names(self.brokers)

    @property
    def controllers(self) -> Sequence[str]:
        """The names of the controllers."""
        return self.control.controllers(self.brokers)

    def listeners(self, node: str) -> Sequence[Listener]:
        """The listeners of ``node``."""
        kafka = (Listener.PEERS, Listener.CLIENTS, Listener.HARNESS)
        if self.metadata is Metadata.ZOOKEEPER:
            return kafka if is_broker(node) else (*kafka, Listener.ZOOKEEPER)
        controls = (Listener.CONTROLLER,) if node in self.controllers else ()
        return (*kafka, *controls) if is_broker(node) else controls

    # ------------------------------------------------------------------------------------------------ where

    def host(self, node: str) -> str:
        """Where ``node`` really listens: 127.a.b.10 for broker 0, 127.a.b.100 for ``controller``."""
        return node_host(self.subnet, node_id(node))

    def proxy_host(self, source: str) -> str:
        """The host to which ``source``, a node or ``CLIENTS``, connects for every destination."""
        return f"{self.subnet}.{_CLIENTS_PROXY if source == CLIENTS else _FIRST_PROXY + self._index(source)}"

    def port_of(self, node: str, listener: Listener) -> int:
        """The port of ``listener`` of ``node``, the same at its real address and at every proxy address."""
        return self.port + _PORTS_PER_NODE * self._index(node) + listener.value

    def real(self, node: str, listener: Listener) -> Address:
        """Where ``node`` really listens."""
        return self.host(node), self.port_of(node, listener)

    def seen_by(self, source: str, node: str, listener: Listener) -> Address:
        """Where ``source``, a node or ``CLIENTS``, finds ``listener`` of ``node``."""
        return self.host(node) if source == node else self.proxy_host(source), self.port_of(node, listener)

    @property
    def zookeeper(self) -> Address:
        """Where ZooKeeper really listens."""
        return self.real(CONTROLLER, Listener.ZOOKEEPER)

    def routes(self) -> Sequence[Route]:
        """Every proxy: from each node to every other, and from the clients to the brokers."""
        return [
            Route(source, node, listener, self.seen_by(source, node, listener), self.real(node, listener))
            for source, node in product((*self.nodes, CLIENTS), self.nodes)
            for listener in self._proxied(source, node)
        ]

    def _proxied(self, source: str, node: str) -> Sequence[Listener]:
        if source == node:
            return ()
        if source == CLIENTS:
            return [listener for listener in self.listeners(node) if listener is Listener.CLIENTS]
        among_nodes = (Listener.PEERS, Listener.CONTROLLER, Listener.ZOOKEEPER)
        return [listener for listener in self.listeners(node) if listener in among_nodes]

    def _index(self, node: str) -> int:
        return self.nodes.index(node)

    # ------------------------------------------------------------------------------------------------ names

    def hostname(self, node: str) -> str:
        """What the nodes call ``node``: ``broker-1``, ``controller``."""
        return f"broker-{node}" if is_broker(node) else node

    def hosts_file(self, node: str) -> str:
        """The ``jdk.net.hosts.file`` of ``node``: the addresses of itself, the others, and this machine."""
        seen = [
            f"{self.host(node) if other == node else self.proxy_host(node)} {self.hostname(other)}"
            for other in self.nodes
        ]
        return "\n".join([*seen, "127.0.0.1 localhost", f"127.0.0.1 {socket.gethostname()}", ""])
