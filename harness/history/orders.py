"""The DeleteRecords that clients sent in a run, and what came of each: ``orders`` in ``run.json``.

There are few of them, so they are no table: both engines read them where they read what else ``run.json`` says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from harness.model import NodeId, Offset, TopicPartition

GAVE_UP = "_TIMED_OUT"
"""The error of an order whose client has waited in vain for any answer: librdkafka's name for that."""


LOST = "_TRANSPORT"
"""The error of an order whose connection was lost, or never stood: librdkafka's name for that."""


class Orders:
    """Takes down the orders of one run; any thread may call it.

    Args:
        now_ns: the time of the run's tables.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []

    def sent(self, where: TopicPartition, before: Offset | None, timeout_ms: int, node: NodeId | None = None) -> int:
        """A client is about to ask for what lies before ``before`` to be deleted; None: before the high watermark.

        Args:
            where: the partition.
            before: the first offset to stay.
            timeout_ms: how long its leader may let the client wait for the followers.
            node: who is asked; None: the client finds the leader.

        Returns:
            the order's number, for :meth:`ended`.
        """
        with self._lock:
            self._rows.append({
                "topic": where.topic, "partition": where.partition, "before": before, "timeout_ms": timeout_ms,
                "node": node, "invoked_ns": self._now_ns(), "completed_ns": None, "error": None, "low_watermark": None,
            })  # fmt: skip
            return len(self._rows) - 1

    def ended(self, order: int, error: str | None, low_watermark: Offset | None = None) -> None:
        """The answer has come, or its client has given up; only the first end counts.

        Args:
            order: what :meth:`sent` returned.
            error: its name; None: the records are deleted. Of a client that gives up: :data:`GAVE_UP`.
            low_watermark: where every log begins by now, according to an answer without an error.
        """
        with self._lock:
            row = self._rows[order]
            if row["completed_ns"] is None:
                low_watermark = low_watermark if error is None else None
                row |= {"completed_ns": self._now_ns(), "error": error, "low_watermark": low_watermark}

    @property
    def is_waiting(self) -> bool:
        """Whether some client still waits for its answer."""
        with self._lock:
            return any(row["completed_ns"] is None for row in self._rows)

    def rows(self) -> Sequence[dict[str, Any]]:
        """Every order, in the order in which they were sent, as ``run.json`` has them."""
        with self._lock:
            return [dict(row) for row in self._rows]
