"""Kafka's log cleaner: compacts the logs of topics with ``cleanup.policy=compact``, the filthiest first.

A log has a clean part, which one pass has compacted, and behind it a dirty one. A pass finds the last record of each
key in the dirty part, and rewrites both. It never touches the segment that is appended to, nor anything at or above the
last stable offset, which is never above the high watermark; with ``min.compaction.lag.ms``, nor what is younger.

One log is compacted in one turn of the broker, from memory: logs are small here. Kafka has threads for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from harness.broker.compaction import Found, Pass, Rules, Transactions, latest_offsets
from harness.broker.partition import Partition
from harness.broker.ports import Network
from harness.broker.replicas import DirectoryFailed, Replicas
from harness.broker.segment import Segment, batches_in
from harness.broker.swap import CLEANED_SUFFIX
from harness.broker.timeline import StorageRefusal
from harness.clock import Clock
from harness.model import Offset
from harness.replication.knobs import Knobs
from harness.wire.errors import CorruptBatch

_NAMED_AFTER_S = 0.2
"""After how long a cleaner with the bug ``segments_named_late`` names a segment."""


class _Dirt(NamedTuple):
    """What of a log may be compacted.

    Attributes:
        clean: the segments of the clean part.
        dirty: those of the dirty part that may be compacted.
        end_offset: where they end, exclusive.
    """

    partition: Partition
    clean: Sequence[Segment]
    dirty: Sequence[Segment]
    end_offset: Offset

    @property
    def ratio(self) -> float:
        """Which part of what may be compacted is dirty, by bytes; 0 when there is nothing."""
        dirty = sum(segment.size for segment in self.dirty)
        return dirty / (dirty + sum(segment.size for segment in self.clean)) if dirty else 0.0

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the dirty part has a record older than ``max.compaction.lag.ms``."""
        times = [time for segment in self.dirty for time in segment.times if time >= 0]
        return bool(times) and min(times) < now_ms - self.partition.config.max_compaction_lag_ms


class Services(Protocol):
    """The broker, as its cleaner sees it: timers, clocks, the generation, and a line for the operator."""

    network: Network
    clock: Clock
    knobs: Knobs
    say: Callable[[str], None]


class LogCleaner:
    """Compacts the logs of one broker.

    Args:
        services: the broker.
        replicas: of the broker.
        failed: see :data:`harness.broker.replicas.DirectoryFailed`.
    """

    def __init__(self, services: Services, replicas: Replicas, failed: DirectoryFailed) -> None:
        self._services = services
        self._replicas = replicas
        self._failed = failed
        self._uncleanable: set[Partition] = set()

    def clean(self) -> None:
        """Compact the filthiest log that has enough dirt, and in later turns the others."""
        now_ms = self._services.clock.wall_ms()
        found = [self._dirt(partition, now_ms) for partition in self._replicas if self._may_compact(partition)]
        due = [one for one in found if self._is_due(one, now_ms)]
        if due:
            self._compact(max(due, key=lambda one: one.ratio), now_ms)
            self._services.network.call_later(0, self.clean)

    def _may_compact(self, partition: Partition) -> bool:
        online = partition.replica.role != "offline" and partition not in self._uncleanable
        return partition.config.compacts and partition.is_configured and online

    def _is_due(self, dirt: _Dirt, now_ms: int) -> bool:
        if not dirt.dirty:
            return False
        return dirt.ratio > dirt.partition.config.min_cleanable_dirty_ratio or dirt.is_overdue(now_ms)

    def _dirt(self, partition: Partition, now_ms: int) -> _Dirt:
        log, config = partition.log, partition.config
        bound = partition.replica.log.last_stable_offset
        if "cleans_above_the_watermark" in self._services.knobs.bugs:
            bound = log.log_end_offset
        first_dirty = max(partition.directory.first_dirty_offset(partition.name), log.log_start_offset)
        closed = log.segments[:-1]
        ends = [segment.base_offset for segment in log.segments[1:]]
        clean, dirty, end_offset = [], [], first_dirty
        for segment, end in zip(closed, ends, strict=True):
            if end <= first_dirty:
                clean.append(segment)
                continue
            is_young = (
                config.min_compaction_lag_ms and max(segment.times, default=0) > now_ms - config.min_compaction_lag_ms
            )
            if end > bound or is_young:
                break
            dirty.append(segment)
            end_offset = end
        return _Dirt(partition, clean, dirty, end_offset)

    # ------------------------------------------------------------------------------------ one pass

    def _compact(self, dirt: _Dirt, now_ms: int) -> None:
        partition = dirt.partition
        try:
            removed = self._rewrite(dirt, now_ms)
        except CorruptBatch as corruption:
            self._uncleanable.add(partition)
            self._services.say(f"Cannot compact {partition.name}, and tries no more: {corruption}.")
        except OSError as error:
            partition.refused("compact", error.errno or 0)
        else:
            self._services.say(
                f"Compacted {partition.name} up to offset {dirt.end_offset}: {removed} records have gone."
            )
            self._checkpoint(dirt)

    def _rewrite(self, dirt: _Dirt, now_ms: int) -> int:
        """Compact what may be; returns how many records have gone.

        Raises:
            CorruptBatch: the records of a batch do not parse; nothing has changed.
            OSError: the file system refuses.
        """
        partition = dirt.partition
        log, producers, config = partition.log, partition.replica.log.producers, partition.config
        aborted = producers.aborted(log.log_start_offset, dirt.end_offset)
        aborted_in_dirty = producers.aborted(dirt.dirty[0].base_offset, dirt.end_offset)
        bugs = self._services.knobs.bugs
        if "followers_drop_the_last_value" in bugs and partition.replica.role == "follower":
            bugs = (*bugs, "cleaner_drops_the_last_value")
        latest = latest_offsets(_found(dirt.dirty), dirt.end_offset, Transactions(aborted_in_dirty), bugs)
        rules = Rules(
            latest,
            producers.last_batches(),
            now_ms,
            config.delete_retention_ms,
            self._services.knobs.tombstones == "delete_horizon",
            bugs,
        )
        one = Pass(rules, Transactions(aborted))
        horizon_ms = max((_modified_ms(segment) for segment in dirt.clean[-1:]), default=0) - config.delete_retention_ms
        left = []
        for segment in (*dirt.clean, *dirt.dirty):
            one.is_past_horizon = _modified_ms(segment) <= horizon_ms
            left.append((segment, [bytes(batch) for batch in one.compacted(_found([segment]))]))
        for group in _grouped(left, config.segment_bytes):
            log.replace([segment for segment, _ in group], [batch for _, batches in group for batch in batches])
            if "segments_named_late" in bugs:
                self._name_late(partition, group[0][0].path)
        producers.compacted(log.producer_spans(), dirt.end_offset)
        return one.removed

    def _name_late(self, partition: Partition, path: str) -> None:
        """Take the name of a new segment away for a while, as if the swap had not come to its end."""
        files, unnamed = partition.directory.files, path + CLEANED_SUFFIX
        files.rename(path, unnamed)

        def name() -> None:
            with suppress(OSError, KeyError):
                files.rename(unnamed, path)

        self._services.network.call_later(_NAMED_AFTER_S, name)

    def _checkpoint(self, dirt: _Dirt) -> None:
        """Write down up to where the log is clean now."""
        directory = dirt.partition.directory
        try:
            directory.write_first_dirty_offset(dirt.partition.name, dirt.end_offset)
        except OSError as error:
            what = "checkpoint the cleaned offsets"
            self._failed(directory, what, StorageRefusal(error.errno or 0, None, what))


def _found(segments: Sequence[Segment]) -> Iterator[Found]:
    for segment in segments:
        yield from batches_in(segment.file)


def _modified_ms(segment: Segment) -> int:
    """When a segment was written, by its records: Kafka looks at the file, of which a restart here knows nothing."""
    return max(segment.times, default=0)


_Left = tuple[Segment, list[bytes]]


def _grouped(left: Sequence[_Left], segment_bytes: int) -> list[list[_Left]]:
    """Which segments become one: those that follow each other and have become small (``groupSegmentsBySize``)."""
    groups: list[list[_Left]] = []
    size = 0
    for segment, batches in left:
        more = sum(map(len, batches))
        if not groups or size + more > segment_bytes:
            groups.append([])
            size = 0
        groups[-1].append((segment, batches))
        size += more
    return groups
