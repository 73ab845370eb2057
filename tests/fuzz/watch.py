"""Whether the nodes are well: alive, in their first life, answering, and no larger than they should be."""

from __future__ import annotations

import time

import psutil

from harness.model import CONTROLLER_ID
from harness.wire.keys import ApiKey
from harness.wire.messages import ApiVersionsRequest
from tests.harness.broker.cluster import Cluster
from tests.harness.broker.raw_client import RawClient

MOST_GROWTH_BYTES = 300 << 20
"""By how much a node may grow, resident, over what it had before the first frame."""


class Unwell(Exception):
    """A node is not well; ``node`` and a sentence."""

    def __init__(self, node: int, sentence: str) -> None:
        super().__init__(f"Node {node} {sentence}")
        self.node = node


class Watch:
    """Looks at every node of a cluster.

    Attributes:
        slowest_s: the longest that an answer has taken.
        growth_bytes: by how much each node has grown at most.
    """

    def __init__(self, cluster: Cluster, answers_within_s: float) -> None:
        self._cluster = cluster
        self._answers_within_s = answers_within_s
        self._processes = {node: psutil.Process(process.pid) for node, process in cluster.processes.items()}
        self._before = {node: process.memory_info().rss for node, process in self._processes.items()}
        self.slowest_s = 0.0
        self.growth_bytes = dict.fromkeys(self._processes, 0)

    def __str__(self) -> str:
        growth = ", ".join(f"{node}: {size >> 20}" for node, size in self.growth_bytes.items())
        return f"slowest answer {self.slowest_s:.2f} s, growth in MiB {growth}"

    def look(self) -> None:
        """Look at all of them.

        Raises:
            Unwell: one is not well.
        """
        for node, process in self._cluster.processes.items():
            if process.poll() is not None:
                raise Unwell(node, f"has ended with exit code {process.returncode}")
            growth = self._processes[node].memory_info().rss - self._before[node]
            self.growth_bytes[node] = max(self.growth_bytes[node], growth)
            if growth > MOST_GROWTH_BYTES:
                raise Unwell(node, f"has grown by {growth >> 20} MiB; {MOST_GROWTH_BYTES >> 20} are allowed")
            self._ask(node)

    def _ask(self, node: int) -> None:
        begun = time.monotonic()
        port = self._cluster.configs[node].listener[1]  # type: ignore[index]
        try:
            with RawClient(self._cluster.ips[node], port) as client:
                client.socket.settimeout(self._answers_within_s)
                client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("watch", "1"))
        except OSError as error:
            who = "the controller" if node == CONTROLLER_ID else "a broker"
            raise Unwell(node, f"({who}) did not answer within {self._answers_within_s} s: {error!r}") from error
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
