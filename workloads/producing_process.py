"""Producing processes of the history, each with a client of librdkafka's."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Self

from harness.clients.sender import PLAIN, Manner, Sender
from harness.clients.sending_process import SendingProcess, TransactingProcess, begin_batch, end_batch, usable
from harness.clients.transactional_sender import TransactionalSender
from harness.history.recorder import Completion
from harness.model import TopicPartition
from harness.workload import SendOrder, Sent
from workloads.workload_context import WorkloadContext


class ProducingProcess:
    """Sends one record at a time; a context manager that closes its client. ``acks``: -1 (all), 1 or 0."""

    def __init__(self, around: WorkloadContext, manner: Manner, acks: int, timeout_s: float, size: int) -> None:
        number = around.new_process()
        self._process = SendingProcess(around.recorder, number, around.carried)
        self._acks = acks
        self._size = size
        name = f"seawall-{number}"
        self._sender = Sender(around.bootstrap, name, acks, timeout_s, around.log, manner=manner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.close()

    def send(self, partition: TopicPartition, give_up: threading.Event | None = None) -> Completion:
        """Send the next value to ``partition`` and record it; returns how that ended.

        When ``give_up`` is set before the answer came, the operation ends with ``info``.
        """
        record = self._process.begin(partition, self._acks, self._size, _now_ms())
        answer = self._sender.send(partition, record, give_up)
        self._process.end(answer)
        return answer.kind


class OrderedProducer:
    """Sends what a schedule orders; a context manager that closes its client.

    The client is one, but each record of a batch, and each of several orders under way at once, is a process of its
    own in the history: none has more than one operation under way.
    """

    def __init__(self, around: WorkloadContext, order: SendOrder, size: int) -> None:
        manner = PLAIN
        if order.retries or order.idempotent or order.batch > 1:
            manner = Manner(order.retries, order.retry_after_s, order.idempotent, order.batch)
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
        processes: list[SendingProcess] = []
        deadline = time.monotonic() + order.timeout_s
        while len(sent) < order.count and not give_up.is_set() and time.monotonic() < deadline:
            batch = min(order.batch, order.count - len(sent))
            processes = usable(processes, batch, self._new_process)
            sent += self._send_batch(partition, order, processes, give_up)
        return sent

    def _send_batch(
        self, partition: TopicPartition, order: SendOrder, processes: Sequence[SendingProcess], give_up: threading.Event
    ) -> list[Sent]:
        batch = begin_batch(processes, partition, order.acks, self._size, _now_ms() - order.age_ms)
        answers = self._sender.send_batch(partition, batch, give_up=give_up)
        return end_batch(processes, partition, answers)

    def _new_process(self) -> SendingProcess:
        return SendingProcess(self._around.recorder, self._around.new_process(), self._around.carried)

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()


class TransactingProducer:
    """Sends what a schedule orders in transactions, one for each partition of an order, one after the other.

    One that an order leaves open the next order goes on with. Each is of a process of its own in the history.
    """

    def __init__(self, around: WorkloadContext, order: SendOrder, size: int) -> None:
        self._around = around
        self._size = size
        self._one_at_a_time = threading.Lock()
        self._sender = TransactionalSender(around.bootstrap, f"seawall-{order.producer}", order.timeout_s, around.log)
        self._process: TransactingProcess | None = None

    def send(self, partition: TopicPartition, order: SendOrder, give_up: threading.Event) -> list[Sent]:
        """Run one transaction, or a part of one; none any more once ``give_up`` is set.

        Returns what became of the records of the order; where the transaction ends, of all that were sent in it.
        """
        with self._one_at_a_time:
            if give_up.is_set() or (self._process is None and not order.count):
                return []
            if self._process is None:
                self._process = TransactingProcess(
                    self._around.recorder, self._around.new_process(), self._around.carried
                )
            made_ms = _now_ms() - order.age_ms
            ended = self._sender.send(partition, self._process.begin(partition, order.count, self._size, made_ms))
            if ended is None and order.transaction == "open":
                return self._process.taken(self._sender.offsets)[-order.count :]
            process, self._process = self._process, None
            return process.end(ended or self._sender.end(commits=order.transaction == "commit"))

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()


def _now_ms() -> int:
    """The client's wall clock, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000
