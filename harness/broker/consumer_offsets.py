"""The positions that consumers have committed, kept where ZooKeeper would keep them: durably, with the controller.

Kafka did so up to version 0.8, and for its old consumer up to 0.11. There is no group coordinator yet, so only
consumers that assign their partitions themselves are served.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from harness.broker.ports import FileSystem
from harness.model import NO_EPOCH, NO_OFFSET, Offset, TopicPartition

CONSUMER_OFFSETS = "consumer-offsets.json"


class CommittedOffset(NamedTuple):
    """Where a group goes on: the next offset, the leader epoch of the record before it, and what it adds itself."""

    offset: Offset
    leader_epoch: int
    metadata: str


NOT_COMMITTED = CommittedOffset(NO_OFFSET, NO_EPOCH, "")


class ConsumerOffsets:
    """All groups of a cluster."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        text = files.read_text(CONSUMER_OFFSETS)
        for group, topic, partition, *committed in [] if text is None else json.loads(text):
            self._groups.setdefault(group, {})[TopicPartition(topic, partition)] = CommittedOffset(*committed)

    def commit(self, group: str, offsets: dict[TopicPartition, CommittedOffset]) -> None:
        """Keep ``offsets``, which replace older ones.

        Raises:
            OSError: they could not be written, and are not kept.
        """
        groups = {**self._groups, group: {**self._groups.get(group, {}), **offsets}}
        rows = [(name, *where, *kept) for name, ones in sorted(groups.items()) for where, kept in sorted(ones.items())]
        self._files.replace_text(CONSUMER_OFFSETS, json.dumps(rows), flush=True)
        self._groups = groups

    def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The offsets of these partitions; None: of all that the group has committed to."""
        kept = self._groups.get(group, {})
        return {name: kept.get(name, NOT_COMMITTED) for name in (sorted(kept) if partitions is None else partitions)}

    def status(self) -> list[dict[str, str | int]]:
        """What every group has committed, for the control channel."""
        return [
            {"group": group, "topic": name.topic, "partition": name.partition, "offset": kept.offset}
            for group, ones in sorted(self._groups.items())
            for name, kept in sorted(ones.items())
        ]
