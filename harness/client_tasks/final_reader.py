"""The final read: fresh consumers read every partition from its start to its end."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

from harness.client_ports import BEGINNING, ClientContext, Clients, Consumer, Isolation
from harness.client_tasks.polling import poll
from harness.final_read import Unread
from harness.model import ProcessId, TopicPartition
from harness.orders import Pending

_READERS = 4
"""How many partitions are read at once."""
_LINGERING = 32
"""The same of a read that lingers, which mostly waits."""

_BOUNDS_TIMEOUT_S = 1.0
_AFTER_FAILED_READ_S = 1.0

LONGEST_LINGERING_S = 60.0
"""For how long a read that lingers asks for records that were acknowledged and do not come. Longer than Kafka's own
longest delay: a new leader may not deliver what a follower has not fetched until that follower leaves the ISR."""


class FinalReader:
    """Implements :class:`harness.final_read.FinalRead`.

    Args:
        context: of the run.
        isolation: of its consumers.
        lingers_s: for how long nothing more must come behind the end of a partition. Where no broker says how far its
            log reaches, only that shows that the read is complete (:mod:`checkers.views.final_reads`).

    Where something behind the end of a partition was acknowledged, the read goes on for :data:`LONGEST_LINGERING_S`, if
    it lingers, or has committed records: their end is the last stable offset, and the leader may append the markers of
    transactions that have ended after it has answered with that.
    """

    def __init__(
        self, context: ClientContext, isolation: Isolation = "read_uncommitted", lingers_s: float = 0.0
    ) -> None:
        self._lingers_s = lingers_s
        self._readers = _LINGERING if lingers_s else _READERS
        self._context = context
        self._isolation = isolation
        self._partitions = sorted(context.partitions)
        self._clients: Clients | None = None
        self._tasks: list[Pending[None]] = []
        self._unread: dict[TopicPartition, Unread] = {}

    def read(self, timeout_s: float) -> bool:
        """See :class:`harness.final_read.FinalRead`."""
        if self._clients is None or self._clients.stopping:
            self._clients = self._begin()
        rounds = math.ceil(len(self._partitions) / self._readers)
        self._clients.wait_until(self._has_read_all_it_can, timeout_s + self._lingers_s * rounds)
        self._clients.wait_until(self._has_ceased_to_linger, LONGEST_LINGERING_S * rounds)
        if self._unread:
            return False
        self.stop()
        return True

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """See :class:`harness.final_read.FinalRead`."""
        return dict(self._unread)

    def stop(self) -> None:
        """See :class:`harness.final_read.FinalRead`. A stop that is interrupted goes on with the next call."""
        if self._clients is not None:
            self._clients.stop()
            self._clients.join()

    def _begin(self) -> Clients:
        clients = self._context.new_clients()
        self._unread = dict.fromkeys(self._partitions, Unread())
        shares = (self._partitions[number :: self._readers] for number in range(self._readers))
        self._tasks = [clients.begin(self._read_all(clients, share)) for share in shares if share]
        return clients

    def _has_read_all_it_can(self) -> bool:
        for task in self._tasks:
            task.result()  # a bug in one of them must not look like silence
        return all(one.error for one in list(self._unread.values()))

    def _has_ceased_to_linger(self) -> bool:
        """Whether no partition is read on beyond its bounds for what was acknowledged, or waits behind one that is."""
        left = list(self._unread.items())
        reached = (name for name, one in left if one.end is not None and (one.position or 0) >= one.end)
        lingers = any(map(self._lacks, reached)) or not all(one.begun or one.error for _, one in left)
        return self._has_read_all_it_can() or not lingers

    async def _read_all(self, clients: Clients, partitions: Sequence[TopicPartition]) -> None:
        """Read one after the other to its end; one whose consumer fails comes up again after the others."""
        left = deque(partitions)
        while left and not clients.stopping:
            name = left.popleft()
            process = self._context.new_process()
            consumer = clients.consumer(str(process), {name: BEGINNING}, isolation=self._isolation)
            self._unread[name] = self._unread[name]._replace(begun=True)
            try:
                if await self._read_to_end(clients, name, process, consumer):
                    del self._unread[name]
                else:
                    left.append(name)
                    await clients.sleep(_AFTER_FAILED_READ_S)
            finally:
                consumer.close()

    async def _read_to_end(
        self, clients: Clients, partition: TopicPartition, process: ProcessId, consumer: Consumer
    ) -> bool:
        bounds = await consumer.bounds(partition, _BOUNDS_TIMEOUT_S)
        if bounds is None:  # other partitions must not wait for one that has no leader
            return False
        self._unread[partition] = self._unread[partition].bounded(*bounds)
        if bounds.start_offset == bounds.end_offset:  # nothing to wait for; the poll is the record of that
            found = await self._poll(process, consumer, partition)
            return found and (not self._lacks(partition) or await self._read_on(clients, partition, process, consumer))
        while consumer.positions[partition] < bounds.end_offset:
            if clients.stopping or not await self._poll(process, consumer, partition):
                return False
        return await self._read_on(clients, partition, process, consumer)

    async def _read_on(
        self, clients: Clients, partition: TopicPartition, process: ProcessId, consumer: Consumer
    ) -> bool:
        """Poll until nothing has come for as long as the read lingers; returns False where the consumer fails."""
        since_ns = clients.monotonic_ns()
        while clients.monotonic_ns() < since_ns + round(self._least_s(partition) * 1e9):
            before = self._unread[partition].position
            if clients.stopping or not await self._poll(process, consumer, partition):
                return False
            if self._unread[partition].position != before:
                since_ns = clients.monotonic_ns()
        return True

    def _least_s(self, partition: TopicPartition) -> float:
        """For how long nothing more must have come."""
        return LONGEST_LINGERING_S if self._lacks(partition) else self._lingers_s

    def _lacks(self, partition: TopicPartition) -> bool:
        """Whether what was acknowledged may still come, and has not."""
        may_come = bool(self._lingers_s) or self._isolation == "read_committed"
        position = self._unread.get(partition, Unread()).position or 0
        return may_come and position < self._context.recorder.acknowledged_to.get(partition, 0)

    async def _poll(self, process: ProcessId, consumer: Consumer, partition: TopicPartition) -> bool:
        """Poll and note how far the read has come; returns whether the consumer can go on."""
        error = (await poll(self._context.recorder, process, consumer, final=True)).error
        come = self._unread[partition].come_to(consumer.positions[partition])
        self._unread[partition] = come if error is None else come._replace(error=error)
        return error is None
