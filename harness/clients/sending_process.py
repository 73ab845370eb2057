"""Sending processes of the history: their numbers, and the unique values that they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import payload
from harness.clients.sender import Answer
from harness.clients.transactional_sender import Transacted
from harness.history.recorder import Recorder, Sending
from harness.model import Offset, ProcessId, TopicPartition
from harness.workload import Sent

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

    def __init__(self, recorder: Recorder, process: ProcessId) -> None:
        self.value = (process << _PROCESS_SHIFT) - 1
        self.is_usable = True
        self._recorder = recorder
        self._process = process
        self._op = -1

    def begin(self, partition: TopicPartition, acks: int, size: int) -> bytes:
        """Begin to send the next value; returns the record, of at least ``size`` bytes."""
        self.value += 1
        self._op = self._recorder.invoke_send(self._process, partition.topic, partition.partition, self.value, acks)
        return payload.encode(self.value, partition.topic, partition.partition, size)

    def end(self, answer: Answer) -> None:
        """The operation ended."""
        self._recorder.complete_send(self._op, answer.kind, answer.offset, answer.error)
        self.is_usable = answer.kind != "info"


class TransactingProcess:
    """A process of the history that runs one transaction, part by part."""

    def __init__(self, recorder: Recorder, process: ProcessId) -> None:
        self._recorder = recorder
        self._process = process
        self._records: list[tuple[TopicPartition, int]] = []
        self._op = -1

    def begin(self, partition: TopicPartition, count: int, size: int) -> list[bytes]:
        """Begin to send ``count`` values more; returns the records, each of at least ``size`` bytes."""
        topic, number = partition
        first = (self._process << _PROCESS_SHIFT) + len(self._records)
        values = range(first, first + count)
        steps = [Sending(topic, number, value) for value in values]
        if not self._records:
            self._op = self._recorder.invoke_txn(self._process, steps)
        elif steps:
            self._recorder.extend_txn(self._op, steps)
        self._records += [(partition, value) for value in values]
        return [payload.encode(value, topic, number, size) for value in values]

    def taken(self, offsets: Sequence[Offset | None]) -> list[Sent]:
        """The transaction stays open; returns what has become of all its records: ``offsets``, None: nobody knows."""
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
    processes: Sequence[SendingProcess], number: int, recorder: Recorder, new_process: Callable[[], ProcessId]
) -> list[SendingProcess]:
    """``number`` processes that may begin an operation: those of ``processes`` that can, and new ones."""
    kept = [process for process in processes if process.is_usable][:number]
    return kept + [SendingProcess(recorder, new_process()) for _ in range(number - len(kept))]


def end_batch(processes: Sequence[SendingProcess], partition: TopicPartition, answers: Sequence[Answer]) -> list[Sent]:
    """Each process's record has been answered; returns what became of them."""
    for process, answer in zip(processes, answers, strict=True):
        process.end(answer)
    return [
        Sent(partition, process.value, answer.kind, answer.offset, answer.error)
        for process, answer in zip(processes, answers, strict=True)
    ]
