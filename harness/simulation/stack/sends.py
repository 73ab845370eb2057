"""The workload ``unique_sends`` in virtual time: the same rows in the same history, without a thread.

Its clients speak the wire protocol over the simulated network. Whoever drives the run lets time pass; ``stop`` and
``final_read`` let it pass by themselves.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from harness.clients.reader import BEGINNING, MOVED_ERRORS
from harness.clients.sender import NUMBERED, PLAIN, Manner
from harness.clients.sending_process import SendingProcess, begin_batch, end_batch, usable
from harness.history.recorder import Recorder
from harness.model import Offset, ProcessId, TopicPartition
from harness.payload import Carried
from harness.simulation.stack.client import Client
from harness.simulation.stack.client_operations import GroupMember, commit, delete_records, spoof_fetch
from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.polling import poll
from harness.simulation.stack.producing import Producer
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.tasks import Task
from harness.simulation.stack.world import Address
from harness.workload import (
    CommitOrder,
    Consumed,
    ConsumeOrder,
    DeleteOrder,
    Done,
    Pending,
    SendOrder,
    Sent,
    SpoofedFetchOrder,
    Unread,
)

ValueT = TypeVar("ValueT")

_AFTER_ERROR_S = 0.05
_AFTER_FAILED_READ_S = 1.0
_LOOK_TIMEOUT_S = 1.0
_GRACE_S = 10.0
_NS_PER_S = 1_000_000_000


class Parameters(Protocol):
    """What a scenario may write about the workload; see ``workloads.unique_sends``."""

    @property
    def producers(self) -> int:
        """Background producers."""
        ...

    @property
    def consumers(self) -> int:
        """Tailing consumers."""
        ...

    @property
    def rate(self) -> float:
        """Background records per second of all producers together."""
        ...

    @property
    def size(self) -> int:
        """The least size of a record, in bytes."""
        ...

    @property
    def delivery_timeout_s(self) -> float:
        """How long a background producer waits for an answer."""
        ...

    def acks_of(self, producer: int) -> int:
        """What the background producer of that number asks for: -1 (all), 1 or 0."""
        ...

    def numbers(self, acks: int) -> bool:
        """Whether a background producer with these acks numbers its records."""
        ...


class Around(Protocol):
    """What a workload is given to work with; see ``workloads.workload_context``."""

    @property
    def bootstrap(self) -> str:
        """``host:port,...``."""
        ...

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """Every partition of the scenario."""
        ...

    @property
    def recorder(self) -> Recorder:
        """The history."""
        ...

    @property
    def seed(self) -> int:
        """Of the run."""
        ...

    @property
    def carried(self) -> Carried:
        """What of a record the cluster stores as it was sent."""
        ...

    def new_process(self) -> ProcessId:
        """A process number that was never used before in this run."""
        ...


class SimulatedSends:
    """Implements :class:`harness.workload.Workload`."""

    name: ClassVar[str] = "unique_sends"

    def __init__(self, parameters: Parameters, around: Around, cluster: SimulatedCluster) -> None:
        self._parameters = parameters
        self._around = around
        self._cluster = cluster
        self._world = cluster.world
        self._partitions = sorted(around.partitions)
        self._bootstrap = addresses(around.bootstrap)
        self._tasks: list[Task[Any]] = []
        self._clients: list[Client] = []
        self._named: dict[str, Producer] = {}
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(self._partitions, 0)
        self._stopping = False
        self._readers: list[Task[None]] = []
        self._unread: dict[TopicPartition, Unread] = {}

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for number in range(self._parameters.consumers):
            share = self._partitions[number :: self._parameters.consumers]
            if share:
                self._begin(self._tail(share))
        if self._parameters.rate:
            for number in range(self._parameters.producers):
                self._begin(self._produce(number))

    def send(self, order: SendOrder) -> Pending[Sequence[Sent]]:
        """See :class:`harness.workload.Workload`. Partitions are served side by side."""
        return _Together([self._begin(self._send_to(name, order)) for name in order.partitions])

    def consume(self, order: ConsumeOrder) -> Pending[Consumed]:
        """See :class:`harness.workload.Workload`."""
        return self._begin(GroupMember(self._around, self._client, order).read())

    def commit(self, order: CommitOrder) -> Pending[Done]:
        """See :class:`harness.workload.Workload`."""
        return self._begin(commit(self._around, self._client(order.group), order))

    def delete_records(self, order: DeleteOrder) -> Pending[Done]:
        """See :class:`harness.workload.Workload`."""
        return self._begin(delete_records(self._around, self._client("admin"), order))

    def spoof_fetch(self, order: SpoofedFetchOrder) -> Pending[Done]:
        """See :class:`harness.workload.Workload`."""
        return self._begin(spoof_fetch(self._client("spoofed"), self._bootstrap[order.to], order))

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`."""
        self._stopping = True
        for client in self._clients:
            client.close()
        assert self._world.sleep_until(lambda: all(task.is_done for task in self._tasks), _GRACE_S), "a client hangs"
        while self._tasks:
            self._tasks.pop().result()
        self._readers.clear()
        self._clients.clear()
        self._stopping = False

    def final_read(self, timeout_s: float) -> bool:
        """See :class:`harness.workload.Workload`."""
        if not self._readers:
            self._unread = dict.fromkeys(self._partitions, Unread(begun=True))
            self._readers = [self._begin(self._read_all_of(name)) for name in self._partitions]
        self._world.sleep_until(self._has_read_all_it_can, timeout_s)
        if self._unread:
            return False
        while self._readers:
            self._readers.pop().result()
        return True

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._unread)

    # ------------------------------------------------------------------------------------------------ producing

    async def _produce(self, number: int) -> None:
        drawn = random.Random(f"{self._around.seed}:producer:{number}")
        interval_ns = round(self._parameters.producers / self._parameters.rate * _NS_PER_S)
        due_ns = self._world.now_ns + int(drawn.random() * interval_ns)
        idle = self._client("pacing")
        acks = self._parameters.acks_of(number)
        manner = NUMBERED if self._parameters.numbers(acks) else PLAIN
        while not self._stopping:
            fresh = self._around.new_process()
            client = self._client(str(fresh))
            producer = Producer(client, acks, self._parameters.delivery_timeout_s, manner)
            process = SendingProcess(self._around.recorder, fresh, self._around.carried)
            while not self._stopping and process.is_usable:
                await idle.sleep(max(0, due_ns - self._world.now_ns) / _NS_PER_S)
                if not self._stopping:
                    await self._send_batch(producer, drawn.choice(self._partitions), [process], acks)
                due_ns = max(due_ns + interval_ns, self._world.now_ns - interval_ns)
            self._finish(client)
            due_ns = max(due_ns, self._world.now_ns + round(_AFTER_ERROR_S * _NS_PER_S))

    async def _send_to(self, partition: TopicPartition, order: SendOrder) -> list[Sent]:
        """The records that ``order`` has for ``partition``, batch by batch, until its time is up."""
        producer, client = self._producer(order)
        sent: list[Sent] = []
        processes: list[SendingProcess] = []
        deadline_ns = self._world.now_ns + round(order.timeout_s * _NS_PER_S)
        made_ms = self._world.wall_ms() - order.age_ms if order.age_ms else None
        while len(sent) < order.count and not self._stopping and self._world.now_ns < deadline_ns:
            batch = min(order.batch, order.count - len(sent))
            processes = usable(processes, batch, self._new_process)
            sent += await self._send_batch(producer, partition, processes, order.acks, made_ms)
        if client is not None:
            self._finish(client)
        return sent

    def _producer(self, order: SendOrder) -> tuple[Producer, Client | None]:
        """The producer of ``order``, and its client where nobody else needs it."""
        if order.producer is not None and order.producer in self._named:
            return self._named[order.producer], None
        client = self._client(order.producer or "ordered")
        manner = PLAIN
        if order.retries or order.idempotent:
            manner = Manner(order.retries, order.retry_after_s, order.idempotent)
        producer = Producer(client, order.acks, order.timeout_s, manner)
        if order.producer is None:
            return producer, client
        self._named[order.producer] = producer
        return producer, None

    async def _send_batch(
        self,
        producer: Producer,
        partition: TopicPartition,
        processes: Sequence[SendingProcess],
        acks: int,
        made_ms: int | None = None,
    ) -> list[Sent]:
        timestamp_ms = self._world.wall_ms() if made_ms is None else made_ms
        batch = begin_batch(processes, partition, acks, self._parameters.size, timestamp_ms)
        return end_batch(processes, partition, await producer.send_batch(partition, batch))

    def _new_process(self) -> SendingProcess:
        return SendingProcess(self._around.recorder, self._around.new_process(), self._around.carried)

    # ------------------------------------------------------------------------------------------------ consuming

    async def _tail(self, partitions: Sequence[TopicPartition]) -> None:
        positions: Mapping[TopicPartition, Offset] = dict.fromkeys(partitions, BEGINNING)
        while not self._stopping:
            process = self._around.new_process()
            client = self._client(str(process))
            reader = Reader(client, positions)
            positions = await self._tail_as(process, reader)
            await client.sleep(_AFTER_ERROR_S)
            self._finish(client)

    async def _tail_as(self, process: ProcessId, reader: Reader) -> Mapping[TopicPartition, Offset]:
        """Poll until an error; returns where the next process begins."""
        while not self._stopping:
            _, error = await poll(self._around.recorder, process, reader, final=False)
            self._polled.update((name, offset) for name, offset in reader.positions.items() if offset != BEGINNING)
            if error in MOVED_ERRORS:
                return dict.fromkeys(reader.positions, BEGINNING)
            if error is not None:
                break
        return reader.positions

    async def _read_all_of(self, partition: TopicPartition) -> None:
        """Read to the end, with as many consumers as that takes."""
        while not self._stopping:
            process = self._around.new_process()
            client = self._client(str(process))
            if await self._read_to_end(partition, process, Reader(client, {partition: BEGINNING})):
                del self._unread[partition]
                self._finish(client)
                return
            await client.sleep(_AFTER_FAILED_READ_S)
            self._finish(client)

    def _has_read_all_it_can(self) -> bool:
        return all(task.is_done for task in self._readers) or all(one.error for one in self._unread.values())

    async def _read_to_end(self, partition: TopicPartition, process: ProcessId, reader: Reader) -> bool:
        bounds = None
        while bounds is None:
            if self._stopping:
                return False
            bounds = await reader.bounds(partition, _LOOK_TIMEOUT_S)
        self._unread[partition] = self._unread[partition].bounded(*bounds)
        if bounds.start_offset == bounds.end_offset:  # nothing to wait for; the poll is the record of that
            return await self._poll_finally(process, reader, partition)
        while reader.positions[partition] < bounds.end_offset:
            if self._stopping or not await self._poll_finally(process, reader, partition):
                return False
        return True

    async def _poll_finally(self, process: ProcessId, reader: Reader, partition: TopicPartition) -> bool:
        """Poll for the final read and note how far it has come; whether the consumer can go on."""
        error = (await poll(self._around.recorder, process, reader, final=True)).error
        come = self._unread[partition].come_to(reader.positions[partition])
        self._unread[partition] = come if error is None else come._replace(error=error)
        return error is None

    # ------------------------------------------------------------------------------------------------ internals

    def _begin(self, work: Coroutine[Any, None, ValueT]) -> Task[ValueT]:
        task = Task(work)
        self._tasks.append(task)
        return task

    def _client(self, name: str) -> Client:
        client = Client(self._cluster.network(), self._bootstrap, f"seawall-{name}")
        self._clients.append(client)
        return client

    def _finish(self, client: Client) -> None:
        client.close()
        if client in self._clients:
            self._clients.remove(client)


class _Together:
    """Several sendings as one order."""

    def __init__(self, sendings: Sequence[Task[list[Sent]]]) -> None:
        self._sendings = sendings

    def result(self) -> Sequence[Sent] | None:
        """See :class:`harness.workload.Pending`."""
        results = [sending.result() for sending in self._sendings]
        if any(result is None for result in results):
            return None
        return [sent for result in results for sent in result or ()]


def addresses(bootstrap: str) -> list[Address]:
    """What a bootstrap list names."""
    pairs = [address.rsplit(":", 1) for address in bootstrap.split(",")]
    return [(host, int(port)) for host, port in pairs]
