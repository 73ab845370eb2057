"""Fills the input of a user's program: records with unique identities, several with the same key."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from harness.client_ports import ClientContext, Producer
from harness.client_tasks.sending_process import SendingProcesses
from harness.history.sends import Answer, Sends
from harness.identity import KEYS, input_record
from harness.model import TopicPartition

_PROCESS_SHIFT = 32


class InputProcesses(SendingProcesses):
    """A process whose records a user's program is to process; it sends one at a time.

    A value is the process's number in the upper 31 bits, then a counter, then the number of the record's key in the
    lower 16. A key belongs to one partition. When the counter is at its end, a new process goes on.

    Args:
        context: of the run.
        keys: how many there are in each partition.
    """

    def __init__(self, context: ClientContext, keys: int) -> None:
        super().__init__(context)
        self._keys = keys
        self._places = {name: number for number, name in enumerate(sorted(context.partitions))}
        self._drawn = random.Random(f"{context.seed}:keys:{self.first}")
        self._sent = 0

    async def send(
        self, producer: Producer, partition: TopicPartition, sizes: Sequence[int], acks: int, timestamp_ms: int
    ) -> list[tuple[int, Answer]]:
        """See :class:`SendingProcesses`; ``sizes`` is that of one record."""
        [size] = sizes
        key = self._places[partition] * self._keys + self._drawn.randrange(self._keys)
        value = (self.first << _PROCESS_SHIFT) + self._sent * KEYS + key
        self._sent += 1
        recorder, sends = self._context.recorder, Sends(partition, [value], [self.first], acks, [timestamp_ms])
        recorder.invoke_sends(sends)
        record = input_record(value, partition, size, timestamp_ms)
        [answer] = await producer.send_batch(partition, [record], partial(recorder.complete_sends, sends))
        self.are_usable = answer.kind != "info" and self._sent < (1 << _PROCESS_SHIFT) // KEYS
        return [(value, answer)]
