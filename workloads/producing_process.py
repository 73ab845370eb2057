"""Producing processes of the history: clients, their numbers, and the unique values they send."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Self

from harness import payload
from harness.clients.sender import PLAIN, Answer, Manner, Sender
from harness.history.recorder import Completion
from harness.model import TopicPartition
from harness.workload import SendOrder, Sent
from workloads.surroundings import Surroundings

_PROCESS_SHIFT = 32
_LINGER_MS = 50
"""Long enough for one thread to hand over a batch, record by record."""


class ProducingProcess:
    """Sends one record at a time; a context manager that closes its client.

    A value is the process's number in the upper 31 bits and a counter in the lower 32: unique in the run.
    """

    def __init__(self, around: Surroundings, acks: int, timeout_s: float, size: int) -> None:
        self._process = around.new_process()
        self._recorder = around.recorder
        self._acks = acks
        self._size = size
        self._next_value = self._process << _PROCESS_SHIFT
        self._sender = Sender(around.bootstrap, f"seawall-{self._process}", acks, timeout_s, around.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.close()

    def send(self, partition: TopicPartition, give_up: threading.Event | None = None) -> Completion:
        """Send the next value to ``partition`` and record it; returns how that ended.

        When ``give_up`` is set before the answer came, the operation ends with ``info``.
        """
        value = self._next_value
        self._next_value += 1
        data = payload.encode(value, partition.topic, partition.partition, self._size)
        op = self._recorder.invoke_send(self._process, partition.topic, partition.partition, value, self._acks)
        answer = self._sender.send(partition, data, give_up)
        self._recorder.complete_send(op, answer.kind, answer.offset, answer.error)
        return answer.kind


class OrderedProducer:
    """Sends what a schedule orders; a context manager that closes its client.

    The client is one, but each record of a batch, and each of several orders under way at once, is a process of its
    own in the history: none has more than one operation under way.
    """

    def __init__(self, around: Surroundings, order: SendOrder, size: int) -> None:
        manner = PLAIN
        if order.retries or order.idempotent or order.batch > 1:
            linger_ms = _LINGER_MS if order.batch > 1 else 0
            manner = Manner(order.retries, order.retry_after_s, order.idempotent, linger_ms)
        name = f"seawall-{order.producer or around.new_process()}"
        self._around = around
        self._size = size
        self._sender = Sender(around.bootstrap, name, order.acks, order.timeout_s, around.log, manner=manner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, partition: TopicPartition, order: SendOrder, give_up: threading.Event) -> list[Sent]:
        """Send the records that ``order`` has for ``partition``, batch by batch.

        Stops when the order's time is over, or when ``give_up`` is set.
        """
        sent: list[Sent] = []
        processes: list[_Slot] = []
        deadline = time.monotonic() + order.timeout_s
        while len(sent) < order.count and not give_up.is_set() and time.monotonic() < deadline:
            batch = min(order.batch, order.count - len(sent))
            processes = [slot for slot in processes if slot.is_usable]
            processes += [_Slot(self._around) for _ in range(batch - len(processes))]
            sent += self._send_batch(partition, order, processes[:batch], give_up)
        return sent

    def _send_batch(
        self, partition: TopicPartition, order: SendOrder, slots: Sequence[_Slot], give_up: threading.Event
    ) -> list[Sent]:
        values = [slot.invoke(partition, order.acks) for slot in slots]
        batch = [payload.encode(value, partition.topic, partition.partition, self._size) for value in values]
        timestamp_ms = time.time_ns() // 1_000_000 - order.age_ms if order.age_ms else None
        answers = self._sender.send_batch(partition, batch, timestamp_ms=timestamp_ms, give_up=give_up)
        for slot, answer in zip(slots, answers, strict=True):
            slot.complete(answer)
        return [
            Sent(partition, value, answer.kind, answer.offset, answer.error)
            for value, answer in zip(values, answers, strict=True)
        ]

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()


class _Slot:
    """A process of the history, for one record of a batch at a time.

    Attributes:
        is_usable: whether its last operation is known to have ended.
    """

    def __init__(self, around: Surroundings) -> None:
        self.is_usable = True
        self._recorder = around.recorder
        self._process = around.new_process()
        self._next_value = self._process << _PROCESS_SHIFT
        self._op = -1

    def invoke(self, partition: TopicPartition, acks: int) -> int:
        value = self._next_value
        self._next_value += 1
        self._op = self._recorder.invoke_send(self._process, partition.topic, partition.partition, value, acks)
        return value

    def complete(self, answer: Answer) -> None:
        self._recorder.complete_send(self._op, answer.kind, answer.offset, answer.error)
        self.is_usable = answer.kind != "info"
