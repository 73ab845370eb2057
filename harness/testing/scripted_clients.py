"""The clients of a run in memory: orders are kept for a test to look at, and the test scripts their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from harness.final_read import Unread
from harness.model import Offset, TopicPartition
from harness.orders import (
    CommitOrder,
    Consumed,
    ConsumeOrder,
    DeleteOrder,
    Done,
    SendOrder,
    Sent,
    SpoofedFetchOrder,
)
from harness.workload import Workload

ResultT = TypeVar("ResultT")


class Scripted(Generic[ResultT]):
    """Implements :class:`harness.orders.Pending`: ``answer`` is asked at each look."""

    def __init__(self, answer: Callable[[], ResultT | None]) -> None:
        self._answer = answer

    def result(self) -> ResultT | None:
        """See :class:`harness.orders.Pending`."""
        return self._answer()


@dataclass
class ScriptedClient:
    """Implements :class:`harness.orders.ScheduledClient` and :class:`harness.final_read.FinalRead`.

    Attributes:
        refuses: how many records of each order are not acknowledged: the last ones.
        answers: asked whenever an order is looked at: whether its result is there yet.
        consumed: the result of the next ``consume``.
        error: the result of ``commit``, ``delete_records`` and ``spoof_fetch``; None: success.
        reading: asked what the final read has not come to the end of.
        orders: everything that was ordered.
    """

    refuses: int = 0
    answers: Callable[[], bool] = field(default=lambda: True)
    consumed: Consumed = field(default_factory=lambda: Consumed(None, {}, {}))
    error: str | None = None
    reading: Callable[[], Mapping[TopicPartition, Unread]] = dict
    orders: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends: dict[TopicPartition, Offset] = {}
        self._values = 0

    def send(self, order: SendOrder) -> Scripted[Sequence[Sent]]:
        """See :class:`harness.orders.ScheduledClient`; acknowledged records are at consecutive offsets."""
        self.orders.append(order)
        total = order.count * len(order.partitions)
        sent: list[Sent] = []
        for partition in order.partitions:
            for _ in range(order.count):
                sent.append(self._sent(partition, acknowledged=len(sent) < total - self.refuses))
        return Scripted(lambda: sent if self.answers() else None)

    def consume(self, order: ConsumeOrder) -> Scripted[Consumed]:
        """See :class:`harness.orders.ScheduledClient`."""
        self.orders.append(order)
        return Scripted(lambda: self.consumed if self.answers() else None)

    def commit(self, order: CommitOrder) -> Scripted[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._done(order)

    def delete_records(self, order: DeleteOrder) -> Scripted[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._done(order)

    def spoof_fetch(self, order: SpoofedFetchOrder) -> Scripted[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._done(order)

    def read(self, timeout_s: float) -> bool:
        """See :class:`harness.final_read.FinalRead`."""
        return not self.unread()

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """See :class:`harness.final_read.FinalRead`."""
        return self.reading()

    def stop(self) -> None:
        """See :class:`harness.orders.ScheduledClient`."""

    def _done(self, order: CommitOrder | DeleteOrder | SpoofedFetchOrder) -> Scripted[Done]:
        self.orders.append(order)
        return Scripted(lambda: Done(self.error) if self.answers() else None)

    def _sent(self, partition: TopicPartition, *, acknowledged: bool) -> Sent:
        self._values += 1
        if not acknowledged:
            return Sent(partition, self._values, "info", None, "NOT_ENOUGH_REPLICAS")
        offset = self._ends.get(partition, 0)
        self._ends[partition] = offset + 1
        return Sent(partition, self._values, "ok", offset, None)


class ScriptedLoad(Workload):
    """A workload without clients; a test sets :attr:`reached`, what :meth:`polled` returns."""

    def __init__(self) -> None:
        self.reached: Mapping[TopicPartition, Offset] = {}

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return self.reached

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`."""
