"""Records for tests: a workload's, with all that is sent with it, and bytes that are none."""

from __future__ import annotations

from collections.abc import Iterable

from harness import payload
from harness.model import TopicPartition
from harness.payload import EVERYTHING, Carried, ProducerRecord
from harness.wire.batches import Record

CREATED_MS = 1_764_000_000_000
LEDGER = TopicPartition("ledger", 0)


def record(
    value: int,
    partition: TopicPartition = LEDGER,
    size: int = 0,
    *,
    carried: Carried = EVERYTHING,
    timestamp_ms: int = CREATED_MS,
) -> ProducerRecord:
    """A workload's record."""
    return payload.encode(value, *partition, size, timestamp_ms=timestamp_ms, carried=carried)


def bare(data: bytes) -> ProducerRecord:
    """A record of bytes that no workload sends."""
    return ProducerRecord(b"", data, (), CREATED_MS)


def stored(records: Iterable[ProducerRecord], base_offset: int = 0) -> list[Record]:
    """The records of a batch, from ``base_offset`` on."""
    return [
        Record(offset, one.timestamp_ms, one.key, one.value, tuple(one.headers))
        for offset, one in enumerate(records, base_offset)
    ]
