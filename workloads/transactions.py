"""transactions: producers that send to several partitions in one transaction, and commit it, abort it or lose it.

Each producer has a transactional id of its own. Some of its transactions it aborts; some it leaves open until their
coordinator has aborted them; and with some a new process takes the id over, which has to fence the old one off. Within
some it polls, as a consumer of committed records, between what it sends. Some consumers are given committed records
only, others all.

Promised: as under unique_sends for what is committed; a consumer of committed records is given nothing of a transaction
that was aborted, and of a committed one all or nothing; it never sees them in an order that no serial one explains; and
a process that was replaced commits nothing.

Judged: as under unique_sends, each transaction by what its producer was answered, by the markers in every log, and by
what consumers of committed records are given; the transactions and reads together, for cycles.

Missed: offsets that are committed in a transaction; a transaction that its coordinator aborts too late; one that stays
open for ever on real Kafka, where the run is inconclusive for that; one whose outcome its producer does not know counts
as either; transactions that wrote after each other in a circle, which Kafka permits; producers that are killed, which
consume_transform_produce has. In virtual time the producers are the simulation's own: they behave as librdkafka does,
or as Kafka's own client does since 4.0 (transaction_version_2).
"""

from __future__ import annotations

import random
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from harness.client_ports import (
    BEGINNING,
    MOVED_ERRORS,
    ClientContext,
    Consumer,
    Isolation,
    TransactionalClients,
    TransactionalProducer,
)
from harness.client_tasks.polling import Tails
from harness.client_tasks.sending_process import TransactingProcess
from harness.model import Offset, TopicPartition
from harness.orders import ALL_ACKS
from harness.steps import Seconds
from harness.workload import Waits, Workload, WorkloadKind, WorkloadParameters

Fate = Literal["commit", "abort", "leave", "replace"]

_AFTER_ERROR_S = 0.05
_POLL_RECORDS = 100
_POLL_S = 0.05
_NS_PER_S = 1_000_000_000


class TransactionsParameters(WorkloadParameters):
    """What a scenario may write about the workload.

    Attributes:
        producers: producers with a transactional id.
        rate: transactions per second of all producers together.
        records: how many records a transaction has at most.
        batch: how many of them are sent to one partition at once, at most.
        aborted: the share of transactions that their producer aborts.
        left_open: the share that it leaves open until their coordinator has aborted them.
        polling: the share in which the producer polls, too.
        replaced: the share in which a new process takes the transactional id over, before the old one commits.
        timeout_s: how long each part of a transaction may take, and after how long its coordinator aborts it.
        transaction_version_2: in virtual time, the share of producers, and of processes that take over, whose
            transactions are of version 2 (KIP-890) where brokers offer that; a client library decides by itself.
        consumers: background consumers of committed records; the partitions are dealt out among them.
        uncommitted_consumers: the same, of all records.
    """

    producers: int = Field(default=4, ge=1, le=64)
    rate: float = Field(default=20.0, gt=0, le=10_000)
    records: int = Field(default=6, ge=1, le=1_000)
    batch: int = Field(default=3, ge=1, le=100)
    aborted: float = Field(default=0.2, ge=0, le=1)
    left_open: float = Field(default=0.02, ge=0, le=1)
    polling: float = Field(default=0.5, ge=0, le=1)
    replaced: float = Field(default=0.05, ge=0, le=1)
    timeout_s: Seconds = Field(default=4.0, ge=1)
    transaction_version_2: float = Field(default=0.5, ge=0, le=1)
    consumers: int = Field(default=2, ge=0, le=64)
    uncommitted_consumers: int = Field(default=1, ge=0, le=64)
    isolation: Isolation = "read_committed"

    @model_validator(mode="after")
    def _shares_are_of_one(self) -> Self:
        if self.aborted + self.left_open + self.replaced > 1:
            raise ValueError("aborted, left_open and replaced are more than 1 together")
        return self

    @property
    def has_background_load(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.timeout_s

    @property
    def numbers_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    @property
    def asked_acks(self) -> frozenset[int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return frozenset({ALL_ACKS})

    @property
    def transacts(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    @property
    def held_for_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.timeout_s

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self

    def fate(self, drawn: random.Random) -> Fate:
        """What becomes of the next transaction."""
        shares = (self.aborted, self.left_open, self.replaced, 1 - self.aborted - self.left_open - self.replaced)
        fates: tuple[Fate, ...] = ("abort", "leave", "replace", "commit")
        return drawn.choices(fates, shares)[0]


class Transactions(Workload):
    """Runs transactions at a steady rate, and reads what comes of them."""

    def __init__(self, parameters: TransactionsParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters
        self._partitions = sorted(context.partitions)
        self._committed = Tails(context, parameters.consumers, "read_committed")
        self._all = Tails(context, parameters.uncommitted_consumers, "read_uncommitted")
        self._readers: dict[int, Consumer] = {}
        self._versions = random.Random(f"{context.seed}:transaction versions")

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for work in (*self._works(), *self._committed.works(self.clients), *self._all.works(self.clients)):
            self.begin(work)

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        committed, every = self._committed.polled(), self._all.polled()
        return {name: max(committed[name], every[name]) for name in self._partitions}

    def take_over(self) -> Waits:
        """See :class:`harness.workload.Workload`: each transactional id, with a record for every partition."""
        self.clients = self.context.new_clients()
        waits = {number: set(self._partitions) for number in range(self._parameters.producers)}
        for number, names in waits.items():
            self.begin(self._commit_to_each(number, names))
        return lambda: {
            f"the next process of transactions-{number} has committed nothing to it": set(names)
            for number, names in waits.items()
            if names
        }

    async def _commit_to_each(self, number: int, waits: set[TopicPartition]) -> None:
        """Commit a record to every partition in one transaction, and try again until it is committed."""
        while waits and not self.clients.stopping:
            producer = self._producer(number)
            if await self._run_briefly(producer, self._partitions):
                waits.clear()
            producer.close()
            await self.clients.sleep(_AFTER_ERROR_S)

    def _works(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield from map(self._transact, range(self._parameters.producers))

    async def _transact(self, number: int) -> None:
        """Run one transaction after the other at the given pace."""
        clients, ours = self.clients, self._parameters
        drawn = random.Random(f"{self.context.seed}:transactions:{number}")
        interval_ns = round(ours.producers / ours.rate * _NS_PER_S)
        due_ns = clients.monotonic_ns() + int(drawn.random() * interval_ns)
        producer = self._producer(number)
        try:
            while not clients.stopping:
                await clients.sleep(max(0, due_ns - clients.monotonic_ns()) / _NS_PER_S)
                if not clients.stopping:
                    producer = await self._run(number, producer, drawn)
                due_ns = max(due_ns + interval_ns, clients.monotonic_ns())
        finally:
            producer.close()
            if number in self._readers:
                self._readers.pop(number).close()

    async def _run(self, number: int, producer: TransactionalProducer, drawn: random.Random) -> TransactionalProducer:
        """Run one transaction; returns the producer that has the transactional id afterwards."""
        ours, fate = self._parameters, self._parameters.fate(drawn)
        process = TransactingProcess(self.context.recorder, self.context.new_process(), self.context.carried)
        ended = None
        left, polls = drawn.randint(1, ours.records), drawn.random() < ours.polling
        while left and ended is None:
            polls = polls and await self._poll(number, process)
            count = min(left, drawn.randint(1, ours.batch))
            left -= count
            partition = drawn.choice(self._partitions)
            batch = process.begin(partition, count, ours.size, self.clients.wall_ms())
            ended = await producer.send(partition, batch)
        follower = None
        if ended is None and fate == "leave":
            await self.clients.sleep(ours.timeout_s * drawn.uniform(1, 2))
        if ended is None and fate == "replace":
            follower = self._producer(number)
            await self._run_briefly(follower, [drawn.choice(self._partitions)])
        process.end(ended or await producer.end(commits=fate != "abort"))
        if follower is not None:
            producer.close()
        return follower or producer

    async def _poll(self, number: int, process: TransactingProcess) -> bool:
        """Poll in a transaction of a producer, which goes on reading where it was in the one before.

        Returns whether it may poll again: after an error it begins anew, with the next transaction's process.
        """
        consumer = self._readers.get(number) or self._reader(number, dict.fromkeys(self._partitions, BEGINNING))
        process.begin_poll()
        records, error, _ = await consumer.poll(_POLL_RECORDS, _POLL_S)
        process.end_poll(records)
        if error is not None:
            consumer.close()
            is_gone = error in MOVED_ERRORS
            self._reader(number, dict.fromkeys(self._partitions, BEGINNING) if is_gone else consumer.positions)
        return error is None

    def _reader(self, number: int, positions: Mapping[TopicPartition, Offset]) -> Consumer:
        """Give a producer a new consumer of ``positions``."""
        made = self.clients.consumer(f"transactions-{number}-reader", positions, isolation="read_committed")
        self._readers[number] = made
        return made

    async def _run_briefly(self, producer: TransactionalProducer, partitions: Sequence[TopicPartition]) -> bool:
        """Commit a record to each of these partitions, as the process that has taken a transactional id over."""
        process = TransactingProcess(self.context.recorder, self.context.new_process(), self.context.carried)
        ended = None
        for partition in partitions:
            if ended is None:
                batch = process.begin(partition, 1, self._parameters.size, self.clients.wall_ms())
                ended = await producer.send(partition, batch)
        ended = ended or await producer.end(commits=True)
        process.end(ended)
        return ended.kind == "ok"

    def _producer(self, number: int) -> TransactionalProducer:
        assert isinstance(self.clients, TransactionalClients), "the plan lets no workload transact on these clients"
        ours = self._parameters
        numbered = self._versions.random() < ours.transaction_version_2
        return self.clients.transactional_producer(f"transactions-{number}", ours.timeout_s, numbered=numbered)


KIND = WorkloadKind(
    "transactions",
    TransactionsParameters,
    Transactions,
    {"rate": 15, "producers": 3, "timeout_s": 2, "left_open": 0.05, "replaced": 0.1, "consumers": 1},
)
