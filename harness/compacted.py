"""The topic whose log is compacted, and its records, of which several have one key.

A value is congruent, by :data:`SLOTS`, to twice the number of its key, and one more for a tombstone. The record has a
header, :data:`harness.payload.MARK`, with a hash of all of it: so a tombstone, which has no content, shows which write
it is, too.
"""

from __future__ import annotations

from harness.model import TopicPartition
from harness.payload import MARK, ProducerRecord, mark

TOPIC = "seawall-compacted"
"""Its name. Of its records not all stay, so no rule judges it that takes each for one that must be there."""

READ_WITHIN_NS = 600_000_000_000
"""How long after the final reading of it has begun its replicas are read from the disks, at the latest."""

SLOTS = 1 << 16
"""Exclusive: twice the number of a key, and the mark of a tombstone, are below."""


def is_tombstone(value: int) -> bool:
    """Whether the record of ``value`` has no content."""
    return value % 2 == 1


def key_number(value: int) -> int:
    """The number of the key of the record of ``value``."""
    return value % SLOTS // 2


def reader_name(process: int) -> str:
    """The name of the consumer by which a process reads the whole log."""
    return f"reader-{process}"


def record(value: int, place: TopicPartition, size: int, timestamp_ms: int) -> ProducerRecord:
    """The record of ``value`` for ``place``; where it has content, that is filled up to ``size`` bytes."""
    key = b"key-%d" % key_number(value)
    content = None if is_tombstone(value) else (b"%d" % value).ljust(size, b".")
    headers = ((MARK, mark(value, place, key, content, ())),)
    return ProducerRecord(key, content, headers, timestamp_ms)
