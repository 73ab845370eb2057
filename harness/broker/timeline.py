"""The timeline of a node's states: JSON lines with the columns of ``schema.TIMELINE`` minus ``run``.

One unbuffered write per row: a SIGKILL must not lose what was already true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from harness.clock import Clock
from harness.model import NodeId, Offset, TopicPartition


class ReplicaState(NamedTuple):
    """The columns of a row about a replica; ``role`` is leader, follower or offline."""

    role: str | None
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    high_watermark: Offset | None
    log_end_offset: Offset | None
    log_start_offset: Offset | None
    isr: tuple[NodeId, ...]


class StorageRefusal(NamedTuple):
    """The ``detail`` of a ``storage_failed`` row: the first operation that storage refused.

    Attributes:
        partition: ``ledger-0``; None when it was about no partition in particular.
        torn_bytes: how much of a refused append had been written before it was refused, and was cut off again.
        log_dir: the number of the log directory that failed; None on a controller, which has none.
        halts: whether that ends the node.
    """

    errno: int
    partition: str | None
    operation: str
    torn_bytes: int = 0
    log_dir: int | None = None
    halts: bool = True


class Timeline:
    """Numbers and stamps the rows of one incarnation of one node.

    Args:
        node: whose timeline it is.
        incarnation: how often the node had been started before.
        clock: stamps the rows; ``wall_ms`` is the node's own.
        write: takes one whole line, newline included, and must not buffer.
    """

    def __init__(self, node: NodeId, incarnation: int, clock: Clock, write: Callable[[bytes], object]) -> None:
        self._node = node
        self._incarnation = incarnation
        self._clock = clock
        self._write = write
        self._sequence = 0

    def about_node(self, kind: str, detail: Mapping[str, object] | None = None) -> None:
        """Add a row about the node itself."""
        self._add(kind, None, None, detail)

    def about_replica(
        self,
        kind: str,
        partition: TopicPartition,
        state: ReplicaState,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Add a row about ``partition`` as this node sees it."""
        self._add(kind, partition, state, detail)

    def _add(
        self,
        kind: str,
        partition: TopicPartition | None,
        state: ReplicaState | None,
        detail: Mapping[str, object] | None,
    ) -> None:
        topic, number = partition or (None, None)
        row = {
            "node": self._node,
            "sequence": self._sequence,
            "incarnation": self._incarnation,
            "time_ns": self._clock.monotonic_ns(),
            "wall_ms": self._clock.wall_ms(),
            "kind": kind,
            "topic": topic,
            "partition": number,
            **(_NO_STATE if state is None else state._asdict()),
            "detail": None if detail is None else json.dumps(detail),
        }
        self._sequence += 1
        self._write(_encode(row).encode() + b"\n")


_encode = json.JSONEncoder(separators=(",", ":")).encode
_NO_STATE: dict[str, None] = dict.fromkeys(ReplicaState._fields)
