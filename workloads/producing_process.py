"""One producing process of the history: a client, its number, and the unique values it sends."""

from __future__ import annotations

import threading
from typing import Self

from harness import payload
from harness.clients.sender import Sender
from harness.history.recorder import Completion
from harness.model import TopicPartition
from workloads.surroundings import Surroundings

_PROCESS_SHIFT = 32


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
