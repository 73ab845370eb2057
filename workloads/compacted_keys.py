"""compacted_keys: keys that writers overwrite and delete, and readers read, in a topic whose log is compacted.

Producers and consumers of the other topics run beside them. Writers overwrite the values of a few keys, and delete them
with tombstones. Readers read the whole log, from its beginning to the high watermark that they were told, again and
again; after the faults one reads it for the last time, when a last record, of a key of its own, is acknowledged: the
high watermark is at the end of the log then. The topic has ``cleanup.policy=compact`` and segments that close
soon, so that a cleaner has something to do. It works every ``log.cleaner.backoff.ms``: a scenario should set that to a
second or two. A tombstone stays for a week, unless ``tombstone_ms`` says otherwise. With ``retire_every_s`` keys are
given up one by one: the first writer deletes one, and nothing more is written of it, so that its tombstone goes.

Promised: as under unique_sends; and in the log that is compacted, the last acknowledged value of each key below the
high watermark stays until another one supersedes it. A tombstone stays for ``tombstone_ms``; after it the key is gone,
and no older value of it is read again.

Judged: as under unique_sends; and what each reader of the whole log was given of each key against the last value of it
that had been acknowledged before, a tombstone's time counted from its send; in the end what each in-sync replica has on
its disk of it, too, until a tombstone of the key may be gone.

Missed: values that are superseded and stay; tombstones that stay; on replicas that no reader was given, keys of which a
tombstone may be gone, for only leaders serve readers; a tombstone that a reader is not given although it began less
than ``tombstone_ms`` before, when no older value was given to it either; transactions on the topic, and DeleteRecords.
Unless ``tombstone_ms`` is shorter than the run, no tombstone comes of age in it, and nothing of that is tried. In every
release a replica brings keys back that was away while others forgot their tombstones, so ``tombstone_ms`` should be
longer than any fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from harness import compacted
from harness.client_ports import BEGINNING, PLAIN, ClientContext, Clients, Producer
from harness.client_tasks.sends_and_tails import SendsAndTails
from harness.client_tasks.steady_sends import SteadySendsParameters
from harness.errors import UsageError
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer
from harness.model import Offset, ProcessId, TopicPartition
from harness.orders import ALL_ACKS
from harness.target import TopicSpec
from harness.workload import Circumstances, WorkloadKind

_PROCESS_SHIFT = 32
_NS_PER_S = 1_000_000_000
_SCAN_S = 30.0
_POLL_S = 0.2
_POLL_RECORDS = 500
_AFTER_INFO_S = 0.05
_LAST_SCAN_S = 60.0
_LAST_PUT_S = 20.0
"""For how long the last record is tried; after that the last reading is one like the others, which proves less."""
_CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
_WEEK_MS = 604_800_000
_PLACE = TopicPartition(compacted.TOPIC, 0)
_LAST_KEY = compacted.SLOTS // 2 - 1
"""The key of the last record."""


class CompactedKeysParameters(SteadySendsParameters):
    """What a scenario may write about the workload, besides what it may about the producers of other topics.

    Attributes:
        consumers: tailing consumers of other topics; their partitions are dealt out among them.
        writers: producers that write to the compacted topic.
        writes: records per second that all of them write.
        keys: how many keys there are.
        tombstones: the share of records that delete their key.
        readers: consumers that read the whole compacted log.
        read_every_s: how long a reader waits before it begins anew.
        segment_ms: ``segment.ms`` of the compacted topic: after how long a segment closes, and may be compacted.
        tombstone_ms: its ``delete.retention.ms``: for how long a tombstone stays after it was first compacted.
        retire_every_s: after how long the next key is given up, and a new one taken up; 0: the keys stay the same.
    """

    rate: float = Field(default=20.0, ge=0, le=100_000)
    consumers: int = Field(default=2, ge=1, le=64)
    writers: int = Field(default=2, ge=1, le=64)
    writes: float = Field(default=20.0, gt=0, le=10_000)
    keys: int = Field(default=8, ge=1, le=1_000)
    tombstones: float = Field(default=0.1, ge=0, le=1)
    readers: int = Field(default=1, ge=1, le=64)
    read_every_s: float = Field(default=0.5, ge=0, le=3_600)
    segment_ms: int = Field(default=1_000, ge=1, le=_WEEK_MS)
    tombstone_ms: int = Field(default=_WEEK_MS, ge=0, le=_WEEK_MS)
    retire_every_s: float = Field(default=0.0, ge=0, le=3_600)

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return {"tombstones_stay_ms": self.tombstone_ms}

    def own_topics(self, topics: Sequence[TopicSpec]) -> Sequence[TopicSpec]:
        """See :class:`harness.workload.WorkloadParameters`: one partition, replicated as the first topic is."""
        like = topics[0]
        assignment = None if like.assignment is None else like.assignment[:1]
        times = {"segment.ms": str(self.segment_ms), "delete.retention.ms": str(self.tombstone_ms)}
        configs = {**_CONFIGS, **times}
        return (TopicSpec(compacted.TOPIC, 1, like.replication_factor, assignment, configs),)

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        if not found.features.carried.headers:
            raise UsageError(
                f"workload compacted_keys sends records with headers, and target {found.target!r} stores none.",
                "Run it on a generation or release from 0.11 on.",
            )


class CompactedKeys(SendsAndTails):
    """Writes keys, and reads what is left of them, beside a load of other topics."""

    def __init__(self, parameters: CompactedKeysParameters, context: ClientContext) -> None:
        super().__init__(parameters, parameters.consumers, context)
        self._own = parameters
        self._begun_ns = self.clients.monotonic_ns()

    def finish(self, report: Callable[[str], None]) -> None:
        """See :class:`harness.workload.Workload`: read the compacted log for the last time."""
        report("reading the compacted log for the last time")
        clients = self.context.new_clients()
        done: list[bool] = []

        async def read() -> None:
            until_ns = clients.monotonic_ns() + round(_LAST_PUT_S * _NS_PER_S)
            last: Offset | None = None
            is_read = False
            while not is_read and not clients.stopping:
                if clients.monotonic_ns() > until_ns:
                    is_read = await self._scan(clients, final=False)
                elif last is None:
                    last = await self._put_last(clients)
                else:
                    is_read = await self._scan(clients, final=True, beyond=last)
                if not is_read:
                    await clients.sleep(_POLL_S)
            done.append(is_read)

        clients.begin(read())
        clients.wait_until(lambda: bool(done), _LAST_SCAN_S)
        clients.stop()
        clients.join()

    def works(self) -> Iterator[Coroutine[Any, Any, None]]:
        """See :class:`harness.client_tasks.sends_and_tails.SendsAndTails`."""
        yield from map(self._write, range(self._own.writers))
        yield from (self._read() for _ in range(self._own.readers))

    async def _write(self, number: int) -> None:
        """Write at the given pace, as one process after the other, each until an answer is ``info``."""
        clients, ours = self.clients, self._own
        drawn = random.Random(f"{self.context.seed}:writer:{number}")
        pause_s = ours.writers / ours.writes
        deleted = 0
        while not clients.stopping:
            process, sent = self.context.new_process(), 0
            producer = clients.producer(f"writer-{process}", ALL_ACKS, ours.delivery_timeout_s, PLAIN)
            answer_kind = "ok"
            while answer_kind != "info" and not clients.stopping:
                await clients.sleep(pause_s * drawn.uniform(0.5, 1.5))
                retired = self._retired()
                deletes_one = number == 0 and deleted < retired
                key = deleted if deletes_one else retired + drawn.randrange(ours.keys)
                deleted += deletes_one
                slot = 2 * (key % _LAST_KEY) + (deletes_one or drawn.random() < ours.tombstones)
                value = (process << _PROCESS_SHIFT) + sent * compacted.SLOTS + slot
                sent += 1
                answer_kind = (await self._put(clients, producer, process, value)).kind
            producer.close()
            await clients.sleep(_AFTER_INFO_S)

    def _retired(self) -> int:
        """How many keys have been given up by now."""
        every_s = self._own.retire_every_s
        return int((self.clients.monotonic_ns() - self._begun_ns) / _NS_PER_S / every_s) if every_s else 0

    async def _put(self, clients: Clients, producer: Producer, process: ProcessId, value: int) -> Answer:
        op = self.context.recorder.invoke_put(process, _PLACE, value)
        record = compacted.record(value, _PLACE, self._own.size, clients.wall_ms())
        [answer] = await producer.send_batch(_PLACE, [record])
        self.context.recorder.complete_put(op, answer.kind, answer.offset, answer.error)
        return answer

    async def _put_last(self, clients: Clients) -> Offset | None:
        """Write a record of a key that no writer has; returns its offset, None: it was not acknowledged."""
        process = self.context.new_process()
        producer = clients.producer(f"writer-{process}", ALL_ACKS, self._own.delivery_timeout_s, PLAIN)
        try:
            value = (process << _PROCESS_SHIFT) + 2 * _LAST_KEY
            answer = await self._put(clients, producer, process, value)
            return answer.offset if answer.kind == "ok" else None
        finally:
            producer.close()

    async def _read(self) -> None:
        """Read the whole log, again and again."""
        while not self.clients.stopping:
            await self._scan(self.clients, final=False)
            await self.clients.sleep(self._own.read_every_s)

    async def _scan(self, clients: Clients, *, final: bool, beyond: Offset = -1) -> bool:
        """Read the log from its beginning to the watermark that its leader tells; returns whether that was done.

        It is not when the watermark is not ``beyond``.
        """
        process = self.context.new_process()
        consumer = clients.consumer(compacted.reader_name(process), {_PLACE: BEGINNING})
        try:
            bounds = await consumer.bounds(_PLACE, self._own.delivery_timeout_s)
            if bounds is None or bounds.end_offset <= beyond:
                return False
            op = self.context.recorder.invoke_scan(process, _PLACE, bounds.end_offset, final=final)
            found: list[PolledRecord] = []
            until_ns = clients.monotonic_ns() + round(_SCAN_S * _NS_PER_S)
            error: str | None = None
            while consumer.positions[_PLACE] < bounds.end_offset and error is None:
                polled = await consumer.poll(_POLL_RECORDS, _POLL_S)
                found += polled.records
                error = polled.error
                if error is None and (clients.stopping or clients.monotonic_ns() > until_ns):
                    error = "_TIMED_OUT"
            self.context.recorder.complete_scan(op, found, error)
            return error is None
        finally:
            consumer.close()


KIND = WorkloadKind(
    "compacted_keys",
    CompactedKeysParameters,
    CompactedKeys,
    {"rate": 30, "producers": 2, "consumers": 1, "writers": 2, "writes": 30, "keys": 4},
)
