"""Committed consumer offsets, which the controller stores durably, as ZooKeeper did.

Kafka did so up to version 0.8, and for its old consumer up to 0.11. There is no group coordinator yet, so only
consumers that assign their partitions themselves are served. A commit is one row of a log, whatever else is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.broker.ports import FileSystem
from harness.broker.row_log import RowLog
from harness.model import NO_EPOCH, NO_OFFSET, Offset, TopicPartition

CONSUMER_OFFSETS = "consumer-offsets"

MAX_KEPT_BYTES = 16 * 1_048_576
"""What may be kept of all groups: some 30,000 offsets. Kafka forgets those of groups that have been silent for long."""

_OVERHEAD_BYTES = 512


class CommittedOffset(NamedTuple):
    """Where a group goes on: the next offset, the leader epoch of the record before it, and what it adds itself."""

    offset: Offset
    leader_epoch: int
    metadata: str


Committed = Mapping[TopicPartition, CommittedOffset]

NOT_COMMITTED = CommittedOffset(NO_OFFSET, NO_EPOCH, "")


class ConsumerOffsets:
    """All groups of a cluster.

    Raises:
        OSError: they cannot be read.
    """

    def __init__(self, files: FileSystem) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._bytes = 0
        self._count = 0
        self._log = RowLog(files, CONSUMER_OFFSETS)
        for group, offsets in self._log.recovered:
            self._keep(group, {TopicPartition(*name): CommittedOffset(*kept) for *name, kept in offsets})

    def has_room_for(self, group: str, offsets: Committed) -> bool:
        """Whether ``MAX_KEPT_BYTES`` allow that ``offsets`` are kept, too."""
        return self._bytes + self._growth(group, offsets) <= MAX_KEPT_BYTES

    def commit(self, group: str, offsets: Committed) -> None:
        """Keep ``offsets``, which replace older ones, all or none of them.

        Raises:
            OSError: they could not be written, and are not kept.
        """
        self._log.append(_row(group, offsets))
        self._keep(group, offsets)
        if self._log.is_outdated(self._count):
            self._log.compact(_row(name, ones) for name, ones in sorted(self._groups.items()))

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

    def _keep(self, group: str, offsets: Committed) -> None:
        self._bytes += self._growth(group, offsets)
        kept = self._groups.setdefault(group, {})
        self._count -= len(kept)
        kept.update(offsets)
        self._count += len(kept)

    def _growth(self, group: str, offsets: Committed) -> int:
        before = self._groups.get(group, {})
        return sum(
            _size(group, name, after) - (_size(group, name, before[name]) if name in before else 0)
            for name, after in offsets.items()
        )


def _row(group: str, offsets: Committed) -> Any:
    return [group, [[*name, kept] for name, kept in sorted(offsets.items())]]


def _size(group: str, name: TopicPartition, kept: CommittedOffset) -> int:
    return len(group) + len(name.topic) + len(kept.metadata) + _OVERHEAD_BYTES
