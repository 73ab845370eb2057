"""What a workload is: clients that do things and write down everything they did and saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from harness.model import Offset, TopicPartition


class Workload(Protocol):
    """Clients against a bootstrap address, recording every operation.

    An implementation is one file in ``workloads/``, registered in ``workloads/__init__``. It never retries a
    measured operation and never calls a failed one ``fail`` without proof that it did not happen.
    """

    name: ClassVar[str]

    def start(self) -> None:
        """Start background load, where the workload has any, and the tailing consumers."""
        ...

    def send(self, per_partition: int, acks: int, timeout_s: float) -> int:
        """Send this many records to every partition, one at a time each; returns how many were acknowledged."""
        ...

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """Up to where (exclusive) the tailing consumers have read each partition; 0 where they have read nothing."""
        ...

    def stop(self) -> None:
        """Stop sending and tailing; waits for every outstanding completion. Idempotent."""
        ...

    def final_read(self, timeout_s: float) -> bool:
        """Read every partition from the start to its end with a fresh consumer.

        Returns whether the end was reached everywhere.
        """
        ...
