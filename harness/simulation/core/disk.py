"""One broker's disk: a log and two checkpoints, and what of each a power loss would leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from harness.model import Offset
from harness.replication.epochs import LeaderEpochCache
from harness.replication.messages import (
    BatchSpan,
    EpochEntry,
    LogStartedAt,
    LogStartRaised,
    RaiseLogStart,
    StartLogAt,
)


class Record(NamedTuple):
    """What lies at one offset."""

    leader_epoch: int
    value: int


class Batch(NamedTuple):
    """A record batch, which followers copy as it is: where it lies, and what it holds."""

    span: BatchSpan
    records: tuple[Record, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """What its producer sent."""
        return tuple([record.value for record in self.records])


def laid_out(span: BatchSpan, values: Iterable[int]) -> Batch:
    """The batch that lies there with these values."""
    return Batch(span, tuple([Record(span.leader_epoch, value) for value in values]))


class Disk:
    """What a broker has written. A process crash takes nothing of it, a power loss what was not flushed.

    Attributes:
        batches: the log, oldest first.
        records: the same record by record; that of offset ``o`` is ``records[o - start]``.
        start: the first offset.
        end: exclusive.
        flushed: how many of ``batches`` the disk has for certain.
        epochs: ``leader-epoch-checkpoint``; ``watermark``: ``replication-offset-checkpoint``.
        clean: whether the last shutdown was, and so needs no recovery.
        full: whether appends fail.
    """

    __slots__ = (
        "_checkpoints_flushed", "_flush_messages", "_flushed_epochs", "_flushed_watermark", "_unflushed_records",
        "batches", "clean", "end", "epochs", "flushed", "full", "records", "start", "watermark",
    )  # fmt: skip

    def __init__(self, flush_messages: int, *, checkpoints_flushed: bool) -> None:
        self.batches: list[Batch] = []
        self.records: list[Record] = []
        self.start: Offset = 0
        self.end: Offset = 0
        self.flushed = 0
        self.epochs: tuple[EpochEntry, ...] = ()
        self.watermark: Offset = 0
        self.clean = False
        self.full = False
        self._flush_messages = flush_messages
        self._unflushed_records = 0
        self._checkpoints_flushed = checkpoints_flushed
        self._flushed_epochs: tuple[EpochEntry, ...] = ()
        self._flushed_watermark: Offset = 0

    # ------------------------------------------------------------------------------------------------------ the log

    def append(self, batches: list[Batch]) -> None:
        """Write batches at the end; flush them when enough have come together."""
        self.batches += batches
        for _, records in batches:
            self.records += records
            self._unflushed_records += len(records)
        self.end = batches[-1].span.end_offset
        if self._flush_messages and self._unflushed_records >= self._flush_messages:
            self.flush()

    def truncate(self, to_offset: Offset) -> list[Batch]:
        """Cut every batch that holds an offset ``>= to_offset``; returns them, oldest first."""
        keep = len(self.batches)
        while keep and self.batches[keep - 1].span.end_offset > to_offset:
            keep -= 1
        cut = self.batches[keep:]
        del self.batches[keep:]
        self.end = self.batches[-1].span.end_offset if self.batches else self.start
        del self.records[self.end - self.start :]
        self.flushed = min(self.flushed, keep)
        return cut

    def raise_start(self, to_offset: Offset) -> None:
        """Forget the batches wholly below ``to_offset``, which may lie within one."""
        while self.batches and self.batches[0].span.end_offset <= to_offset:
            self.batches.pop(0)
            self.flushed = max(self.flushed - 1, 0)
        del self.records[: to_offset - self.start]
        self.start = to_offset
        self.end = max(self.end, to_offset)

    def start_at(self, offset: Offset) -> None:
        """Throw everything away; the log begins anew at ``offset``."""
        self.batches.clear()
        self.records.clear()
        self.start = self.end = offset
        self.flushed = self._unflushed_records = 0

    def move_start(self, effect: RaiseLogStart | StartLogAt) -> LogStartRaised | LogStartedAt:
        """Begin the log elsewhere, with what it holds or with nothing."""
        if isinstance(effect, RaiseLogStart):
            self.raise_start(effect.to_offset)
            return LogStartRaised(effect.to_offset)
        self.start_at(effect.offset)
        return LogStartedAt(effect.offset)

    def read(self, from_offset: Offset, limit: int) -> list[Batch]:
        """At most ``limit`` batches from the one that holds ``from_offset`` on."""
        first = len(self.batches)
        while first and self.batches[first - 1].span.end_offset > from_offset:
            first -= 1
        return self.batches[first : first + limit]

    # ------------------------------------------------------------------------------------- checkpoints, flush, power

    def checkpoint_epochs(self, entries: tuple[EpochEntry, ...]) -> None:
        """Write ``leader-epoch-checkpoint``."""
        self.epochs = entries
        if self._checkpoints_flushed:
            self._flushed_epochs = entries

    def checkpoint_watermark(self, high_watermark: Offset) -> None:
        """Write ``replication-offset-checkpoint``."""
        self.watermark = high_watermark
        if self._checkpoints_flushed:
            self._flushed_watermark = high_watermark

    def flush(self) -> None:
        """Make the log durable."""
        self.flushed = len(self.batches)
        self._unflushed_records = 0

    def flush_all(self) -> None:
        """Make everything durable, as a clean shutdown does."""
        self.flush()
        self._flushed_epochs = self.epochs
        self._flushed_watermark = self.watermark

    def lose_power(self, chance: Callable[[], float]) -> list[Batch]:
        """Forget what was not flushed, but for what the kernel happened to have written; returns what is lost."""
        unflushed = len(self.batches) - self.flushed
        kept = self.flushed + int(chance() * (unflushed + 1)) if chance() < 0.3 else self.flushed
        lost = self.truncate(self.batches[kept].span.base_offset) if kept < len(self.batches) else []
        self.flush()
        self.epochs = self._flushed_epochs
        self.watermark = self._flushed_watermark
        self.clean = False
        return lost

    def recover_epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs as a starting broker finds them, and writes them down again.

        The checkpoint, without what starts at or after the log's end; after an unclean shutdown those of the batches,
        which the recovery reads anyway, as the broker does. A checkpoint that was not flushed may name an epoch of
        which the log had no record, at an offset that holds an older one by now. An entry that is only ignored, and
        not removed, would be believed again once the log has grown past it.
        """
        cache = LeaderEpochCache(self.epochs if self.clean else ())
        cache.truncate_from_end(self.end)
        for batch in () if self.clean else self.batches:
            if batch.span.leader_epoch > cache.latest:
                cache.assign(batch.span.leader_epoch, max(batch.span.base_offset, self.start))
        if cache.entries != self.epochs:
            self.checkpoint_epochs(cache.entries)
        return cache.entries
