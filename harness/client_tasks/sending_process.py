"""Producers as processes of the history: their numbers, and the unique values that they send."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from harness import payload
from harness.client_ports import ClientContext, Producer, Transacted
from harness.history.recorder import PolledRecord, Polling, Recorder, Sending
from harness.history.sends import Answer, Sends
from harness.model import Offset, ProcessId, TopicPartition
from harness.orders import Sent
from harness.payload import Carried, ProducerRecord

NOT_ANSWERED = "NOT_ANSWERED"
"""The error of a record in an open transaction that no leader is known to have taken."""

_PROCESS_SHIFT = 32


def process_of(value: int) -> ProcessId:
    """The process that sends ``value``."""
    return ProcessId(value >> _PROCESS_SHIFT)


class SendingProcesses:
    """Processes of the history whose records one producer sends together; each has one operation at a time.

    A value is the process's number in the upper 31 bits and a counter in the lower 32: unique in the run. A process
    whose operation ended with ``info`` ends with it, and a new one takes its place: the record may still be under way.

    Args:
        context: of the run.
        in_order: whether the producer has the records of one sending stored in the order in which it was given them,
            whatever becomes of its requests. They are one operation of one process then.

    Attributes:
        first: the first process.
        are_usable: whether no operation of the last sending ended with ``info``.
    """

    def __init__(self, context: ClientContext, *, in_order: bool = False) -> None:
        self._context = context
        self._in_order = in_order
        self.first = context.new_process()
        self.are_usable = True
        self._next = [self.first << _PROCESS_SHIFT]

    async def send(
        self, producer: Producer, partition: TopicPartition, sizes: Sequence[int], acks: int, timestamp_ms: int
    ) -> list[tuple[int, Answer]]:
        """Send the next values, and wait for the answers; returns each value with its answer.

        Args:
            producer: sends them.
            partition: of the records.
            sizes: for each record the least size of its text, in bytes.
            acks: what the producer asks for.
            timestamp_ms: the CreateTime of the first record; see :func:`dated`.
        """
        values = self._values(len(sizes))
        processes = [value >> _PROCESS_SHIFT for value in (values[:1] if self._in_order else values)]
        sends = Sends(partition, values, processes, acks, dated(len(values), timestamp_ms))
        recorder = self._context.recorder
        recorder.invoke_sends(sends)
        batch = payload.encode_all(partition, values, sizes, sends.timestamps_ms, self._context.carried)
        answers = await producer.send_batch(partition, batch, partial(recorder.complete_sends, sends))
        self._go_on(values, answers)
        return list(zip(values, answers, strict=True))

    def _values(self, count: int) -> list[int]:
        if not self._next:
            self._next.append(self._context.new_process() << _PROCESS_SHIFT)
        if self._in_order:
            return list(range(self._next[0], self._next[0] + count))
        while len(self._next) < count:
            self._next.append(self._context.new_process() << _PROCESS_SHIFT)
        return self._next[:count]

    def _go_on(self, values: Sequence[int], answers: Sequence[Answer]) -> None:
        known = [value + 1 for value, answer in zip(values, answers, strict=True) if answer.kind != "info"]
        self.are_usable = len(known) == len(values)
        if self._in_order:
            self._next = known[-1:] if self.are_usable else []
        else:
            self._next = known


class TransactingProcess:
    """A process of the history that runs one transaction, part by part: sends, and polls of committed records."""

    def __init__(self, recorder: Recorder, process: ProcessId, carried: Carried) -> None:
        self._recorder = recorder
        self._process = process
        self._carried = carried
        self._records: list[tuple[TopicPartition, int]] = []
        self._polls: list[Sequence[PolledRecord] | None] = []  # by step of the transaction; None: it is a send
        self._op = -1

    def begin(self, partition: TopicPartition, count: int, size: int, timestamp_ms: int) -> list[ProducerRecord]:
        """Begin to send ``count`` values more; returns the records, whose texts have at least ``size`` bytes each."""
        first = (self._process << _PROCESS_SHIFT) + len(self._records)
        values = range(first, first + count)
        times = dated(count, timestamp_ms)
        steps = [Sending(*partition, value, timestamp_ms=at) for value, at in zip(values, times, strict=True)]
        self._do(steps)
        self._records += [(partition, value) for value in values]
        return [
            payload.encode(value, *partition, size, timestamp_ms=at, carried=self._carried)
            for value, at in zip(values, times, strict=True)
        ]

    @property
    def values(self) -> list[int]:
        """Of the records so far."""
        return [value for _, value in self._records]

    def begin_poll(self) -> None:
        """Begin to poll."""
        self._do([Polling(isolation="read_committed")])

    def end_poll(self, records: Sequence[PolledRecord]) -> None:
        """The poll delivered ``records``."""
        self._polls[-1] = records

    def taken(self, offsets: Sequence[Offset | None]) -> list[Sent]:
        """The transaction stays open; returns what became of all its records: ``offsets``, None: unknown."""
        return [
            Sent(partition, value, "info" if offset is None else "ok", offset, NOT_ANSWERED if offset is None else None)
            for (partition, value), offset in zip(self._records, offsets, strict=True)
        ]

    def end(self, transacted: Transacted) -> list[Sent]:
        """The transaction ended; returns what became of all its records."""
        kind, offsets, error = transacted
        sends = iter(offsets)
        answers = [next(sends) if records is None else records for records in self._polls]
        self._recorder.complete_txn(self._op, kind, answers, error)
        return [
            Sent(partition, value, kind, offset, error)
            for (partition, value), offset in zip(self._records, offsets, strict=True)
        ]

    def _do(self, steps: Sequence[Sending | Polling]) -> None:
        if not self._polls:
            self._op = self._recorder.invoke_txn(self._process, steps)
        elif steps:
            self._recorder.extend_txn(self._op, steps)
        self._polls += [None if isinstance(step, Sending) else () for step in steps]


def dated(count: int, timestamp_ms: int) -> range:
    """The CreateTimes of the ``count`` records of a batch: all differ, so that none can stand in for another's.

    The first is ``timestamp_ms``, and each is a millisecond before the one in front of it: none is in the future.
    """
    return range(timestamp_ms, timestamp_ms - count, -1)
