"""The client that executes the orders of a schedule, over the port of clients."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.client_ports import (
    PLAIN,
    ClientContext,
    Clients,
    Manner,
    Producer,
    TransactionalClients,
    TransactionalSends,
)
from harness.client_tasks.deadline import Deadline
from harness.client_tasks.group_member import GroupMember, commit
from harness.client_tasks.sending_process import SendingProcesses, TransactingProcess
from harness.model import TopicPartition
from harness.orders import (
    CommitOrder,
    Consumed,
    ConsumeOrder,
    DeleteOrder,
    Done,
    Pending,
    SendOrder,
    Sent,
    SpoofedFetchOrder,
)

_GRACE_S = 10.0
"""How long an order under way may take to end once the client is to stop."""


@dataclass
class _Transactions:
    """The transactions of one named producer, one at a time: the next order goes on with one that is left open."""

    producer: TransactionalSends
    process: TransactingProcess | None = field(default=None)


class OrderedClient:
    """Implements :class:`harness.orders.ScheduledClient`.

    Tasks make the clients of librdkafka's: a signal that meets one of its constructors in the main thread comes out as
    a ``SystemError``.

    Args:
        context: of the run.
        size: the least size of a record's text, in bytes.
    """

    def __init__(self, context: ClientContext, size: int = 0) -> None:
        self._context = context
        self._size = size
        self._clients = context.new_clients()
        self._naming = threading.Lock()
        self._named: dict[str, Producer] = {}
        self._transacting: dict[str, _Transactions] = {}

    def send(self, order: SendOrder) -> Pending[Sequence[Sent]]:
        """See :class:`harness.orders.ScheduledClient`. Partitions are served side by side."""
        return _Together([self._begin_to_send(name, order) for name in order.partitions])

    def consume(self, order: ConsumeOrder) -> Pending[Consumed]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._clients.begin(GroupMember(self._context, self._clients, order).read())

    def commit(self, order: CommitOrder) -> Pending[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._clients.begin(commit(self._context, self._clients, order))

    def delete_records(self, order: DeleteOrder) -> Pending[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._clients.begin(_delete_records(self._context, self._clients, order))

    def spoof_fetch(self, order: SpoofedFetchOrder) -> Pending[Done]:
        """See :class:`harness.orders.ScheduledClient`."""
        return self._clients.begin(_spoof_fetch(self._clients, order))

    def stop(self) -> None:
        """See :class:`harness.orders.ScheduledClient`. An order that does not end in ten seconds is left alone.

        A stop that is interrupted goes on with the next call.
        """
        self._clients.stop()
        try:
            self._clients.join(_GRACE_S)
        except Exception:
            self._begin_anew()
            raise
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Close the producers with names, and have new clients for the orders to come."""
        while self._named:
            self._named.popitem()[1].close()
        while self._transacting:
            self._transacting.popitem()[1].producer.close()
        self._clients = self._context.new_clients()

    def _begin_to_send(self, partition: TopicPartition, order: SendOrder) -> Pending[list[Sent]]:
        clients = self._clients
        send = self._send_to if order.transaction is None else self._transact
        return clients.begin(send(clients, partition, order))

    # ---------------------------------------------------------------------------------------------- plain sends

    def _producer(self, clients: Clients, order: SendOrder) -> Producer:
        """One for every order with the same producer, whose id and sequence numbers go on; else a new one."""
        if order.producer is not None and order.producer in self._named:
            return self._named[order.producer]
        manner = PLAIN
        if order.retries or order.idempotent or order.batch > 1:
            manner = Manner(order.retries, order.retry_after_s, order.idempotent, order.batch)
        name = order.producer or "ordered"
        producer = clients.producer(name, order.acks, order.timeout_s, manner)
        if order.producer is not None:
            self._named[order.producer] = producer
        return producer

    async def _send_to(self, clients: Clients, partition: TopicPartition, order: SendOrder) -> list[Sent]:
        """Send the records that ``order`` has for ``partition``, batch by batch, until its time is up.

        Each record of a batch, and each of several orders under way at once, is a process of its own in the history:
        none has more than one operation under way.
        """
        with self._naming:
            producer = self._producer(clients, order)
        sent: list[Sent] = []
        processes: SendingProcesses | None = None
        deadline = Deadline(clients, order.timeout_s)
        try:
            while len(sent) < order.count and deadline.left_s():
                processes = processes or SendingProcesses(self._context)
                sizes = [self._size] * min(order.batch, order.count - len(sent))
                made_ms = clients.wall_ms() - order.age_ms
                answers = await processes.send(producer, partition, sizes, order.acks, made_ms)
                sent += [Sent(partition, value, *answer) for value, answer in answers]
        finally:
            if order.producer is None:
                producer.close()
        return sent

    # --------------------------------------------------------------------------------------------- transactions

    def _transactions(self, clients: Clients, order: SendOrder) -> _Transactions:
        assert isinstance(clients, TransactionalClients), "the plan lets no schedule transact on these clients"
        assert order.producer is not None
        if order.producer not in self._transacting:
            name, version = order.transactional_id or order.producer, order.transaction_version
            producer: TransactionalSends = (
                clients.transactional_producer(name, order.timeout_s)
                if version is None
                else clients.wire_producer(name, order.timeout_s, version)
            )
            self._transacting[order.producer] = _Transactions(producer)
        return self._transacting[order.producer]

    async def _transact(self, clients: Clients, partition: TopicPartition, order: SendOrder) -> list[Sent]:
        """Run one transaction, or a part of one; none any more once the clients stop.

        Returns what became of the records of the order; where the transaction ends, of all that were sent in it.
        """
        with self._naming:
            ours = self._transactions(clients, order)
        async with ours.producer.turn:
            if clients.stopping or (ours.process is None and not order.count):
                return []
            if ours.process is None:
                context = self._context
                ours.process = TransactingProcess(context.recorder, context.new_process(), context.carried)
            made_ms = clients.wall_ms() - order.age_ms
            batch = ours.process.begin(partition, order.count, self._size, made_ms)
            ended = await ours.producer.send(partition, batch)
            if ended is None and order.transaction == "open":
                return ours.process.taken(ours.producer.offsets)[-order.count :]
            process, ours.process = ours.process, None
            return process.end(ended or await ours.producer.end(commits=order.transaction == "commit"))


async def _delete_records(context: ClientContext, clients: Clients, order: DeleteOrder) -> Done:
    return Done(await clients.delete_records(order, context.recorder.orders))


async def _spoof_fetch(clients: Clients, order: SpoofedFetchOrder) -> Done:
    return Done(await clients.spoof_fetch(order))


class _Together:
    """Several sendings as one order."""

    def __init__(self, sendings: Sequence[Pending[list[Sent]]]) -> None:
        self._sendings = sendings

    def result(self) -> Sequence[Sent] | None:
        """See :class:`harness.orders.Pending`."""
        results = [sending.result() for sending in self._sendings]
        if any(result is None for result in results):
            return None
        return [sent for result in results for sent in result or ()]
