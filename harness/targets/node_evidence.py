"""Reads the timelines that the nodes of the built-in cluster have written; see also :mod:`.replica_logs`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness import compacted
from harness.broker.wire_tap import exchanges
from harness.history.blocks import Block
from harness.model import NodeId, TopicPartition, is_broker, node_id
from harness.targets.replica_logs import (
    STATE_COLUMNS,
    ReplicaDisk,
    Row,
    epochs_of,
    final_rows,
    replica_log_blocks,
    replicas,
)

NODE_TIMELINE = "timeline.jsonl"
"""Below the directory of a node: its timeline. Nodes of real Kafka have none."""
NODE_WIRE = "wire.jsonl"
"""Below the directory of a node: what its wire tap has recorded, if it has one."""
NODE_DATA = "data"
"""Below the directory of a node: its disk."""

_BROKER = "broker-"


def folder_of(node: str) -> str:
    """The name of a node's directory in that of its cluster."""
    return f"{_BROKER}{node}" if is_broker(node) else node


class LeftBehind(NamedTuple):
    """The evidence of a cluster, minus ``run``: its timeline, and what its replicas hold."""

    timeline: Iterator[Row]
    replica_logs: Iterator[Block]


def left_behind(cluster: Path) -> LeftBehind | None:
    """The evidence of a cluster that was killed together with the harness.

    The final rows come from the disks, as no live status was taken. None unless the directory ``cluster`` is a built-in
    cluster's.
    """
    found = sorted(cluster.glob(f"*/{NODE_TIMELINE}"))
    timelines = {node_id(path.parent.name.removeprefix(_BROKER)): path for path in found}
    if not timelines:
        return None
    disks = {node: path.with_name(NODE_DATA) for node, path in timelines.items()}
    return LeftBehind(
        (row for node, path in timelines.items() for row in timeline_rows(node, path, disks[node], None)),
        replica_log_blocks(ReplicaDisk(node, disk) for node, disk in disks.items()),
    )


def taps_left_behind(cluster: Path) -> Iterator[Row] | None:
    """What the wire taps of a cluster recorded that was killed with the harness, minus ``run``; None: it had none."""
    files = {node_id(path.parent.name.removeprefix(_BROKER)): path for path in sorted(cluster.glob(f"*/{NODE_WIRE}"))}
    if not files:
        return None
    return (row for node, path in files.items() for row in wire_rows(node, path))


def wire_rows(node: NodeId, path: Path) -> Iterator[Row]:
    """Rows of ``schema.WIRE``, minus ``run``, of the tap of ``node`` that has written ``path``; none without a file."""
    if path.exists():
        with path.open("rb") as lines:
            yield from exchanges(node, lines)


def timeline_rows(node: NodeId, timeline: Path, data_dir: Path, last_seen: Mapping[str, Any] | None) -> list[Row]:
    """Rows of ``schema.TIMELINE``, minus ``run``: those that ``node`` wrote, and its ``final`` rows.

    Every life ends with a final row without a partition, by which a checker detects missing last rows.

    ``last_seen`` is the node's last status, taken while it was alive; without one the final rows come from its disk.
    """
    rows = [row for line in _lines(timeline) if (row := _parsed(line)) is not None]
    lives = {row["incarnation"]: row for row in rows}
    finals = list(_final_rows_live(data_dir, last_seen) if last_seen else final_rows(data_dir))
    last = rows[-1] if rows else {"sequence": -1, "incarnation": 0, "time_ns": 0, "wall_ms": 0}
    ends = [_final_row(node, row, 1, {}) for row in lives.values()]
    return [*rows, *ends, *(_final_row(node, last, number, final) for number, final in enumerate(finals, start=2))]


def _final_row(node: NodeId, last: Row, number: int, final: Row) -> Row:
    """A final row after the last row of a life; one without a partition marks the end of that life."""
    place = {"node": node, "sequence": last["sequence"] + number, "incarnation": last["incarnation"]}
    times = {key: final.get(key, last[key]) for key in ("time_ns", "wall_ms")}
    unknown = dict.fromkeys(("topic", "partition", "detail", *STATE_COLUMNS))
    return {**unknown, **final, **place, **times, "kind": "final"}


def storage_refusals(timeline: Path, incarnation: int) -> list[dict[str, Any]]:
    """The storage failures that the node recorded in that incarnation, one for each log directory.

    See :class:`harness.broker.timeline.StorageRefusal`.
    """
    rows = [row for row in map(_parsed, _lines(timeline)) if row is not None and row["kind"] == "storage_failed"]
    return [json.loads(row["detail"]) for row in rows if row["incarnation"] == incarnation]


def _lines(timeline: Path) -> list[str]:
    return timeline.read_text(errors="replace").splitlines() if timeline.exists() else []


def _parsed(line: str) -> Row | None:
    """A timeline row, or None for a line torn by a crash; the gap it leaves in ``sequence`` gives it away."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _final_rows_live(data_dir: Path, status: Mapping[str, Any]) -> Iterator[Row]:
    directories = dict(replicas(data_dir)) if "replicas" in status else {}
    for replica in [*status.get("replicas", ()), *status.get("partitions", ())]:
        name = TopicPartition(replica["topic"], replica["partition"])
        if name.topic == compacted.TOPIC:
            continue
        epochs = epochs_of(directories.get(name)) if "replicas" in status else {}
        yield {
            "time_ns": status["monotonic_ns"],
            "wall_ms": status["wall_ms"],
            "topic": replica["topic"],
            "partition": replica["partition"],
            **{column: replica.get(column) for column in STATE_COLUMNS},
            "detail": json.dumps({"source": "live"} | epochs),
        }
