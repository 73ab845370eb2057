"""Relays of the harness between the clients and Toxiproxy, one for each broker, each with a wire tap.

Toxiproxy forwards bytes and records none. With a tap the brokers advertise to clients the address of a relay, which
leads to Toxiproxy's; the process is that of :mod:`harness.targets.kafka.proxies`, which cuts nothing here. A link that
Toxiproxy cuts holds what a relay has recorded; peers, whose connections take no relay, are not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.model import CLIENTS
from harness.targets.kafka.layout import Listener, Route

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ClientRoutes:
    """Implements :class:`harness.targets.kafka.layout.Routing`.

    Attributes:
        advertised: by broker, the port of 127.0.0.1 to which clients connect.
        leads_to: by broker, the port of 127.0.0.1 that Toxiproxy publishes.
    """

    advertised: Mapping[str, int]
    leads_to: Mapping[str, int]

    @property
    def nodes(self) -> Sequence[str]:
        """The brokers."""
        return list(self.advertised)

    def listeners(self, node: str) -> Sequence[Listener]:
        """Those that a relay leads to."""
        return (Listener.CLIENTS,) if node in self.advertised else ()

    def proxy_host(self, source: str) -> str:
        """The host to which clients connect."""
        assert source == CLIENTS, f"the connections of {source} take no relay"
        return _HOST

    def routes(self) -> Sequence[Route]:
        """One for each broker."""
        return [
            Route(CLIENTS, node, Listener.CLIENTS, (_HOST, port), (_HOST, self.leads_to[node]))
            for node, port in self.advertised.items()
        ]
