"""Polls and their rows in the history, and consumers that poll partitions in a loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.client_ports import BEGINNING, MOVED_ERRORS, ClientContext, Clients, Consumer, Isolation, Polled
from harness.history.polls import record_out_of_range
from harness.history.recorder import PolledRecord, Recorder
from harness.model import Offset, ProcessId, TopicPartition

POLL_S = 0.2
"""How long a poll waits for a record."""

Came = Callable[[Sequence[PolledRecord], Mapping[TopicPartition, Offset]], None]
"""Takes the records of a poll, and the positions after it."""

_POLL_RECORDS = 500
_AFTER_ERROR_S = 0.05


class _Take(NamedTuple):
    """How long a poll waits, and for how many records."""

    wait_s: float
    at_most: int


async def poll(
    recorder: Recorder, process: ProcessId, consumer: Consumer, *,
    final: bool, group: str | None = None, wait_s: float = POLL_S, at_most: int = _POLL_RECORDS,
) -> Polled:  # fmt: skip
    """Poll as ``process``, for ``group``, and record the outcome; ``final`` marks the final read."""
    op = recorder.invoke_poll(process, final, group, consumer.isolation)
    polled = await consumer.poll(at_most, wait_s)
    end_poll(recorder, op, polled)
    return polled


def end_poll(recorder: Recorder, op: int, polled: Polled) -> None:
    """Record the outcome of the poll ``op``, and first whether its consumer learned that it was out of range."""
    records, error, out_of_range = polled
    if error is not None and error in MOVED_ERRORS:
        record_out_of_range(recorder, op, error, out_of_range)
    if error is not None and not records:
        recorder.poll_failed(op, error)
    else:
        recorder.complete_poll(op, records)


class Tails:
    """The tailing consumers of a workload, among whom the partitions are dealt out, and how far they have come."""

    def __init__(self, context: ClientContext, consumers: int, isolation: Isolation) -> None:
        self._context = context
        self._isolation = isolation
        partitions = sorted(context.partitions)
        self._shares = [partitions[number::consumers] for number in range(consumers)]
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(partitions, 0)

    def works(self, clients: Clients) -> Iterator[Coroutine[Any, Any, None]]:
        """What each consumer does."""
        for share in filter(None, self._shares):
            yield tail(self._context, clients, share, self._came, self._isolation)

    def _came(self, _: Sequence[PolledRecord], positions: Mapping[TopicPartition, Offset]) -> None:
        self._polled.update(positions)

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)


async def tail(
    context: ClientContext,
    clients: Clients,
    partitions: Sequence[TopicPartition],
    came: Came,
    isolation: Isolation = "read_uncommitted",
    *,
    wait_s: float = POLL_S,
    at_most: int = _POLL_RECORDS,
) -> None:
    """Follow ``partitions`` until the clients stop; each poll waits ``wait_s`` for ``at_most`` records.

    A consumer whose poll ends with an error ends there. A new process goes on where it stood or, where the log no
    longer reaches that far, from the beginning.
    """
    take = _Take(wait_s, at_most)
    positions: Mapping[TopicPartition, Offset] = dict.fromkeys(partitions, BEGINNING)
    while not clients.stopping:
        process = context.new_process()
        consumer = clients.consumer(str(process), positions, isolation=isolation)
        try:
            positions = await _tail_as(context, clients, (process, consumer), came, take)
            await clients.sleep(_AFTER_ERROR_S)
        finally:
            consumer.close()


async def _tail_as(
    context: ClientContext,
    clients: Clients,
    client: tuple[ProcessId, Consumer],
    came: Came,
    take: _Take,
) -> Mapping[TopicPartition, Offset]:
    """Poll until an error; returns where the next process begins."""
    process, consumer = client
    while not clients.stopping:
        records, error, _ = await poll(
            context.recorder, process, consumer, final=False, wait_s=take.wait_s, at_most=take.at_most
        )
        came(records, {name: offset for name, offset in consumer.positions.items() if offset != BEGINNING})
        if error in MOVED_ERRORS:
            return dict.fromkeys(consumer.positions, BEGINNING)
        if error is not None:
            break
    return consumer.positions
