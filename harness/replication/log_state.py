"""The core's mirror of its log: three offsets, the leader epochs and the idempotent producers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.model import Offset
from harness.replication.epochs import LeaderEpochCache
from harness.replication.knobs import NEWEST, Knobs
from harness.replication.messages import BatchSpan, EpochEntry
from harness.replication.producers import ProducerStates


class StoredLog(NamedTuple):
    """A log as a replica finds it on its disk.

    Attributes:
        log_start_offset: the first offset in it.
        log_end_offset: exclusive.
        epoch_entries: its leader epochs as checkpointed, oldest first; those that start at or after the end do not
            count, nor those that ended before the start, as Kafka does on load.
        high_watermark: as checkpointed, 0 when it never was; the checkpoint may be older or newer than the log.
        producer_batches: the batches of idempotent producers in it, oldest first.
    """

    log_start_offset: Offset
    log_end_offset: Offset
    epoch_entries: Iterable[EpochEntry]
    high_watermark: Offset
    producer_batches: Iterable[BatchSpan] = ()


class LogState:
    """The mirror of one replica's log; it changes only when storage has confirmed an operation.

    Attributes:
        log_start_offset: the first offset still held.
        log_end_offset: exclusive.
        high_watermark: exclusive; always between the other two.
        epochs: where each leader epoch starts.
        producers: the idempotent producers of its batches.

    Args:
        stored: the log on disk.
        knobs: the protocol generation.
    """

    __slots__ = ("_bugs", "_knobs", "epochs", "high_watermark", "log_end_offset", "log_start_offset", "producers")

    def __init__(self, stored: StoredLog, *, knobs: Knobs = NEWEST) -> None:
        assert 0 <= stored.log_start_offset <= stored.log_end_offset
        self._knobs, self._bugs = knobs, knobs.bugs
        self.log_start_offset = stored.log_start_offset
        self.log_end_offset = stored.log_end_offset
        self.high_watermark = stored.log_start_offset
        self.epochs = LeaderEpochCache(stored.epoch_entries, knobs.lookup_below_first)
        self.epochs.truncate_from_end(stored.log_end_offset)
        self.epochs.truncate_from_start(stored.log_start_offset)
        self.producers = ProducerStates(stored.producer_batches, knobs)
        self.move_high_watermark(stored.high_watermark)

    def appended(self, spans: tuple[BatchSpan, ...]) -> bool:
        """The batches ``spans`` are in the log now. Returns whether the epochs changed."""
        self.producers.appended(spans)
        changed = False
        for span in spans:
            if span.leader_epoch >= 0 and span.leader_epoch != self.epochs.latest:
                changed |= self.epochs.assign(span.leader_epoch, span.base_offset)
            self.log_end_offset = span.end_offset
        return changed

    def truncated(self, log_end_offset: Offset, remaining: Iterable[BatchSpan] | None = None) -> bool:
        """The log now ends at ``log_end_offset``; clips the watermark. Returns whether the epochs changed.

        ``remaining`` are the idempotent producers' batches that are left; None: unknown.
        """
        assert self.log_start_offset <= log_end_offset <= self.log_end_offset
        if remaining is None:
            self.producers.truncated(log_end_offset)
        else:
            self.producers = ProducerStates(remaining, self._knobs)
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)
        return self.forget_epochs(log_end_offset)

    def forget_epochs(self, end_offset: Offset) -> bool:
        """Forget every epoch that starts at or after ``end_offset``. Returns whether there was any."""
        return "epochs_not_truncated" not in self._bugs and self.epochs.truncate_from_end(end_offset)

    def started_at(self, offset: Offset) -> bool:
        """The log is empty and begins at ``offset``. Returns whether the epochs changed."""
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.producers = ProducerStates(knobs=self._knobs)
        return self.epochs.clear()

    def forget_producers(self) -> None:
        """Know no idempotent producer any more, which only a bug does."""
        self.producers = ProducerStates(knobs=self._knobs)

    @property
    def last_stable_offset(self) -> Offset:
        """The end, exclusive, of what readers of committed records may be given (``isolation.level``, KIP-98)."""
        return max(self.producers.last_stable_offset(self.high_watermark), self.log_start_offset)

    def deletable(self, bug: str) -> Offset:
        """Up to where (exclusive) records may be deleted; with ``bug`` that is taken for the end."""
        return self.log_end_offset if bug in self._bugs else self.high_watermark

    def raise_start(self, offset: Offset) -> bool:
        """The log begins at ``offset``, which the watermark has passed. Returns whether the epochs changed."""
        assert self.log_start_offset <= offset <= (self.log_end_offset if self._bugs else self.high_watermark)
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.producers.deleted_before(offset)
        return self.epochs.truncate_from_start(offset)

    def move_high_watermark(self, target: Offset) -> bool:
        """Move the watermark to ``target``, up or down, within the log. Returns whether it went up."""
        before = self.high_watermark
        if target == before:
            return False
        bound = target if "watermark_beyond_the_end" in self._bugs else self.log_end_offset
        self.high_watermark = max(self.log_start_offset, min(target, bound))
        if self.high_watermark <= before:
            return False
        self.producers.replicated(self.high_watermark)
        return True
