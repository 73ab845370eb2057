"""How long a task of a client goes on trying."""

from __future__ import annotations

from harness.client_ports import Clients


class Deadline:
    """How long a task goes on trying: not beyond the stop of its clients."""

    def __init__(self, clients: Clients, timeout_s: float) -> None:
        self._clients = clients
        self._until_ns = clients.monotonic_ns() + round(timeout_s * 1e9)

    def left_s(self) -> float:
        """Seconds left; 0 when there are none."""
        if self._clients.stopping:
            return 0.0
        return max(0.0, (self._until_ns - self._clients.monotonic_ns()) / 1e9)
