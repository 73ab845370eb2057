"""The known load: what is sent while the nodes are fuzzed, of which nothing that was acknowledged may be missing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count
from typing import Any

from confluent_kafka import Producer

from tests.harness.broker.cluster import Cluster

PAUSE_S = 0.02


class KnownLoad:
    """One producer that sends ``0``, ``1`` ... to the partitions of a topic in turn, with acks=all, until stopped.

    Args:
        cluster: where the topic is.
        topic: nothing else writes to it.
        partitions: how many it has.

    Attributes:
        acknowledged: by partition and value, the offset that was acknowledged.
        failed: how many were not acknowledged, and will not be.
    """

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self.acknowledged: Mapping[int, dict[int, int]] = {partition: {} for partition in range(partitions)}
        self.failed = 0
        self._cluster = cluster
        self._topic = topic
        self._patience_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __str__(self) -> str:
        known = ", ".join(f"{partition}: {len(ours)}" for partition, ours in self.acknowledged.items())
        return f"acknowledged by partition {known}; {self.failed} failed"

    def start(self) -> None:
        """Send from now on."""
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Send no more, and wait for what is under way; what is not answered in that time has failed."""
        self._patience_s = patience_s
        self._stopped.set()
        self._thread.join()

    def counted(self) -> dict[int, int]:
        """By partition, how many records have been acknowledged."""
        return {partition: len(ours) for partition, ours in self.acknowledged.items()}

    def missing(self) -> list[int]:
        """The acknowledged values that a consumer, which reads everything, does not find at their offsets."""
        return [value for partition in self.acknowledged for value in self._missing(partition)]

    def _missing(self, partition: int) -> list[int]:
        ours = self.acknowledged[partition]
        found = self._cluster.consume(self._topic, max(ours.values(), default=-1) + 1, partition)
        return [value for value, offset in ours.items() if found[offset : offset + 1] != [b"%d" % value]]

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
        )
        for value in count():
            partition = value % len(self.acknowledged)
            delivered = self._delivered(partition, value)
            producer.produce(self._topic, b"%d" % value, partition=partition, on_delivery=delivered)
            producer.poll(0)
            if self._stopped.wait(PAUSE_S):
                break
        self.failed += producer.flush(self._patience_s)

    def _delivered(self, partition: int, value: int) -> Any:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[partition][value] = message.offset()
            else:
                self.failed += 1

        return delivered
