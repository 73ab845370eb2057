"""The state of idempotent producers in a log: each one's epoch and last five batches.

Follows Kafka's ``ProducerStateManager``, ``ProducerStateEntry`` and ``ProducerAppendInfo`` without transactions. The
state is a fold of the log: leaders and followers alike build it from the batches they append.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model import Offset
from harness.replication.messages import (
    NO_ERROR,
    BatchSpan,
    ErrorCode,
    ProducerStamp,
)

BATCHES_REMEMBERED = 5
"""How many batches a producer may have in flight (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``)."""

_SEQUENCES = 2**31
"""Sequence numbers wrap from the largest 32-bit integer to 0."""


class StoredBatch(NamedTuple):
    """A batch in the log. ``end_offset`` is exclusive, ``last_sequence`` is not."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[StoredBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED))


class ProducerStates:
    """The producers of one log, by producer id."""

    __slots__ = ("_producers",)

    def __init__(self, spans: Iterable[BatchSpan] = ()) -> None:
        self._producers: dict[int, _Producer] = {}
        self.appended(spans)

    def appended(self, spans: Iterable[BatchSpan]) -> None:
        """The batches ``spans`` are in the log."""
        for span in spans:
            if span.producer is not None:
                self._remember(span, span.producer)

    def _remember(self, span: BatchSpan, stamp: ProducerStamp) -> None:
        producer = self._producers.get(stamp.producer_id)
        if producer is None or producer.epoch != stamp.producer_epoch:
            producer = self._producers[stamp.producer_id] = _Producer(stamp.producer_epoch)
        last_sequence = _last_sequence(stamp, span.end_offset - span.base_offset)
        producer.batches.append(StoredBatch(stamp.base_sequence, last_sequence, span.base_offset, span.end_offset))

    def truncated(self, end_offset: Offset) -> None:
        """Forget the batches at and after ``end_offset``, and producers without a remaining batch."""
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[-1].end_offset > end_offset:
                producer.batches.pop()
            if not producer.batches:
                del self._producers[producer_id]

    def duplicate(self, stamp: ProducerStamp, record_count: int) -> StoredBatch | None:
        """The remembered batch that this one repeats."""
        producer = self._producers.get(stamp.producer_id)
        if producer is None or producer.epoch != stamp.producer_epoch:
            return None
        sequences = (stamp.base_sequence, _last_sequence(stamp, record_count))
        return next((batch for batch in producer.batches if batch[:2] == sequences), None)

    def error(self, stamp: ProducerStamp) -> ErrorCode:
        """Why a batch that is no duplicate must not be appended; ``NONE`` when it may.

        A new epoch begins with sequence 0. An unknown producer may begin with any sequence.
        """
        producer = self._producers.get(stamp.producer_id)
        if producer is None:
            return NO_ERROR
        if stamp.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        same_epoch = stamp.producer_epoch == producer.epoch
        expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES if same_epoch else 0
        return NO_ERROR if stamp.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _last_sequence(stamp: ProducerStamp, record_count: int) -> int:
    return (stamp.base_sequence + record_count - 1) % _SEQUENCES
