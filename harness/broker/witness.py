"""A connection to another node that was open before a link was stalled, and shows whether it still is."""

from __future__ import annotations

from harness.broker.caller import Caller
from harness.broker.ports import Network
from harness.broker.settings import Address
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest

_FOR_EVER_S = 86_400.0
_CLIENT_ID = "witness"


class Witness:
    """One connection, in which requests are sent one after the other.

    Args:
        network: of the node, or of the clients.
        address: where the other node listens.
        node: its name.

    Attributes:
        answers: how many of the requests have been answered. The end of the connection answers none.
    """

    def __init__(self, network: Network, address: Address, node: str) -> None:
        self.answers = 0
        self._caller = Caller(network, address, node, _CLIENT_ID)

    def ask(self) -> None:
        """Send a request, whose answer may take any time."""
        self._caller.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), _FOR_EVER_S, self._answered)

    def close(self) -> None:
        """End the connection."""
        self._caller.close()

    def _answered(self, body: Message | None) -> None:
        self.answers += body is not None
