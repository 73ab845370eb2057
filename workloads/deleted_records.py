"""deleted_records: clients delete the beginning of logs, and look offsets up by time, while others send and read.

Producers and consumers run as under unique_sends. Now and then a client has everything before an offset deleted in one
partition (DeleteRecords, KIP-107): the first time all up to the high watermark, later some of the older half of all
records; consumers that were not as far begin anew where the log begins then. Others ask from which offset on records
are as young as a time (``offsetsForTimes``), mostly the time of a record that they have read, and read from there on.

Promised: as under unique_sends; a request deletes what lies before its offset, all of it where it is acknowledged, and
nothing else; a lookup by time leaves no record out that is as young and had been delivered.

Judged: as under unique_sends; each request against the logs and what they lack in the end; each answer to a lookup
against the timestamps of what had been delivered before it.

Missed: on real Kafka, whose logs' beginnings are samples, a request that was answered and deletes nothing or too
little, where not every leader that may have answered was looked at afterwards, in the same life and before a later
request deleted more; one that deletes too much there is a lost write; and one that is refused for no reason; an answer
to a lookup that lies before the record, for brokers may answer with the beginning of a batch; records that were
acknowledged and not yet delivered when a lookup began; retention by age or size, unless the scenario sets
``log.retention.ms`` or ``log.retention.bytes``, and then what is deleted is judged in the same way; compacted topics,
whose records Kafka lets no client delete.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterator
from typing import Any

from pydantic import Field

from harness.client_ports import ClientContext, Consumer
from harness.client_tasks.polling import poll
from harness.client_tasks.sends_and_tails import SendsAndTails
from harness.client_tasks.steady_sends import SteadySendsParameters
from harness.errors import UsageError
from harness.history.lookups import begin_lookup, end_lookup
from harness.model import ProcessId, TopicPartition
from harness.orders import DeleteOrder
from harness.workload import Circumstances, WorkloadKind

_KEPT = 0.5
"""The share of all records that is never deleted, but for the first request: what stays shows in the end what lookups
should have found, and that what was acknowledged is there."""
_KNOWN_TIMES = 100
"""How many timestamps of a partition a client remembers."""
_ANY_TIME = 0.1
"""The share of lookups for another time than one of those."""
_PAST_MS, _FUTURE_MS = 4_000, 1_000
_AFTER_ERROR_S = 0.05


class DeletedRecordsParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        consumers: tailing consumers; the partitions are dealt out among them.
        delete_every_s: after how long on the average a client deletes records of a partition again.
        deleted_partitions: of how many partitions at most, the first by name; None: of all. What a partition loses from
            which records are deleted may be excused by that, so beside other workloads some are better left alone.
        lookers: clients that look offsets up.
        lookup_every_s: after how long on the average each of them asks again.
    """

    consumers: int = Field(default=2, ge=1, le=64)
    delete_every_s: float = Field(default=1.0, gt=0, le=3_600)
    deleted_partitions: int | None = Field(default=None, ge=1)
    lookers: int = Field(default=1, ge=1, le=64)
    lookup_every_s: float = Field(default=0.2, gt=0, le=3_600)

    @property
    def deletes_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        if not found.features.carried.headers:
            raise UsageError(
                f"workload deleted_records sends DeleteRecords, which target {found.target!r} does not know.",
                "Run it on a generation or release from 0.11 on.",
            )


class DeletedRecords(SendsAndTails):
    """Sends and reads, deletes what is old, and looks offsets up by time."""

    def __init__(self, parameters: DeletedRecordsParameters, context: ClientContext) -> None:
        super().__init__(parameters, parameters.consumers, context)
        self._own = parameters

    def works(self) -> Iterator[Coroutine[Any, Any, None]]:
        """See :class:`harness.client_tasks.sends_and_tails.SendsAndTails`."""
        yield self._delete()
        yield from map(self._look_up, range(self._own.lookers))

    async def _delete(self) -> None:
        """Delete the beginning of one partition after the other."""
        clients, drawn = self.clients, random.Random(f"{self.context.seed}:deletions")
        consumer, begun = clients.consumer("deleter", {}), set[TopicPartition]()
        partitions = sorted(self.context.partitions)[: self._own.deleted_partitions]
        try:
            while not clients.stopping:
                await clients.sleep(self._own.delete_every_s * drawn.uniform(0.5, 1.5))
                place = drawn.choice(partitions)
                bounds = await consumer.bounds(place, self._own.delivery_timeout_s)
                if bounds is not None and not clients.stopping:
                    most = max(bounds.start_offset, round(bounds.end_offset * (1 - _KEPT)))
                    before = drawn.randint(bounds.start_offset, most) if place in begun else None
                    begun.add(place)
                    order = DeleteOrder((place,), before, self._own.delivery_timeout_s)
                    await clients.delete_records(order, self.context.recorder.orders)
        finally:
            consumer.close()

    async def _look_up(self, number: int) -> None:
        """Ask, and read from the answer on, as one process after the other, each until it is not answered."""
        clients, drawn = self.clients, random.Random(f"{self.context.seed}:looker:{number}")
        times: dict[TopicPartition, deque[int]] = defaultdict(lambda: deque(maxlen=_KNOWN_TIMES))
        while not clients.stopping:
            process = self.context.new_process()
            consumer = clients.consumer(str(process), {})
            is_answered = True
            while is_answered and not clients.stopping:
                await clients.sleep(self._own.lookup_every_s * drawn.uniform(0.5, 1.5))
                place = drawn.choice(sorted(self.context.partitions))
                timestamp_ms = clients.wall_ms() + drawn.randint(-_PAST_MS, _FUTURE_MS)
                if times[place] and drawn.random() >= _ANY_TIME:
                    timestamp_ms = drawn.choice(times[place])
                is_answered = await self._ask((process, consumer), place, timestamp_ms, times[place])
            consumer.close()
            await clients.sleep(_AFTER_ERROR_S)

    async def _ask(
        self, client: tuple[ProcessId, Consumer], place: TopicPartition, timestamp_ms: int, times: deque[int]
    ) -> bool:
        """Look a time up, and read from there on; returns whether there was an answer."""
        process, consumer = client
        op = begin_lookup(self.context.recorder, process, place, timestamp_ms)
        found = await consumer.offset_for_time(place, timestamp_ms, self._own.delivery_timeout_s)
        end_lookup(self.context.recorder, op, found.offset, found.error)
        if found.offset is not None and not self.clients.stopping:
            reader = self.context.new_process()
            reading = self.clients.consumer(str(reader), {place: found.offset}, isolation=self._own.isolation)
            try:
                polled = await poll(self.context.recorder, reader, reading, final=False)
                times += [record.timestamp_ms for record in polled.records if record.timestamp_ms is not None]
            finally:
                reading.close()
        return found.error is None


KIND = WorkloadKind(
    "deleted_records",
    DeletedRecordsParameters,
    DeletedRecords,
    {"rate": 40, "producers": 2, "consumers": 1, "delete_every_s": 0.5, "lookup_every_s": 0.1},
)
