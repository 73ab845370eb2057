"""Reads the replicas' logs, in every message format, and the checkpoints from a broker's log directories.

It trusts nothing on a disk: a torn tail or a batch with a wrong checksum becomes a row of its own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from harness import compacted, payload
from harness.broker.checkpoints import (
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    RECOVERY_POINTS,
    GarbledCheckpoint,
    parse_epochs,
    parse_offsets,
)
from harness.broker.codecs import inflate
from harness.broker.log_directory import CLEAN_SHUTDOWN
from harness.history.blocks import Block
from harness.model import NO_EPOCH, NodeId, Offset, TopicPartition
from harness.payload import StoredRecord
from harness.replication.messages import EpochEntry
from harness.targets.log_dirs import found_in
from harness.wire.batches import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader, CorruptBatch, Record, stored
from harness.wire.messages.quorum import METADATA_TOPIC

Row = dict[str, Any]

STATE_COLUMNS = (
    "role", "leader", "leader_epoch", "partition_epoch",
    "high_watermark", "log_end_offset", "log_start_offset", "isr",
)  # fmt: skip
"""The columns of ``schema.TIMELINE`` with a replica's state."""

_METADATA = TopicPartition(METADATA_TOPIC, 0)
_MARKER_TYPE = slice(2, 4)
_PREFIX_BYTES = 12
"""Of an offset and a length, which is none of a record's where it is zero."""

_SEQUENCES = 2**31
_NO_BATCH: tuple[memoryview, None] = memoryview(b""), None
_NONE_RAISED: Mapping[TopicPartition, Offset] = {}

_Known = dict[tuple[bytes, Offset], Block]
"""By the bytes of a batch, and where it ends, its rows: the replicas of a partition hold the same batches."""


def replicas(data_dir: Path) -> Iterator[tuple[TopicPartition, Path]]:
    """Every replica and its directory, from all log directories of the broker.

    KRaft's metadata log is left out: it is replicated by other rules. So is the compacted one, of which replicas hold
    different parts.
    """
    return ((name, path) for name, path in _with_compacted(data_dir) if name.topic != compacted.TOPIC)


def _with_compacted(data_dir: Path) -> Iterator[tuple[TopicPartition, Path]]:
    found = [path for log_dir in found_in(data_dir) for path in log_dir.glob("*-*") if path.is_dir()]
    for directory in sorted(found, key=lambda path: (path.name, path)):
        topic, _, number = directory.name.rpartition("-")
        if number.isdecimal() and topic != METADATA_TOPIC:
            yield TopicPartition(topic, int(number)), directory


# ---------------------------------------------------------------------------------------------------------- the records


class ReplicaDisk(NamedTuple):
    """A broker's disk.

    Attributes:
        node: whose it is.
        data_dir: its files.
        raised: log start offsets that the broker had not checkpointed when it ended.
    """

    node: NodeId
    data_dir: Path
    raised: Mapping[TopicPartition, Offset] = _NONE_RAISED


def replica_log_blocks(disks: Iterable[ReplicaDisk], topics: Container[str] | None = None) -> Iterator[Block]:
    """Blocks of ``schema.REPLICA_LOGS``, minus ``run``: every record on the brokers' disks.

    The replicas of a partition follow each other, each in order. Records below a raised log start offset (by
    retention, by request) are no part of the log. ``topics``: of which alone; None: of all.
    """
    found: dict[TopicPartition, list[tuple[ReplicaDisk, Path]]] = defaultdict(list)
    for disk in disks:
        for partition, directory in _with_compacted(disk.data_dir):
            if topics is None or partition.topic in topics:
                found[partition].append((disk, directory))
    for partition, copies in sorted(found.items()):
        known: _Known = {}
        for disk, directory in copies:
            start = max(_offsets(directory.parent, LOG_STARTS).get(partition, 0), disk.raised.get(partition, 0))
            for block in _log_blocks(disk.node, partition, directory, known):
                yield from _at_least(start, block)


def metadata_log_blocks(node: NodeId, directory: Path) -> Iterator[Block]:
    """The rows of a copy of KRaft's metadata log, if there is one, whose records are not a workload's."""
    yield from _log_blocks(node, _METADATA, directory, {})


def _at_least(start: Offset, block: Block) -> Iterator[Block]:
    """What of a block is at ``start`` or above."""
    offsets = block.columns["offset"]
    if offsets and offsets[0] >= start:
        yield block
    elif places := [place for place, offset in enumerate(offsets) if offset >= start]:
        yield block.kept(places)


def _log_blocks(node: NodeId, partition: TopicPartition, directory: Path, known: _Known) -> Iterator[Block]:
    segments = _segments(directory)
    if partition.topic == compacted.TOPIC:  # a pass that was stopped may have removed what it has not renamed yet
        segments = sorted((*segments, *directory.glob("*.log.swap")))
    end_offset, _ = _span(segments)
    for (piece, header), (_, next_header) in pairwise(chain(_batches_in(segments), [_NO_BATCH])):
        if header is None:
            block = _garbage(end_offset)
        else:
            end_offset = _end_offset(header, next_header)
            key = (bytes(piece), end_offset)
            block = known[key] if key in known else _batch(partition, piece, header, end_offset)
            known[key] = block
        yield block.but(node=node, topic=partition.topic, partition=partition.partition)


def _end_offset(header: BatchHeader, next_header: BatchHeader | None) -> Offset:
    """Where a batch ends (exclusive). Its header may be damaged.

    So the end is at most where the next batch begins, and the batch has no more records than bytes.
    """
    bound = header.base_offset + header.size if next_header is None else next_header.base_offset
    return max(header.base_offset + 1, min(header.end_offset, bound))


def _segments(directory: Path) -> Sequence[Path]:
    return sorted(directory.glob("*.log"))


def _span(segments: Sequence[Path]) -> tuple[Offset, Offset]:
    """Where the first and the last segment begin, by their names."""
    offsets = [int(path.stem) for path in segments if path.stem.isdecimal()] or [0]
    return offsets[0], offsets[-1]


def _batches_in(segments: Sequence[Path]) -> Iterator[tuple[memoryview, BatchHeader | None]]:
    for path in segments:
        yield from _batches(memoryview(path.read_bytes()), may_be_preallocated=path == segments[-1])


def _batches(log: memoryview, *, may_be_preallocated: bool) -> Iterator[tuple[memoryview, BatchHeader | None]]:
    """Each batch of a segment file; None, last, for bytes that are no whole batch.

    An active segment may be preallocated with zeros (``log.preallocate``), which Kafka truncates when it rolls: zeros
    after its last batch are no damage.
    """
    for piece in stored.pieces(log):
        try:
            header = stored.header(piece, inflate)
        except CorruptBatch:
            if not (may_be_preallocated and _is_blank(piece)):
                yield piece, None
            return
        yield piece, header


def _is_blank(piece: memoryview) -> bool:
    return len(piece) >= _PREFIX_BYTES and not bytes(piece).strip(b"\0")


def _batch(partition: TopicPartition, batch: memoryview, header: BatchHeader, end_offset: Offset) -> Block:
    """A row for each record of a batch, or for each offset of a damaged one."""
    about: Row = {
        "leader_epoch": header.leader_epoch,
        "batch_base_offset": header.base_offset,
        "batch_crc": header.crc,
        "transactional": bool(header.attributes & TRANSACTIONAL),
    }
    if header.producer_id >= 0:
        about |= {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch}
    if stored.verify(batch, header):
        try:
            return _records(partition, list(stored.records(batch, header, inflate)), header, about)
        except CorruptBatch:
            pass
    offsets = range(header.base_offset, end_offset)
    return Block({**about, "intact": False}, {"offset": offsets}, len(offsets))


def _records(partition: TopicPartition, records: Sequence[Record], header: BatchHeader, about: Row) -> Block:
    columns: dict[str, Sequence[Any]] = {"offset": [record.offset for record in records]}
    if header.attributes & CONTROL:
        columns["control"] = [_marker(record.key) for record in records]
        return Block({**about, "intact": True}, columns, len(records))
    if header.producer_id >= 0 and header.base_sequence >= 0:
        columns["sequence"] = [(header.base_sequence + place) % _SEQUENCES for place in range(len(records))]
    if partition == _METADATA:
        return Block({**about, "intact": True}, columns, len(records))
    keeps_times = not header.attributes & LOG_APPEND_TIME
    judged = [
        payload.judge(
            StoredRecord(record.key, record.value, record.headers, record.timestamp if keeps_times else None), partition
        )
        for record in records
    ]
    columns["value"] = [value for value, _ in judged]
    columns["intact"] = [intact for _, intact in judged]
    return Block(about, columns, len(records))


def _marker(key: bytes | None) -> str | None:
    """The type of a control record, by its key: a version and a type (``EndTransactionMarker``)."""
    kind = (key or b"")[_MARKER_TYPE]
    return {b"\0\0": "abort", b"\0\1": "commit"}.get(kind)


def _garbage(end_offset: Offset) -> Block:
    about = {"leader_epoch": NO_EPOCH, "batch_base_offset": end_offset, "batch_crc": 0, "intact": False}
    return Block(about, {"offset": [end_offset]}, 1)


# ------------------------------------------------------------------------------------------------------ the checkpoints


def checkpointed(log_dir: Path) -> Mapping[TopicPartition, Offset]:
    """The high watermarks that a broker has written down in a log directory; none where that is missing or garbled."""
    return _offsets(log_dir, HIGH_WATERMARKS)


def final_rows(data_dir: Path) -> Iterator[Row]:
    """The ``final`` rows of a dead node, without place and times, from the checkpoints on its disk."""
    for partition, directory in replicas(data_dir):
        log_dir = directory.parent
        segments = _segments(directory)
        headers = [header for _, header in _batches_in(segments) if header is not None]
        first_segment, last_segment = _span(segments)
        first = headers[0].base_offset if headers else first_segment
        start = max(first, _offsets(log_dir, LOG_STARTS).get(partition, 0))
        yield {
            "topic": partition.topic,
            "partition": partition.partition,
            **dict.fromkeys(STATE_COLUMNS),
            "role": "offline",
            "leader_epoch": _latest_epoch(directory),
            "high_watermark": _offsets(log_dir, HIGH_WATERMARKS).get(partition),
            "log_end_offset": headers[-1].end_offset if headers else max(start, last_segment),
            "log_start_offset": start,
            "detail": json.dumps({"source": "disk"} | _closing(log_dir, partition) | _epochs_said(directory)),
        }


def _closing(log_dir: Path, partition: TopicPartition) -> dict[str, Any]:
    """The broker's recovery point, and whether it had closed the log directory cleanly."""
    recovery_point = _offsets(log_dir, RECOVERY_POINTS).get(partition)
    return {"recovery_point": recovery_point, "clean_shutdown": (log_dir / CLEAN_SHUTDOWN).exists()}


def epochs_of(directory: Path | None) -> dict[str, Any]:
    """The leader epochs of a replica in its checkpoint, or why they are unknown."""
    if directory is None:
        return {"epochs_unread": "the replica lies in no log directory"}
    if not (directory / LEADER_EPOCHS).exists():
        return {"epochs": []}
    return _epochs_said(directory) or {"epochs_unread": f"{LEADER_EPOCHS} is garbled"}


def _epochs_said(directory: Path) -> dict[str, list[list[int]]]:
    entries = _epochs(directory)
    return {} if entries is None else {"epochs": [[entry.leader_epoch, entry.start_offset] for entry in entries]}


def _latest_epoch(directory: Path) -> int | None:
    entries = _epochs(directory)
    return entries[-1].leader_epoch if entries else None


def _epochs(directory: Path) -> tuple[EpochEntry, ...] | None:
    try:
        return parse_epochs((directory / LEADER_EPOCHS).read_text(errors="replace"))
    except (OSError, GarbledCheckpoint):
        return None


def _offsets(log_dir: Path, checkpoint: str) -> dict[TopicPartition, Offset]:
    try:
        return parse_offsets((log_dir / checkpoint).read_text(errors="replace"))
    except (OSError, GarbledCheckpoint):
        return {}
