"""What the nodes of the built-in cluster left behind: their timelines, and the logs on their disks.

Nothing found on a disk is trusted: a torn tail or a batch whose checksum is wrong becomes a row that says so.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from harness import payload
from harness.broker.checkpoints import (
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    GarbledCheckpoint,
    parse_epochs,
    parse_offsets,
)
from harness.model import NO_EPOCH, NodeId, Offset, TopicPartition
from harness.replication.messages import EpochEntry
from harness.targets.log_dirs import found_in
from harness.wire import batches
from harness.wire.batches import CONTROL, TRANSACTIONAL, BatchHeader

Row = dict[str, Any]

_LENGTH = struct.Struct(">i")
_LENGTH_POSITION = 8
_PREFIX_BYTES = 12
_MARKER = struct.Struct(">hh")
_SEQUENCES = 2**31
_NO_PRODUCER = dict.fromkeys(("producer_id", "producer_epoch", "sequence", "control"))
_STATE_COLUMNS = (
    "role", "leader", "leader_epoch", "partition_epoch",
    "high_watermark", "log_end_offset", "log_start_offset", "isr",
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------- timeline


def timeline_rows(node: NodeId, timeline: Path, data_dir: Path, last_seen: Mapping[str, Any] | None) -> list[Row]:
    """Rows of ``schema.TIMELINE``, minus ``run``: what ``node`` wrote, and its ``final`` rows.

    ``last_seen`` is the node's last status, taken while it was alive; without one the final rows come from its disk.
    """
    rows = [row for line in _lines(timeline) if (row := _parsed(line)) is not None]
    finals = list(_final_rows_live(data_dir, last_seen) if last_seen else _final_rows_on_disk(data_dir))
    last = rows[-1] if rows else {"sequence": -1, "incarnation": 0, "time_ns": 0, "wall_ms": 0}
    for number, final in enumerate(finals, start=1):
        place = {"node": node, "sequence": last["sequence"] + number, "incarnation": last["incarnation"]}
        times = {key: final.get(key, last[key]) for key in ("time_ns", "wall_ms")}
        rows.append({**final, **place, **times, "kind": "final"})
    return rows


def storage_refusals(timeline: Path, incarnation: int) -> list[dict[str, Any]]:
    """What the node wrote, in that incarnation, about how its storage failed: an entry for each log directory.

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
    directories = dict(_replicas(data_dir)) if "replicas" in status else {}
    for replica in [*status.get("replicas", ()), *status.get("partitions", ())]:
        name = TopicPartition(replica["topic"], replica["partition"])
        epochs = _epochs_of_a_broker(directories.get(name)) if "replicas" in status else {}
        yield {
            "time_ns": status["monotonic_ns"],
            "wall_ms": status["wall_ms"],
            "topic": replica["topic"],
            "partition": replica["partition"],
            **{column: replica.get(column) for column in _STATE_COLUMNS},
            "detail": json.dumps({"source": "live"} | epochs),
        }


def _final_rows_on_disk(data_dir: Path) -> Iterator[Row]:
    for partition, directory in _replicas(data_dir):
        high_watermarks = _offsets(directory.parent, HIGH_WATERMARKS)
        log_starts = _offsets(directory.parent, LOG_STARTS)
        headers = [header for _, header in _batches_below(directory) if header is not None]
        first = headers[0].base_offset if headers else 0
        start = max(first, log_starts.get(partition, 0))
        yield {
            "topic": partition.topic,
            "partition": partition.partition,
            **dict.fromkeys(_STATE_COLUMNS),
            "role": "offline",
            "leader_epoch": _latest_epoch(directory),
            "high_watermark": high_watermarks.get(partition),
            "log_end_offset": headers[-1].end_offset if headers else start,
            "log_start_offset": start,
            "detail": json.dumps({"source": "disk"} | _epochs_said(directory)),
        }


def _offsets(log_dir: Path, checkpoint: str) -> dict[TopicPartition, Offset]:
    try:
        return parse_offsets((log_dir / checkpoint).read_text())
    except (OSError, GarbledCheckpoint):
        return {}


def _epochs_said(directory: Path) -> dict[str, list[list[int]]]:
    entries = _epochs(directory)
    return {} if entries is None else {"epochs": [[entry.leader_epoch, entry.start_offset] for entry in entries]}


def _epochs_of_a_broker(directory: Path | None) -> dict[str, Any]:
    """The epochs of a replica that its broker holds, none where it wrote none down; or why they are not known."""
    if directory is None:
        return {"epochs_unread": "the replica lies in no log directory"}
    if not (directory / LEADER_EPOCHS).exists():
        return {"epochs": []}
    return _epochs_said(directory) or {"epochs_unread": f"{LEADER_EPOCHS} is garbled"}


def _latest_epoch(directory: Path) -> int | None:
    entries = _epochs(directory)
    return entries[-1].leader_epoch if entries else None


def _epochs(directory: Path) -> tuple[EpochEntry, ...] | None:
    try:
        return parse_epochs((directory / LEADER_EPOCHS).read_text())
    except (OSError, GarbledCheckpoint):
        return None


# ---------------------------------------------------------------------------------------------------- replica logs


def replica_log_rows(node: NodeId, data_dir: Path) -> Iterator[Row]:
    """Rows of ``schema.REPLICA_LOGS``, minus ``run``: every record on the broker's disk, in order.

    Those below a log start that was raised (by retention, by request) are still there, but not part of the log.
    """
    for partition, directory in _replicas(data_dir):
        log_starts = _offsets(directory.parent, LOG_STARTS)
        start = log_starts.get(partition, 0)
        place = {"node": node, "topic": partition.topic, "partition": partition.partition}
        end_offset = 0
        for buffer, header in _batches_below(directory):
            rows = _garbage_row(end_offset) if header is None else _record_rows(partition, buffer, header)
            end_offset = end_offset if header is None else header.end_offset
            yield from ({**place, **row} for row in rows if row["offset"] >= start)


def _replicas(data_dir: Path) -> Iterator[tuple[TopicPartition, Path]]:
    """Every replica and where it lies, whichever of the broker's log directories that is in."""
    found = [path for log_dir in found_in(data_dir) for path in log_dir.glob("*-*") if path.is_dir()]
    for directory in sorted(found, key=lambda path: (path.name, path)):
        topic, _, number = directory.name.rpartition("-")
        if number.isdecimal():
            yield TopicPartition(topic, int(number)), directory


def _batches_below(directory: Path) -> Iterator[tuple[memoryview, BatchHeader | None]]:
    return chain.from_iterable(_batches(memoryview(path.read_bytes())) for path in sorted(directory.glob("*.log")))


def _batches(data: memoryview) -> Iterator[tuple[memoryview, BatchHeader | None]]:
    """Each batch of a segment file; None, last, for bytes that are no whole batch."""
    position = 0
    while position < len(data):
        size = _size(data[position:])
        try:
            header = batches.headers(data[position : position + size])[0] if size else None
        except batches.CorruptBatch:
            header = None
        yield data[position : position + size], header
        if header is None:
            return
        position += size


def _size(data: memoryview) -> int:
    """The size of the batch at the start of ``data``; 0 when it is not all there."""
    if len(data) < _PREFIX_BYTES:
        return 0
    size = _PREFIX_BYTES + int(_LENGTH.unpack_from(data, _LENGTH_POSITION)[0])
    return size if _PREFIX_BYTES < size <= len(data) else 0


def _record_rows(partition: TopicPartition, batch: memoryview, header: BatchHeader) -> Iterator[Row]:
    about: Row = {
        **_NO_PRODUCER,
        "leader_epoch": header.leader_epoch,
        "batch_base_offset": header.base_offset,
        "batch_crc": header.crc,
        "transactional": bool(header.attributes & TRANSACTIONAL),
    }
    if header.producer_id >= 0:
        about |= {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch}
    if not batches.verify(batch, header):
        yield {**about, "offset": header.base_offset, "value": None, "intact": False}
        return
    numbered = header.producer_id >= 0 and header.base_sequence >= 0
    for number, record in enumerate(batches.records(batch, header), header.base_sequence):
        if header.attributes & CONTROL:
            yield {**about, "offset": record.offset, "value": None, "intact": True, "control": _marker(record.key)}
            continue
        own = {"sequence": number % _SEQUENCES} if numbered else {}
        written = payload.decode(record.value)
        intact = written is not None and written.intact and (written.topic, written.partition) == partition
        yield {**about, **own, "offset": record.offset, "value": written.value if written else None, "intact": intact}


def _marker(key: bytes | None) -> str | None:
    """What a control record says, by its key: the version, and the type (``EndTransactionMarker``)."""
    kind = _MARKER.unpack_from(key)[1] if key is not None and len(key) >= _MARKER.size else None
    return None if kind is None else {0: "abort", 1: "commit"}.get(kind)


def _garbage_row(end_offset: Offset) -> Iterator[Row]:
    yield {
        "offset": end_offset,
        "leader_epoch": NO_EPOCH,
        "value": None,
        "batch_base_offset": end_offset,
        "batch_crc": 0,
        "intact": False,
    }
