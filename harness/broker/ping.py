"""Probes a link for the control channel: one ApiVersions request over a new connection to another node."""

from __future__ import annotations

from harness.broker.caller import Caller
from harness.broker.control_channel import Answer
from harness.broker.ports import Network
from harness.broker.settings import Address
from harness.clock import Clock
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest


class Ping:
    """One ping; answers ``{"answered": bool, "elapsed_ms": float, "error": null|"timeout"|"refused"}``."""

    def __init__(self, network: Network, clock: Clock, answer: Answer) -> None:
        self._network = network
        self._clock = clock
        self._answer = answer

    def send(self, address: Address, node: str, timeout_ms: float) -> None:
        """Ask ``node`` at ``address``; no answer within ``timeout_ms`` counts as none, however it came about."""
        self._started_ns = self._clock.monotonic_ns()
        self._timeout_ms = timeout_ms
        self._caller = Caller(self._network, address, node, "ping")
        self._caller.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), timeout_ms / 1000, self._answered)

    def _answered(self, body: Message | None) -> None:
        elapsed_ms = (self._clock.monotonic_ns() - self._started_ns) / 1e6
        silence = "timeout" if elapsed_ms >= self._timeout_ms else "refused"
        self._answer(
            {"answered": body is not None, "elapsed_ms": elapsed_ms, "error": None if body is not None else silence}
        )
        self._caller.close()
