"""Kafka's checkpoint files, byte for byte: a version line, a count line, then one entry per line.

``leader-epoch-checkpoint`` (LeaderEpochCheckpointFile.java): ``<epoch> <start offset>``.
``replication-offset-checkpoint`` (OffsetCheckpointFile.java): ``<topic> <partition> <high watermark>``; and so the
recovery points, the log start offsets, and the offsets up to which logs are compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from harness.model import Offset, TopicPartition
from harness.replication.messages import EpochEntry

LEADER_EPOCHS = "leader-epoch-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"

_VERSION = "0"


class GarbledCheckpoint(Exception):
    """A checkpoint file does not have the promised form; its content must not be used."""


def format_epochs(entries: Iterable[EpochEntry]) -> str:
    """The text of a ``leader-epoch-checkpoint``."""
    return _format([f"{epoch} {start}" for epoch, start in entries])


def parse_epochs(text: str) -> tuple[EpochEntry, ...]:
    """The entries of a ``leader-epoch-checkpoint``.

    Raises:
        GarbledCheckpoint: including entries whose epochs or offsets do not rise.
    """
    entries = [EpochEntry(*map(_number, words)) for words in _parse(text, words=2)]
    for before, after in pairwise(entries):
        if after.leader_epoch <= before.leader_epoch or after.start_offset < before.start_offset:
            raise GarbledCheckpoint(f"{after} follows {before}")
    return tuple(entries)


def format_offsets(offsets: Mapping[TopicPartition, Offset]) -> str:
    """The text of a checkpoint of one offset for each partition."""
    return _format([f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())])


def parse_offsets(text: str) -> dict[TopicPartition, Offset]:
    """The offset of each partition in such a checkpoint.

    Raises:
        GarbledCheckpoint: see the class.
    """
    return {
        TopicPartition(topic, _number(partition)): _number(offset) for topic, partition, offset in _parse(text, words=3)
    }


def _format(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines))


def _parse(text: str, words: int) -> list[list[str]]:
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):
        raise GarbledCheckpoint(f"version or count line: {lines[:2]}")
    entries = [line.split(" ") for line in lines[2:]]
    if any(len(entry) != words for entry in entries):
        raise GarbledCheckpoint(f"an entry has not {words} words")
    return entries


def _number(text: str) -> int:
    if not text.isdecimal():
        raise GarbledCheckpoint(f"{text!r} is not a number")
    return int(text)
