"""Deletes records on the bare core: by retention, or because a client has asked for it."""

from __future__ import annotations

from harness.error_codes import NO_ERROR
from harness.history.delete_records_log import GAVE_UP, DeleteRecordsLog
from harness.model import Offset
from harness.replication.messages import (
    AnswerDeleteRecords,
    DeleteRecordsExpired,
    DeleteRecordsRequested,
    RetentionReached,
)
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import MS, PARTITION
from harness.simulation.core.scheduler import Scheduler


class Deletions:
    """See the module.

    Args:
        scheduler: when a client gives up.
        orders: records what clients ask for.
        wait_ms: how long a client waits, and lets the leader wait.
    """

    def __init__(self, scheduler: Scheduler, orders: DeleteRecordsLog, wait_ms: int) -> None:
        self._scheduler = scheduler
        self._orders = orders
        self._wait_ms = wait_ms

    def retire(self, broker: Broker, percent: int) -> None:
        """Let a broker delete its oldest batches, as far as they are committed."""
        disk = broker.disk
        batches = disk.batches[len(disk.batches) * percent // 100 :]
        before = batches[0].span.base_offset if batches else disk.end
        broker.handle(RetentionReached(before, broker.now_ns))

    def order(self, broker: Broker, percent: int) -> None:
        """Ask a leader to delete that much of what is committed."""
        replica, start = broker.replica, broker.disk.start
        assert replica is not None
        self._order(broker, start + (replica.high_watermark - start) * percent // 100)

    def _order(self, broker: Broker, before: Offset) -> None:
        """A client asks for the deletion, and waits as long as the leader may."""
        scheduler, wait_ms = self._scheduler, self._wait_ms
        order = self._orders.sent(PARTITION, before, wait_ms, broker.node)

        def answered(answer: AnswerDeleteRecords) -> None:
            error = None if answer.error is NO_ERROR else answer.error.name
            self._orders.ended(order, error, answer.low_watermark)

        broker.handle(DeleteRecordsRequested(answered, before, broker.now_ns))
        scheduler.after(broker, wait_ms * MS, broker.handle, DeleteRecordsExpired(answered))
        scheduler.at(scheduler.now_ns + wait_ms * MS, lambda _: self._orders.ended(order, GAVE_UP), None)
