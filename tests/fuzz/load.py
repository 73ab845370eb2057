"""The known load: what is sent while the nodes are fuzzed, of which nothing that was acknowledged may be missing."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import Producer

from tests.harness.broker.cluster import Cluster

PAUSE_S = 0.02


class KnownLoad:
    """One producer that sends ``0``, ``1`` ... to one partition with acks=all, until it is stopped.

    Attributes:
        acknowledged: by value, the offset that was acknowledged.
        failed: how many were not acknowledged.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.acknowledged: dict[int, int] = {}
        self.failed = 0
        self._cluster = cluster
        self._topic = topic
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Send from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more, and wait for what is under way."""
        self._stopped.set()
        self._thread.join()

    def missing(self) -> list[int]:
        """The acknowledged values that a consumer, which reads everything, does not find at their offsets."""
        highest = max(self.acknowledged.values(), default=-1)
        found = self._cluster.consume(self._topic, highest + 1)
        return [value for value, offset in self.acknowledged.items() if found[offset : offset + 1] != [b"%d" % value]]

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
        )
        value = 0
        while not self._stopped.is_set():
            producer.produce(self._topic, b"%d" % value, partition=0, on_delivery=self._delivered(value))
            producer.poll(0)
            value += 1
            time.sleep(PAUSE_S)
        producer.flush(120)
        self.failed = value - len(self.acknowledged)

    def _delivered(self, value: int) -> Any:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[value] = message.offset()

        return delivered
