"""A broker's connections to other brokers, over which its coordinators ask."""

from __future__ import annotations

from harness.broker.caller import Answered, Caller
from harness.broker.ports import Network
from harness.broker.settings import NodeConfig
from harness.model import NodeId
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey


class Peers:
    """One connection to each broker that is asked, opened when needed.

    Args:
        config: the identity of this broker, and the addresses of the others.
        network: the port.
    """

    def __init__(self, config: NodeConfig, network: Network) -> None:
        self._config = config
        self._network = network
        self._callers: dict[NodeId, Caller] = {}

    def call(
        self, node: NodeId, request: tuple[ApiKey, int], body: Message, timeout_s: float, answered: Answered
    ) -> None:
        """Send ``body`` as the ``request``, a key and a version; see :meth:`harness.broker.caller.Caller.call`."""
        if node not in self._callers:
            address = self._config.address_of(str(node))
            self._callers[node] = Caller(self._network, address, str(node), f"broker-{self._config.node_id}")
        self._callers[node].call(*request, body, timeout_s, answered)
