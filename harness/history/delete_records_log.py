"""Records the DeleteRecords requests of a run and how each ended: ``orders`` in ``run.json``.

They are few, so they are no table: both engines read them from ``run.json``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from harness.model import NodeId, Offset, TopicPartition

GAVE_UP = "_TIMED_OUT"
"""librdkafka's error name for a request that timed out without an answer."""


LOST = "_TRANSPORT"
"""librdkafka's error name for a request whose connection was lost or never established."""


class DeleteRecordsLog:
    """The DeleteRecords requests of one run; thread-safe.

    Args:
        now_ns: the clock of the run's tables.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []

    def sent(self, where: TopicPartition, before: Offset | None, timeout_ms: int, node: NodeId | None = None) -> int:
        """A client is about to send a DeleteRecords request.

        Args:
            where: the partition.
            before: the first offset to keep; None: the high watermark.
            timeout_ms: how long the leader may wait for the followers.
            node: the broker that receives it; None: the client finds the leader.

        Returns:
            the request's number, for :meth:`ended`.
        """
        with self._lock:
            self._rows.append({
                "topic": where.topic, "partition": where.partition, "before": before, "timeout_ms": timeout_ms,
                "node": node, "invoked_ns": self._now_ns(), "completed_ns": None, "error": None, "low_watermark": None,
            })  # fmt: skip
            return len(self._rows) - 1

    def ended(self, order: int, error: str | None, low_watermark: Offset | None = None) -> None:
        """The answer has arrived, or the client has given up; only the first end counts.

        Args:
            order: what :meth:`sent` returned.
            error: its name, :data:`GAVE_UP` of a client that gives up; None: the records are deleted.
            low_watermark: the smallest log start offset of the replicas, from an answer without an error.
        """
        with self._lock:
            row = self._rows[order]
            if row["completed_ns"] is None:
                low_watermark = low_watermark if error is None else None
                row |= {"completed_ns": self._now_ns(), "error": error, "low_watermark": low_watermark}

    @property
    def is_waiting(self) -> bool:
        """Whether a request is still unanswered."""
        with self._lock:
            return any(row["completed_ns"] is None for row in self._rows)

    def rows(self) -> Sequence[dict[str, Any]]:
        """Every request, in the order of sending, as in ``run.json``."""
        with self._lock:
            return [dict(row) for row in self._rows]
