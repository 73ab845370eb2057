"""Copies the logs of brokers that go on running, by a command of each, and reads what the copies hold."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import compacted
from harness.errors import EnvironmentFault
from harness.history.blocks import Block
from harness.model import is_broker, node_id
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.replica_logs import ReplicaDisk, final_rows, replica_log_blocks

COMMAND = "logs"
_CHECKPOINTED_S = 6.0
"""After how long a watermark is on a disk: Kafka's ``replica.high.watermark.checkpoint.interval.ms`` is 5 s."""

_AGAIN_S = 1.0
_MS = 1_000_000


class CopiedLogs:
    """The logs of some topics, as they were on the disks of a cluster that had come to rest.

    Args:
        nodes: all of the cluster; of those that are brokers the logs are copied.
        directory: for the copies.
    """

    def __init__(self, nodes: Mapping[str, CommandedNode], directory: Path) -> None:
        self._brokers = {name: node for name, node in nodes.items() if is_broker(name)}
        self._directory = directory
        self._topics: frozenset[str] = frozenset()
        self._problem: EnvironmentFault | None = None

    def copy(self, topics: Collection[str]) -> None:
        """Copy them once; what goes wrong is raised by :meth:`ends` and :meth:`blocks`.

        Again until each replica's watermark on the disk is the end of its log, or there was time to write it.
        """
        if self._topics:
            return
        self._topics = frozenset(topics)
        deadline_s = time.monotonic() + _CHECKPOINTED_S
        try:
            while True:
                is_last = time.monotonic() >= deadline_s
                for name, node in self._brokers.items():
                    node.save_logs(sorted(self._topics), self._directory / name)
                if is_last or all(row["high_watermark"] == row["log_end_offset"] for row in self._rows()):
                    return
                time.sleep(_AGAIN_S)
        except EnvironmentFault as problem:
            self._problem = problem

    def ends(self, run: str) -> Iterator[dict[str, Any]]:
        """How each replica ended, by the checkpoints beside its log: rows of ``schema.TIMELINE``.

        Raises:
            EnvironmentFault: the logs of a broker could not be copied.
        """
        if self._problem is not None:
            raise self._problem
        times = {"time_ns": time.monotonic_ns(), "wall_ms": time.time_ns() // _MS}
        return ({**row, **times, "run": run, "incarnation": 0, "kind": "final"} for row in self._rows())

    def blocks(self) -> Iterator[Block]:
        """Blocks of ``schema.REPLICA_LOGS``, minus ``run``. Raises as :meth:`ends`."""
        if self._problem is not None:
            raise self._problem
        disks = [ReplicaDisk(node_id(name), self._directory / name) for name in self._brokers]
        return replica_log_blocks(disks, frozenset(filter(self._is_compared, self._topics)))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for name in self._brokers if self._topics else ():
            rows = (row for row in final_rows(self._directory / name) if self._is_compared(row["topic"]))
            yield from ({**row, "node": node_id(name), "sequence": number} for number, row in enumerate(rows))

    def _is_compared(self, topic: str) -> bool:
        """Whether it is a topic of the run of which replicas hold the same; those of a compacted one do not."""
        return topic in self._topics and not topic.endswith(compacted.TOPIC)
