"""Converts the status from a node's control channel into views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.model import NodeId, Offset, TopicPartition
from harness.target import PartitionView, ReplicaView

ELECTED = frozenset({0, 84})
"""The error codes after which the requested leader leads: NONE and ELECTION_NOT_NEEDED."""


def partition_of(row: Mapping[str, Any]) -> TopicPartition:
    """The partition that a row of a status is about."""
    return TopicPartition(row["topic"], row["partition"])


def committed(statuses: Iterable[Mapping[str, Any]], group: str) -> dict[TopicPartition, Offset]:
    """What a group has committed, by the ``statuses`` of brokers: of two coordinators the newer one knows."""
    newest: dict[int, Mapping[str, Any]] = {}
    for led in (led for status in statuses for led in status.get("groups", ())):
        known = newest.get(led["partition"])
        if known is None or led["leader_epoch"] > known["leader_epoch"]:
            newest[led["partition"]] = led
    rows = [row for led in newest.values() for row in led["commits"]]
    return {partition_of(row): row["offset"] for row in rows if row["group"] == group}


def partition_view(row: Mapping[str, Any]) -> PartitionView:
    """A row of the controller's ``partitions``."""
    return PartitionView(
        leader=NodeId(row["leader"]),
        leader_epoch=row["leader_epoch"],
        isr=tuple(map(NodeId, row["isr"])),
        replicas=tuple(map(NodeId, row["replicas"])),
        elr=tuple(map(NodeId, row.get("elr") or ())),
    )


def replica_view(row: Mapping[str, Any]) -> ReplicaView:
    """A row of a broker's ``replicas``."""
    return ReplicaView(
        role=row["role"],
        leader=NodeId(row["leader"]),
        leader_epoch=row["leader_epoch"],
        high_watermark=row["high_watermark"],
        log_end_offset=row["log_end_offset"],
        log_start_offset=row["log_start_offset"],
        isr=tuple(map(NodeId, row["isr"])),
        remote_log_end_offsets={NodeId(int(k)): v for k, v in (row.get("remote_log_end_offsets") or {}).items()},
    )
