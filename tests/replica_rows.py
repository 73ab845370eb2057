"""The rows of ``replica_logs`` that a target, or a disk, gives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.history.blocks import Block, rows_of
from harness.history.schema import REPLICA_LOGS
from harness.model import NodeId, Offset, TopicPartition
from harness.observations import BrokerEvidence
from harness.targets.replica_logs import ReplicaDisk, replica_log_blocks


def rows_in(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Every row of ``blocks``."""
    return list(rows_of(REPLICA_LOGS, blocks))


def held(target: BrokerEvidence) -> list[dict[str, Any]]:
    """What the replicas of a target hold."""
    return rows_in(target.replica_logs())


def on_disk(node: NodeId, data_dir: Path, raised: dict[TopicPartition, Offset] | None = None) -> list[dict[str, Any]]:
    """What a broker's disk holds."""
    return rows_in(replica_log_blocks([ReplicaDisk(node, data_dir, raised or {})]))
