"""Copies the logs of brokers that go on running, by a command of each, and reads what the copies hold."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import compacted
from harness.errors import EnvironmentFault
from harness.history.blocks import Block
from harness.model import Offset, TopicPartition, is_broker, node_id
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.replica_logs import ReplicaDisk, checkpointed, final_rows, replica_log_blocks

_CHECKPOINTED_S = 7.0
"""After how long a watermark is on a disk: Kafka's ``replica.high.watermark.checkpoint.interval.ms`` is 5 s."""

_LOOK_S = 0.5
_TRIES = 3
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
        self._topics: Collection[str] = ()
        self._copied: list[str] = []

    def try_it(self) -> None:
        """Copy what is beside the logs.

        Raises:
            EnvironmentFault: that of a broker cannot be copied.
        """
        for name, node in self._brokers.items():
            node.save_logs((), self._directory / name)

    def copy(self, topics: Collection[str], watermarks: Mapping[str, Mapping[TopicPartition, Offset]]) -> None:
        """Copy them, when the watermarks are on the disks, or there was time for that.

        Args:
            topics: of which; not of the compacted one, of which replicas hold different parts.
            watermarks: what leaders say, of the partitions of which each broker has a replica.

        Raises:
            EnvironmentFault: those of a broker cannot be copied.
        """
        self._topics = sorted(set(topics) - {compacted.TOPIC})
        deadline_s = time.monotonic() + _CHECKPOINTED_S
        for name, node in self._brokers.items():
            while time.monotonic() < deadline_s and self._lags(name, watermarks.get(name, {})):
                time.sleep(_LOOK_S)
            self._copy(name, node)
            self._copied.append(name)

    def ends(self, run: str) -> Iterator[dict[str, Any]]:
        """How each replica ended, by the checkpoints beside its log: rows of ``schema.TIMELINE``."""
        times = {"time_ns": time.monotonic_ns(), "wall_ms": time.time_ns() // _MS}
        for name in self._copied:
            about = {**times, "run": run, "node": node_id(name), "incarnation": 0, "kind": "final"}
            rows = (row for row in final_rows(self._directory / name) if row["topic"] in self._topics)
            yield from ({**row, **about, "sequence": sequence} for sequence, row in enumerate(rows))

    def blocks(self) -> Iterator[Block]:
        """Blocks of ``schema.REPLICA_LOGS``, minus ``run``."""
        disks = [ReplicaDisk(node_id(name), self._directory / name) for name in self._copied]
        return replica_log_blocks(disks, self._topics)

    def _lags(self, name: str, watermarks: Mapping[TopicPartition, Offset]) -> bool:
        """Whether a watermark that a broker has written down is not the leader's."""
        self._brokers[name].save_logs((), self._directory / name)
        known = checkpointed(self._directory / name)
        return any(known.get(place) != offset for place, offset in watermarks.items())

    def _copy(self, name: str, node: CommandedNode) -> None:
        """Copy those of a broker, again where a file was changed or removed meanwhile."""
        for left in reversed(range(_TRIES)):
            try:
                node.save_logs(self._topics, self._directory / name)
                return
            except EnvironmentFault:
                if not left:
                    raise
