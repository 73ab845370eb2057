"""unique_sends: producers that send values never sent before, and consumers that follow every partition.

A *process* is one client and has at most one operation under way. A producer whose operation ended with ``info``
may still have a record under way somewhere, so it ends there: a new client goes on under a new process number,
and no number is ever used twice. So does a consumer whose poll ended with an error; it goes on where the old one
stood, or, where the log no longer reaches that far, from the beginning.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar, Literal, Self

from pydantic import Field

from harness.clients.reader import BEGINNING, MOVED_ERRORS, Bounds, Reader
from harness.clients.sender import NUMBERED, PLAIN
from harness.clients.spoofed_fetch import spoof_fetch
from harness.clients.topics import delete_records
from harness.errors import EnvironmentFault
from harness.model import Offset, ProcessId, TopicPartition
from harness.simulation.stack.sends import SimulatedSends
from harness.steps import Seconds
from harness.workload import (
    ALL_ACKS,
    CommitOrder,
    Consumed,
    ConsumeOrder,
    DeleteOrder,
    Done,
    SendOrder,
    Sent,
    SpoofedFetchOrder,
    Unread,
    WorkloadParameters,
)
from workloads.group_reading import GroupMember, commit
from workloads.pending import Threaded
from workloads.producing_process import OrderedProducer, ProducingProcess, TransactingProducer
from workloads.workers import Deadline, Workers
from workloads.workload_context import WorkloadContext
from workloads.workload_kind import WorkloadKind

_POLL_S = 0.2
_POLL_RECORDS = 500
_BOUNDS_TIMEOUT_S = 1.0
_AFTER_INFO_S = 0.05
_AFTER_FAILED_READ_S = 1.0
_LOOK_S = 0.05
_READERS_AT_ONCE = 4
_GRACE_S = 10.0
"""How long an order under way may take to end once the load is to stop."""


class UniqueSendsParameters(WorkloadParameters):
    """What a scenario may write about the workload.

    Attributes:
        producers: background producers.
        consumers: tailing consumers; the partitions are dealt out among them.
        rate: background records per second of all producers together; 0: only what a schedule sends.
        size: the least size of a record, in bytes.
        delivery_timeout_s: how long a background producer waits for an answer.
        isolation: whether consumers are given what transactions have not committed.
        acks: what background producers ask for, dealt out to them in turn.
        idempotent: whether background producers with acks=all number their records (KIP-98) and send them again until
            they are answered; generations and releases before 0.11 do not know that, and there they send once only.
    """

    producers: int = Field(default=4, ge=1, le=64)
    consumers: int = Field(default=2, ge=1, le=64)
    rate: float = Field(default=0.0, ge=0, le=100_000)
    size: int = Field(default=0, ge=0, le=1_000_000)
    delivery_timeout_s: Seconds = Field(default=2.0, gt=0)
    acks: tuple[Literal["all", 0, 1], ...] = Field(default=("all",), min_length=1)
    idempotent: bool = False
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"

    def acks_of(self, producer: int) -> int:
        """What the background producer of that number, from 0, asks for: -1 (all), 1 or 0."""
        written = self.acks[producer % len(self.acks)]
        return ALL_ACKS if written == "all" else written

    def numbers(self, acks: int) -> bool:
        """Whether a background producer with these acks numbers its records."""
        return self.idempotent and acks == ALL_ACKS

    @property
    def has_background_load(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.rate > 0

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.delivery_timeout_s

    @property
    def numbers_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.idempotent

    @property
    def asked_acks(self) -> frozenset[int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return frozenset(map(self.acks_of, range(self.producers)))

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.model_copy(update={"idempotent": False})


class UniqueSends:
    """Implements :class:`harness.workload.Workload`."""

    name: ClassVar[str] = "unique_sends"

    def __init__(self, parameters: UniqueSendsParameters, around: WorkloadContext) -> None:
        self._parameters = parameters
        self._around = around
        self._partitions = sorted(around.partitions)
        self._crew = Workers(around.failed)
        self._sendings: list[Threaded[list[Sent]]] = []
        self._naming = threading.Lock()
        self._named: dict[str, OrderedProducer | TransactingProducer] = {}
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(self._partitions, 0)
        self._readers: Workers | None = None
        self._unread: dict[TopicPartition, Unread] = {}

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for number in range(self._parameters.consumers):
            share = self._partitions[number :: self._parameters.consumers]
            if share:
                self._crew.start(partial(self._tail, share))
        if self._parameters.rate:
            for number in range(self._parameters.producers):
                self._crew.start(partial(self._produce, number))

    def send(self, order: SendOrder) -> Threaded[list[Sent]]:
        """See :class:`harness.workload.Workload`. Partitions are served side by side."""
        sending = Threaded(partial(self._send, order))
        self._sendings.append(sending)
        return sending

    def consume(self, order: ConsumeOrder) -> Threaded[Consumed]:
        """See :class:`harness.workload.Workload`."""
        return Threaded(GroupMember(self._around, order).read)

    def commit(self, order: CommitOrder) -> Threaded[Done]:
        """See :class:`harness.workload.Workload`."""
        return Threaded(partial(commit, self._around, order))

    def delete_records(self, order: DeleteOrder) -> Threaded[Done]:
        """See :class:`harness.workload.Workload`."""
        bootstrap, orders = self._around.bootstrap, self._around.recorder.orders
        return Threaded(
            lambda: Done(delete_records(bootstrap, order.partitions, order.before, order.timeout_s, orders))
        )

    def spoof_fetch(self, order: SpoofedFetchOrder) -> Threaded[Done]:
        """See :class:`harness.workload.Workload`."""
        host, port = self._around.bootstrap.split(",")[order.to].rsplit(":", 1)
        return Threaded(lambda: Done(spoof_fetch((host, int(port)), order)))

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`."""
        self._crew.stop()
        while self._sendings:
            self._sendings.pop().wait(_GRACE_S)
        with self._naming:
            while self._named:
                self._named.popitem()[1].close()
        self._crew = Workers(self._around.failed)
        if self._readers is not None:
            readers, self._readers = self._readers, None
            readers.stop()

    def final_read(self, timeout_s: float) -> bool:
        """See :class:`harness.workload.Workload`."""
        if self._readers is None:
            self._readers = self._begin_final_read()
        patience = Deadline(timeout_s)
        while not self._readers.join(min(patience.left_s(), _LOOK_S)):
            if not patience.left_s() or all(one.error for one in self.unread().values()):
                return False
        self._readers = None
        return True

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._unread)

    # ------------------------------------------------------------------------------------------------ producing

    def _produce(self, number: int) -> None:
        drawn = random.Random(f"{self._around.seed}:producer:{number}")
        interval_s = self._parameters.producers / self._parameters.rate
        due = time.monotonic() + drawn.random() * interval_s
        while not self._crew.stopping.wait(max(0.0, due - time.monotonic())):
            with self._producing(self._parameters.acks_of(number)) as client:
                due = self._produce_as(client, drawn, due, interval_s)

    def _produce_as(self, client: ProducingProcess, drawn: random.Random, due: float, interval_s: float) -> float:
        """Send at the given pace until an answer is ``info``; returns when the next record is due."""
        while not self._crew.stopping.wait(max(0.0, due - time.monotonic())):
            kind = client.send(drawn.choice(self._partitions))
            due = max(due + interval_s, time.monotonic() - interval_s)
            if kind == "info":
                return max(due, time.monotonic() + _AFTER_INFO_S)
        return due

    def _send(self, order: SendOrder) -> list[Sent]:
        with ThreadPoolExecutor(max_workers=len(order.partitions)) as pool:
            return [one for sent in pool.map(lambda name: self._send_to(name, order), order.partitions) for one in sent]

    def _send_to(self, partition: TopicPartition, order: SendOrder) -> list[Sent]:
        if order.producer is not None:
            return self._named_producer(order).send(partition, order, self._crew.stopping)
        with OrderedProducer(self._around, order, self._parameters.size) as producer:
            return producer.send(partition, order, self._crew.stopping)

    def _named_producer(self, order: SendOrder) -> OrderedProducer | TransactingProducer:
        """One client for every order of that producer: it keeps the producer id and its sequence numbers."""
        assert order.producer is not None
        kind = OrderedProducer if order.transaction is None else TransactingProducer
        with self._naming:
            if order.producer not in self._named:
                self._named[order.producer] = kind(self._around, order, self._parameters.size)
            return self._named[order.producer]

    def _producing(self, acks: int) -> ProducingProcess:
        ours = self._parameters
        manner = NUMBERED if ours.numbers(acks) else PLAIN
        return ProducingProcess(self._around, manner, acks, ours.delivery_timeout_s, ours.size)

    # ------------------------------------------------------------------------------------------------ consuming

    def _tail(self, partitions: Sequence[TopicPartition]) -> None:
        positions: Mapping[TopicPartition, Offset] = dict.fromkeys(partitions, BEGINNING)
        while not self._crew.stopping.is_set():
            process, reader = self._reading(positions)
            try:
                positions = self._tail_as(process, reader)
            finally:
                reader.close()

    def _tail_as(self, process: ProcessId, reader: Reader) -> Mapping[TopicPartition, Offset]:
        """Poll until an error; returns where the next process begins."""
        while not self._crew.stopping.is_set():
            error = self._poll(process, reader, final=False)
            self._polled.update((name, offset) for name, offset in reader.positions.items() if offset != BEGINNING)
            if error in MOVED_ERRORS:
                return dict.fromkeys(reader.positions, BEGINNING)
            if error is not None:
                self._crew.stopping.wait(_AFTER_INFO_S)
                break
        return reader.positions

    def _poll(self, process: ProcessId, reader: Reader, *, final: bool) -> str | None:
        op = self._around.recorder.invoke_poll(process, final, isolation=reader.isolation)
        records, error = reader.poll(_POLL_RECORDS, _POLL_S)
        if error is not None and not records:
            self._around.recorder.poll_failed(op, error)
        else:
            self._around.recorder.complete_poll(op, records)
        return error

    def _begin_final_read(self) -> Workers:
        self._unread = dict.fromkeys(self._partitions, Unread())
        readers = Workers(self._around.failed)
        for number in range(_READERS_AT_ONCE):
            if share := self._partitions[number::_READERS_AT_ONCE]:
                readers.start(partial(self._read_all, share, readers.stopping))
        return readers

    def _read_all(self, partitions: Sequence[TopicPartition], give_up: threading.Event) -> None:
        """Read one after the other to its end; one whose consumer fails comes up again after the others."""
        left = deque(partitions)
        while left and not give_up.is_set():
            name = left.popleft()
            if self._read_to_end(name, give_up):
                del self._unread[name]
            else:
                left.append(name)
                give_up.wait(_AFTER_FAILED_READ_S)

    def _read_to_end(self, partition: TopicPartition, give_up: threading.Event) -> bool:
        process, reader = self._reading({partition: BEGINNING})
        self._unread[partition] = self._unread[partition]._replace(begun=True)
        try:
            bounds = self._bounds(partition, reader, give_up)
            if bounds is None:
                return False
            self._unread[partition] = self._unread[partition].bounded(*bounds)
            if bounds.start_offset == bounds.end_offset:  # nothing to wait for; the poll is the record of that
                return self._poll_finally(process, reader, partition)
            while reader.positions[partition] < bounds.end_offset:
                if give_up.is_set() or not self._poll_finally(process, reader, partition):
                    return False
            return True
        finally:
            reader.close()

    def _poll_finally(self, process: ProcessId, reader: Reader, partition: TopicPartition) -> bool:
        """Poll for the final read and note how far it has come; whether the consumer can go on."""
        error = self._poll(process, reader, final=True)
        come = self._unread[partition].come_to(reader.positions[partition])
        self._unread[partition] = come if error is None else come._replace(error=error)
        return error is None

    def _bounds(self, partition: TopicPartition, reader: Reader, give_up: threading.Event) -> Bounds | None:
        while not give_up.is_set():
            try:
                return reader.bounds(partition, _BOUNDS_TIMEOUT_S)
            except EnvironmentFault as unknown:
                self._around.log.info("%s", unknown)
        return None

    def _reading(self, positions: Mapping[TopicPartition, Offset]) -> tuple[ProcessId, Reader]:
        process = self._around.new_process()
        around, isolation = self._around, self._parameters.isolation
        return process, Reader(around.bootstrap, f"seawall-{process}", positions, around.log, isolation=isolation)


KIND = WorkloadKind(UniqueSends.name, UniqueSendsParameters, UniqueSends, SimulatedSends)
