"""Sending processes of the history: their numbers, and the unique values that they send."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import payload
from harness.client_ports import Answer, Transacted
from harness.history.recorder import Recorder, Sending
from harness.model import Offset, ProcessId, TopicPartition
from harness.orders import Sent
from harness.payload import Carried, ProducerRecord

NOT_ANSWERED = "NOT_ANSWERED"
"""The error of a record in an open transaction that no leader is known to have taken."""

_PROCESS_SHIFT = 32


class SendingProcess:
    """A process of the history, with one operation at a time.

    A value is the process's number in the upper 31 bits and a counter in the lower 32: unique in the run.

    Attributes:
        value: of its last operation.
        is_usable: whether that is known to have ended.
    """

    def __init__(self, recorder: Recorder, process: ProcessId, carried: Carried) -> None:
        self.value = (process << _PROCESS_SHIFT) - 1
        self.is_usable = True
        self._recorder = recorder
        self._process = process
        self._carried = carried
        self._op = -1

    def begin(self, partition: TopicPartition, acks: int, size: int, timestamp_ms: int) -> ProducerRecord:
        """Begin to send the next value; returns the record, whose text has at least ``size`` bytes."""
        self.value += 1
        sending = Sending(*partition, self.value, acks, timestamp_ms)
        self._op = self._recorder.invoke_send(self._process, sending)
        return payload.encode(self.value, *partition, size, timestamp_ms=timestamp_ms, carried=self._carried)

    def end(self, answer: Answer) -> None:
        """The operation ended."""
        self._recorder.complete_send(self._op, answer.kind, answer.offset, answer.error)
        self.is_usable = answer.kind != "info"


class TransactingProcess:
    """A process of the history that runs one transaction, part by part."""

    def __init__(self, recorder: Recorder, process: ProcessId, carried: Carried) -> None:
        self._recorder = recorder
        self._process = process
        self._carried = carried
        self._records: list[tuple[TopicPartition, int]] = []
        self._op = -1

    def begin(self, partition: TopicPartition, count: int, size: int, timestamp_ms: int) -> list[ProducerRecord]:
        """Begin to send ``count`` values more; returns the records, whose texts have at least ``size`` bytes each."""
        first = (self._process << _PROCESS_SHIFT) + len(self._records)
        values = range(first, first + count)
        times = dated(count, timestamp_ms)
        steps = [Sending(*partition, value, timestamp_ms=at) for value, at in zip(values, times, strict=True)]
        if not self._records:
            self._op = self._recorder.invoke_txn(self._process, steps)
        elif steps:
            self._recorder.extend_txn(self._op, steps)
        self._records += [(partition, value) for value in values]
        return [
            payload.encode(value, *partition, size, timestamp_ms=at, carried=self._carried)
            for value, at in zip(values, times, strict=True)
        ]

    def taken(self, offsets: Sequence[Offset | None]) -> list[Sent]:
        """The transaction stays open; returns what became of all its records: ``offsets``, None: unknown."""
        return [
            Sent(partition, value, "info" if offset is None else "ok", offset, NOT_ANSWERED if offset is None else None)
            for (partition, value), offset in zip(self._records, offsets, strict=True)
        ]

    def end(self, transacted: Transacted) -> list[Sent]:
        """The transaction ended; returns what became of all its records."""
        kind, offsets, error = transacted
        self._recorder.complete_txn(self._op, kind, offsets, error)
        return [
            Sent(partition, value, kind, offset, error)
            for (partition, value), offset in zip(self._records, offsets, strict=True)
        ]


def usable(
    processes: Sequence[SendingProcess], number: int, new_process: Callable[[], SendingProcess]
) -> list[SendingProcess]:
    """``number`` processes that may begin an operation: those of ``processes`` that can, and new ones."""
    kept = [process for process in processes if process.is_usable][:number]
    return kept + [new_process() for _ in range(number - len(kept))]


def dated(count: int, timestamp_ms: int) -> range:
    """The CreateTimes of the ``count`` records of a batch: all differ, so that none can stand in for another's.

    The first is ``timestamp_ms``, and each is a millisecond before the one in front of it: none is in the future.
    """
    return range(timestamp_ms, timestamp_ms - count, -1)


def begin_batch(
    processes: Sequence[SendingProcess], partition: TopicPartition, acks: int, size: int, timestamp_ms: int
) -> list[ProducerRecord]:
    """Each process begins to send its next value; returns the records, dated as :func:`dated` has it."""
    times = dated(len(processes), timestamp_ms)
    return [process.begin(partition, acks, size, at) for process, at in zip(processes, times, strict=True)]


def end_batch(processes: Sequence[SendingProcess], partition: TopicPartition, answers: Sequence[Answer]) -> list[Sent]:
    """Each process's record has been answered; returns what became of them."""
    for process, answer in zip(processes, answers, strict=True):
        process.end(answer)
    return [
        Sent(partition, process.value, answer.kind, answer.offset, answer.error)
        for process, answer in zip(processes, answers, strict=True)
    ]
