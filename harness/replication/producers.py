"""The state of idempotent and transactional producers in a log.

Of each producer that is its epoch, its last five batches, and where its open transaction begins. Follows Kafka's
``ProducerStateManager``, ``ProducerStateEntry``, ``ProducerAppendInfo`` and ``TransactionIndex``. The state is a fold
of the log: leaders and followers alike build it from the batches they append.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, Offset
from harness.replication.knobs import NEWEST, Knobs
from harness.replication.messages import BatchSpan, ProducerStamp, TransactionEnd

_REMEMBERED = {"last": 1, "five": 5}
"""How many batches of a producer are remembered (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``), by the knob."""

_SEQUENCES = 2**31
"""Sequence numbers wrap from the largest 32-bit integer to 0."""


class StoredBatch(NamedTuple):
    """A batch in the log. ``end_offset`` is exclusive, ``last_sequence`` is not."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset


class LastBatch(NamedTuple):
    """What a log must keep of a producer: where its last batch ends, and where its last marker is; None: nowhere."""

    end_offset: Offset | None
    marker_offset: Offset | None


class KnownProducer(NamedTuple):
    """A producer, for operators: -1 for what there is not; its last batch, a marker too, has the timestamp."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: Offset


class AbortedTransaction(NamedTuple):
    """An aborted transaction in a log, of which readers of committed records are given nothing.

    Attributes:
        producer_id: whose it is.
        first_offset: that of its first record.
        last_offset: that of its marker.
        last_stable_offset: where the transactions begin that were open when it was aborted; if there were none, behind
            its marker. All that is aborted later ends there or behind.
    """

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class _Ended(NamedTuple):
    """A transaction whose marker is in the log, perhaps not below the high watermark."""

    first_offset: Offset
    marker_offset: Offset


@dataclass(slots=True)
class _Producer:
    """``markers`` counts those in its log, so that a leader notices one that came in between.

    ``timestamp_ms`` is that of its last batch.
    ``marker_offset`` is where the last one is.
    """

    epoch: int
    batches: deque[StoredBatch]
    coordinator_epoch: int = NO_EPOCH
    markers: int = 0
    timestamp_ms: int = -1
    marker_offset: Offset | None = None


class ProducerStates:
    """The producers of one log, by producer id.

    Args:
        spans: the batches of the log, oldest first.
        knobs: the protocol generation.
    """

    __slots__ = ("_aborted", "_ended", "_knobs", "_open", "_producers")

    def __init__(self, spans: Iterable[BatchSpan] = (), knobs: Knobs = NEWEST) -> None:
        self._knobs = knobs
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, Offset] = {}  # by producer id, where its open transaction begins, oldest first
        self._ended: deque[_Ended] = deque()
        self._aborted: list[AbortedTransaction] = []
        self.appended(spans)

    def __iter__(self) -> Iterator[KnownProducer]:
        for number, one in sorted(self._producers.items()):
            last = one.batches[-1].last_sequence if one.batches else -1
            start = self._open.get(number, NO_OFFSET)
            yield KnownProducer(number, one.epoch, last, one.timestamp_ms, one.coordinator_epoch, start)

    def last_batches(self) -> dict[int, LastBatch]:
        """By producer id, what a compacted log must keep."""
        return {
            number: LastBatch(one.batches[-1].end_offset if one.batches else None, one.marker_offset)
            for number, one in self._producers.items()
        }

    def appended(self, spans: Iterable[BatchSpan]) -> None:
        """The batches ``spans`` are in the log."""
        for span in spans:
            if span.producer is not None:
                self._remember(span, span.producer)

    def _remember(self, span: BatchSpan, stamp: ProducerStamp) -> None:
        producer = self._producers.get(stamp.producer_id)
        if producer is None:
            remembered = _REMEMBERED[self._knobs.batches_remembered]
            producer = _Producer(stamp.producer_epoch, deque(maxlen=remembered))
            self._producers[stamp.producer_id] = producer
        elif producer.epoch != stamp.producer_epoch:
            producer.epoch = stamp.producer_epoch
            producer.batches.clear()
        if stamp.is_control and stamp.ends is None:
            return
        producer.timestamp_ms = stamp.timestamp_ms
        if stamp.ends is not None:
            producer.coordinator_epoch = stamp.ends.coordinator_epoch
            producer.markers += 1
            producer.marker_offset = span.base_offset
            self._end(stamp.producer_id, span.base_offset, stamp.ends)
            return
        last_sequence = _last_sequence(stamp, span.end_offset - span.base_offset)
        producer.batches.append(StoredBatch(stamp.base_sequence, last_sequence, span.base_offset, span.end_offset))
        if stamp.is_transactional:
            self._open.setdefault(stamp.producer_id, span.base_offset)

    def _end(self, producer_id: int, marker_offset: Offset, ends: TransactionEnd) -> None:
        """A marker ends the open transaction; without one it says nothing."""
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return
        self._ended.append(_Ended(first_offset, marker_offset))
        if not ends.commits:
            stable = next(iter(self._open.values()), marker_offset + 1)
            self._aborted.append(AbortedTransaction(producer_id, first_offset, marker_offset, stable))

    def truncated(self, end_offset: Offset) -> None:
        """Forget the batches at and after ``end_offset``, and producers without a remaining batch.

        This knows nothing of transactions: a driver that has them gives the batches that are left, see
        :class:`~harness.replication.messages.Truncated`.
        """
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[-1].end_offset > end_offset:
                producer.batches.pop()
            if not producer.batches:
                del self._producers[producer_id]

    # ------------------------------------------------------------------------------------------ what may be appended

    def duplicate(self, stamp: ProducerStamp, record_count: int) -> StoredBatch | None:
        """The remembered batch that this one repeats."""
        producer = self._producers.get(stamp.producer_id)
        if producer is None or producer.epoch != stamp.producer_epoch:
            return None
        sequences = (stamp.base_sequence, _last_sequence(stamp, record_count))
        return next((batch for batch in producer.batches if batch[:2] == sequences), None)

    def error(self, stamp: ProducerStamp, *, in_sequence: bool = True) -> ErrorCode:
        """Why a batch that is no duplicate must not be appended; ``NONE`` when it may.

        A new epoch begins with sequence 0. An unknown producer may begin with any sequence, or with 0 only, as the
        generation has it. A batch that is not ``in_sequence`` may have any at any time.
        """
        producer = self._producers.get(stamp.producer_id)
        if producer is None:
            return NO_ERROR if stamp.base_sequence == 0 or not in_sequence or stamp.ends else self._unknown(NO_ERROR)
        if stamp.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if stamp.ends is not None:
            fenced = stamp.ends.coordinator_epoch < producer.coordinator_epoch
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED if fenced else NO_ERROR
        same_epoch = stamp.producer_epoch == producer.epoch
        has_sent = same_epoch and producer.batches
        expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES if has_sent else 0
        if in_sequence and stamp.base_sequence != expected:
            out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            return out_of_order if has_sent or not same_epoch else self._unknown(out_of_order)
        if stamp.producer_id in self._open and not stamp.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return NO_ERROR

    def _unknown(self, if_kept: ErrorCode) -> ErrorCode:
        """Why a batch is refused whose number says that others came before, of which nothing is known."""
        match self._knobs.producers_without_records:
            case "kept":
                return if_kept
            case "unknown":
                return ErrorCode.UNKNOWN_PRODUCER_ID
            case "out_of_order":
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def is_open(self, stamp: ProducerStamp) -> bool:
        """Whether the log has a transaction of this producer, in this epoch, that is not ended."""
        producer = self._producers.get(stamp.producer_id)
        return producer is not None and producer.epoch == stamp.producer_epoch and stamp.producer_id in self._open

    def markers_of(self, producer_id: int) -> int:
        """How many markers of the producer the log has got, for comparison."""
        producer = self._producers.get(producer_id)
        return 0 if producer is None else producer.markers

    # ------------------------------------------------------------------------------------------ what may be read

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """The end, exclusive, of what readers of committed records may be given.

        That is where the first transaction begins that is open, or whose marker is not below the high watermark.
        """
        opened = next(iter(self._open.values()), high_watermark)
        ended = (one.first_offset for one in self._ended if one.marker_offset >= high_watermark)
        return min([opened, high_watermark, *ended])

    def replicated(self, high_watermark: Offset) -> None:
        """The high watermark has risen: forget the transactions that ended below it, as Kafka does."""
        while self._ended and self._ended[0].marker_offset < high_watermark:
            self._ended.popleft()

    def aborted(self, from_offset: Offset, until_offset: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that have a record or a marker in this part of the log; the end is exclusive."""
        found = []
        first = bisect_left(self._aborted, from_offset, key=lambda one: one.last_offset)
        for one in self._aborted[first:]:
            if one.first_offset < until_offset:
                found.append(one)
            if one.last_stable_offset >= until_offset:
                break
        return found

    def deleted_before(self, offset: Offset) -> None:
        """The log begins at ``offset``: forget the aborted transactions that end before.

        Before Kafka 2.4 also the batches that are gone, and the producers of which none is left.
        """
        del self._aborted[: bisect_left(self._aborted, offset, key=lambda one: one.last_offset)]
        if self._knobs.producers_without_records == "kept":
            return
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[0].end_offset <= offset:
                producer.batches.popleft()
            if not producer.batches:
                del self._producers[producer_id]
                self._open.pop(producer_id, None)

    def compacted(self, spans: Iterable[BatchSpan], end_offset: Offset) -> None:
        """The log has only ``spans`` left: forget the aborted transactions before ``end_offset`` of which it has none.

        A restart does not find those either. Kafka writes the transaction index of each cleaned segment anew.
        """
        left: dict[int, list[Offset]] = {}
        for span in spans:
            if span.producer is not None and span.producer.is_transactional and not span.producer.is_control:
                left.setdefault(span.producer.producer_id, []).append(span.base_offset)

        def is_left(one: AbortedTransaction) -> bool:
            offsets = left.get(one.producer_id, [])
            first = bisect_left(offsets, one.first_offset)
            return first < len(offsets) and offsets[first] < one.last_offset

        self._aborted = [one for one in self._aborted if one.last_offset >= end_offset or is_left(one)]

    def expire(self, before_ms: int) -> None:
        """Forget the producers whose last batch is older, unless a transaction is open (``isProducerExpired``)."""
        for producer_id, producer in list(self._producers.items()):
            if producer.timestamp_ms <= before_ms and producer_id not in self._open:
                del self._producers[producer_id]


def _last_sequence(stamp: ProducerStamp, record_count: int) -> int:
    return (stamp.base_sequence + record_count - 1) % _SEQUENCES
