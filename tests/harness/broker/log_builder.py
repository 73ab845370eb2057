"""Logs on real files, and short ways to write and read them."""

from __future__ import annotations

from typing import Any

from harness.broker.files import Disk
from harness.broker.segments import NOTHING_CHECKPOINTED, Batches, Checkpointed, LogPolicy, SegmentLog
from harness.broker.settings import NEVER
from harness.model import Offset
from harness.replication.messages import BatchSpan
from harness.wire import batches as wire

LARGE = 1 << 30


def open_log(
    disk: Disk, segment_bytes: int = LARGE, checkpointed: Checkpointed = NOTHING_CHECKPOINTED, **policy: Any
) -> SegmentLog:
    policy = {"roll_ms": NEVER, "flush_messages": NEVER} | policy
    return SegmentLog(disk, "t-0", LogPolicy(segment_bytes, **policy), checkpointed)


def append(log: SegmentLog, *counts: int, epoch: int = 0, timestamp_ms: int = 0) -> None:
    """Append one batch per count, in one write, as a leader does: the producer's offsets are 0, its epoch -1."""
    batches = [wire.build([b"v"] * count, timestamp_ms=timestamp_ms) for count in counts]
    spans, end = [], log.log_end_offset
    for count in counts:
        spans.append(BatchSpan(end, end + count, epoch))
        end += count
    buffer = memoryview(bytearray(b"".join(batches)))
    log.append(Batches(buffer, wire.headers(buffer)), spans)


def read(log: SegmentLog, offset: Offset, end: Offset = LARGE, max_bytes: int = LARGE) -> list[tuple[Offset, Offset]]:
    data = log.locate(offset, end, max_bytes, at_least_one=True).read()
    return [(header.base_offset, header.end_offset) for header in wire.headers(data)]
