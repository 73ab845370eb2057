"""What compaction leaves of a log's batches: for each key its last value, as Kafka's ``Cleaner`` decides it.

A record that another one of its key supersedes goes, one without a key goes, and a tombstone (a key without a value)
goes when its time is over. A batch from which records go keeps its offsets and its producer's numbers; a batch that
has none left goes, unless something depends on it:

* the last batch and the last marker of a producer stay (the batch without records), for they have its epoch and its
  sequence number;
* so do the first batch of each leader epoch and the last one of a segment: a starting broker finds in the log where
  epochs begin, and takes a segment that begins behind the end of another for a sign that one is missing. Kafka does
  without, for it goes by its ``leader-epoch-checkpoint``, and by the names of the files;
* the marker of a transaction stays as long as the log has a batch of that transaction, and then as long as a
  tombstone does.

Tombstones and markers have a *delete horizon* of their own, which the first pass that leaves them over writes into
their batch (KIP-534, the knob ``tombstones``); before, they went when ``delete.retention.ms`` had passed since the
newest segment was written that had been clean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.broker.codecs import deflate, inflate
from harness.model import Offset
from harness.replication.producers import AbortedTransaction, LastBatch
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader, Record

Found = tuple[memoryview, BatchHeader]
"""One batch, which fills the buffer, and its header."""


class Transactions:
    """Follows the transactions of a log through its batches (``CleanedTransactionMetadata``).

    Args:
        aborted: those that end in the part of the log that is read, or behind it.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborted: dict[int, bool] = {}  # by producer, whether a batch of it was met
        self._committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether this batch of records belongs to an aborted transaction."""
        self._read_up_to(header)
        if not header.attributes & wire.TRANSACTIONAL:
            return False
        if header.producer_id in self._aborted:
            self._aborted[header.producer_id] = True
            return True
        self._committed.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader) -> bool:
        """Whether nothing is left of the transaction that this control batch ends."""
        self._read_up_to(header)
        if header.marker is None:
            return False
        if not header.marker.commits:
            return not self._aborted.pop(header.producer_id, False)
        met = header.producer_id in self._committed
        self._committed.discard(header.producer_id)
        return not met

    def _read_up_to(self, header: BatchHeader) -> None:
        while self._to_come and self._to_come[-1].first_offset < header.end_offset:
            self._aborted.setdefault(self._to_come.pop().producer_id, False)


class LatestOffsets(NamedTuple):
    """Where the last record of each key is, among those before ``end_offset``, exclusive."""

    of_key: Mapping[bytes, Offset]
    end_offset: Offset


def latest_offsets(
    dirty: Iterable[Found], end_offset: Offset, transactions: Transactions, bugs: Collection[str] = ()
) -> LatestOffsets:
    """The last record of each key in the batches ``dirty``, which end at ``end_offset``; aborted ones do not count.

    Raises:
        CorruptBatch: the records of a batch do not parse.
    """
    of_key: dict[bytes, Offset] = {}
    for batch, header in dirty:
        if header.attributes & wire.CONTROL:
            transactions.is_spent(header)
        elif not transactions.is_aborted(header):
            found = wire.records(batch, header, inflate)
            if "tombstones_supersede_nothing" in bugs:
                found = (one for one in found if one.value is not None)
            of_key.update((one.key, one.offset) for one in found if one.key is not None)
    return LatestOffsets(of_key, end_offset)


@dataclass(frozen=True, slots=True)
class Rules:
    """What one pass over one log goes by.

    Attributes:
        latest: the last record of each key in the dirty part.
        last_batches: the last batch of each producer, by its id.
        now_ms: the wall clock.
        delete_retention_ms: ``delete.retention.ms``.
        horizons: whether batches have delete horizons.
        bugs: see :data:`harness.replication.bugs.BUGS`.
    """

    latest: LatestOffsets
    last_batches: Mapping[int, LastBatch]
    now_ms: int
    delete_retention_ms: int
    horizons: bool
    bugs: tuple[str, ...] = ()


@dataclass(slots=True)
class Pass:
    """One pass over one log from its start.

    Attributes:
        removed: how many records have gone.
        is_past_horizon: whether the segment that is read now was written so long ago that its tombstones go; counts
            only without delete horizons.
    """

    rules: Rules
    transactions: Transactions
    removed: int = 0
    is_past_horizon: bool = False
    _last_epoch: int = field(default=-1)

    def compacted(self, found: Iterable[Found]) -> Iterator[memoryview | bytearray]:
        """The batches that are left of those of a segment, which follow those that were read before.

        Raises:
            CorruptBatch: the records of a batch do not parse.
        """
        last: Found | None = None
        for batch, header in found:
            begins_epoch = header.leader_epoch != self._last_epoch
            self._last_epoch = header.leader_epoch
            is_control = bool(header.attributes & wire.CONTROL)
            left = self._control(batch, header) if is_control else self._records(batch, header, begins_epoch)
            if left is None and begins_epoch:
                left = wire.emptied(batch, header)
            if left is not None:
                yield left
            last = (batch, header) if left is None else None
        if last is not None:
            yield wire.emptied(*last)

    def _control(self, batch: memoryview, header: BatchHeader) -> memoryview | bytearray | None:
        if not header.record_count:  # an earlier pass has emptied it
            return None
        spent = self.transactions.is_spent(header)
        last = self.rules.last_batches.get(header.producer_id)
        if not spent or (last is not None and last.marker_offset == header.base_offset):
            return batch
        if self._is_over(batch, header):
            return None
        return self._with_horizon(batch, header, list(wire.records(batch, header, inflate)), is_temporary=True)

    def _records(self, batch: memoryview, header: BatchHeader, begins_epoch: bool) -> memoryview | bytearray | None:
        if self.transactions.is_aborted(header):
            kept: list[Record] = []
        else:
            kept = [one for one in wire.records(batch, header, inflate) if self._stays(one, batch, header)]
        self.removed += header.record_count - len(kept)
        if kept:
            return self._with_horizon(batch, header, kept, is_temporary=any(one.value is None for one in kept))
        last = self.rules.last_batches.get(header.producer_id)
        if begins_epoch or (last is not None and last.end_offset == header.end_offset):
            return wire.emptied(batch, header)
        return None

    def _with_horizon(
        self, batch: memoryview, header: BatchHeader, kept: list[Record], *, is_temporary: bool
    ) -> memoryview | bytearray:
        """The batch with the records that it keeps, and from now on with a horizon if one of them ``is_temporary``."""
        rules, horizon_ms = self.rules, wire.delete_horizon(batch, header)
        if rules.horizons and is_temporary and horizon_ms is None:
            horizon_ms = rules.now_ms + rules.delete_retention_ms
        elif len(kept) == header.record_count:
            return batch
        return wire.rebuilt(batch, header, kept, horizon_ms, deflate)

    def _stays(self, record: Record, batch: memoryview, header: BatchHeader) -> bool:
        latest, bugs = self.rules.latest, self.rules.bugs
        if record.offset >= latest.end_offset:
            return True
        if record.key is None:
            return False
        newest = latest.of_key.get(record.key, -1)
        if record.offset < newest or (record.offset == newest and "cleaner_drops_the_last_value" in bugs):
            return False
        return record.value is not None or not self._is_over(batch, header)

    def _is_over(self, batch: memoryview, header: BatchHeader) -> bool:
        """Whether the time of the batch's tombstones, or of its marker, is over."""
        if "cleaner_drops_tombstones" in self.rules.bugs:
            return True
        if not self.rules.horizons:
            return self.is_past_horizon
        horizon_ms = wire.delete_horizon(batch, header)
        return horizon_ms is not None and self.rules.now_ms >= horizon_ms
