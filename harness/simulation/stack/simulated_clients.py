"""The port of clients in virtual time: clients that speak Kafka's protocol over the simulated network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from confluent_kafka import KafkaError

from harness.broker.served_versions import served_by
from harness.client_ports import PLAIN, Isolation, Manner, Rebalanced
from harness.client_tasks.wire_transactions import WireTransactions
from harness.clients.spoofed_fetch import spoofed_request
from harness.history.delete_records_log import GAVE_UP, LOST, DeleteRecordsLog
from harness.membership import Membership
from harness.model import Offset, TopicPartition
from harness.orders import DeleteOrder, SpoofedFetchOrder
from harness.simulation.stack.assigned_member import AssignedMember
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.group_offsets import GroupOffsets
from harness.simulation.stack.links import Address
from harness.simulation.stack.member import Member
from harness.simulation.stack.producing import Producer
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.tasks import Promise, Task
from harness.simulation.stack.transacting import TransactionalProducer
from harness.simulation.stack.wire import SimulatedWire
from harness.wire.keys import ApiKey
from harness.wire.messages.fetch import FetchResponse
from harness.wire.messages.operators import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

ResultT = TypeVar("ResultT")

_DELETE_RECORDS_VERSION = 2
_FETCH_VERSION = 12
_HIGH_WATERMARK = -1
_LONGEST_SLEEP_S = 2.0
"""After this long at the latest, a sleeping task sees that the clients are to stop."""

_GRACE_S = 10.0
"""How much virtual time tasks may take to end once the clients are to stop."""

_NS_PER_S = 1_000_000_000


class SimulatedClients:
    """Implements :class:`harness.client_ports.TransactionalClients`.

    Args:
        cluster: the cluster, whose world's time passes for the clients, too.
        bootstrap: ``host:port,...``, the brokers in the order of their ids.
    """

    def __init__(self, cluster: SimulatedCluster, bootstrap: str) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._network = cluster.network()
        self._bootstrap = bootstrap
        self._addresses = addresses(bootstrap)
        self._served = served_by(cluster.knobs).versions
        self._tasks: list[Task[Any]] = []
        self._clients: list[Client] = []
        self._processes: list[SimulatedProcess] = []
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """See :class:`harness.client_ports.Clients`."""
        return self._stopping

    def monotonic_ns(self) -> int:
        """See :class:`harness.client_ports.Clients`."""
        return self._world.now_ns

    def wall_ms(self) -> int:
        """See :class:`harness.client_ports.Clients`."""
        return self._world.wall_ms()

    async def sleep(self, seconds: float) -> None:
        """See :class:`harness.client_ports.Clients`."""
        left_s = seconds
        while left_s > _LONGEST_SLEEP_S and not self._stopping:
            await self._sleep(_LONGEST_SLEEP_S)
            left_s -= _LONGEST_SLEEP_S
        await self._sleep(min(left_s, _LONGEST_SLEEP_S))

    async def _sleep(self, seconds: float) -> None:
        promise: Promise[None] = Promise()
        self._network.call_later(seconds, lambda: promise.keep(None))
        await promise

    def begin(self, work: Coroutine[Any, None, ResultT]) -> Task[ResultT]:
        """See :class:`harness.client_ports.Clients`."""
        task = Task(work)
        self._tasks.append(task)
        return task

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """See :class:`harness.client_ports.Clients`."""
        return self._world.sleep_until(holds, timeout_s)

    def stop(self) -> None:
        """See :class:`harness.client_ports.Clients`."""
        self._stopping = True
        for client in self._clients:
            client.close()
        for process in self._processes:
            process.kill(silently=False)

    def join(self, timeout_s: float | None = None) -> None:
        """See :class:`harness.client_ports.Clients`."""
        ended = self.wait_until(lambda: all(task.is_done for task in self._tasks), timeout_s or _GRACE_S)
        assert ended, "a client hangs"
        while self._tasks:
            self._tasks.pop().result()

    def producer(self, name: str, acks: int, timeout_s: float, manner: Manner = PLAIN) -> Producer:
        """See :class:`harness.client_ports.Clients`."""
        return Producer(self._client(name), acks, timeout_s, manner)

    def transactional_producer(self, name: str, timeout_s: float, *, numbered: bool = False) -> TransactionalProducer:
        """See :class:`harness.client_ports.TransactionalClients`."""
        return TransactionalProducer(self._client(name), f"seawall-{name}", timeout_s, numbered=numbered)

    def wire_producer(self, name: str, timeout_s: float, version: int) -> WireTransactions:
        """See :class:`harness.client_ports.TransactionalClients`."""
        return WireTransactions(SimulatedWire(self._client(name)), f"seawall-{name}", timeout_s, version)

    def consumer(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> Reader:
        """See :class:`harness.client_ports.Clients`."""
        return Reader(self._client(name), positions, epochs, isolation)

    def group(self, group: str) -> GroupOffsets:
        """See :class:`harness.client_ports.Clients`."""
        return GroupOffsets(self._client(group), group)

    def member(
        self, name: str, membership: Membership, isolation: Isolation, rebalanced: Rebalanced
    ) -> Member | AssignedMember:
        """See :class:`harness.client_ports.Clients`."""
        kind = AssignedMember if membership.protocol == "consumer" else Member
        return kind(lambda: self._client(name), membership, isolation, rebalanced)

    def process(self) -> SimulatedProcess:
        """See :class:`harness.client_ports.Clients`."""
        made = SimulatedProcess(self._cluster, self._bootstrap, self)
        self._processes.append(made)
        return made

    async def delete_records(self, order: DeleteOrder, orders: DeleteRecordsLog) -> str | None:
        """See :class:`harness.client_ports.Clients`. A leader has half of the time that is left."""
        client = self._client("admin")
        try:
            return await _delete_records(client, order, orders)
        finally:
            client.close()

    async def spoof_fetch(self, order: SpoofedFetchOrder) -> str | None:
        """See :class:`harness.client_ports.Clients`."""
        client = self._client("spoofed")
        try:
            call = Call(ApiKey.FETCH, _FETCH_VERSION, spoofed_request(order), order.timeout_s)
            answer = await client.ask(self._addresses[order.to], call)
        finally:
            client.close()
        if isinstance(answer, Silence):
            return f"no answer: {answer.name}"
        fetched = cast("FetchResponse", answer)
        codes = [fetched.error_code, *(part.error_code for topic in fetched.responses for part in topic.partitions)]
        return next((f"error code {code}" for code in codes if code), None)

    def _client(self, name: str) -> Client:
        client = Client(self._cluster.network(), self._addresses, f"seawall-{name}", self._served)
        self._clients = [*(one for one in self._clients if not one.is_closed), client]
        return client


class SimulatedProcess(SimulatedClients):
    """Implements :class:`harness.client_ports.ClientProcess`; ``makers`` are the clients that have made it."""

    def __init__(self, cluster: SimulatedCluster, bootstrap: str, makers: SimulatedClients) -> None:
        super().__init__(cluster, bootstrap)
        self._makers = makers

    @property
    def stopping(self) -> bool:
        """See :class:`harness.client_ports.Clients`."""
        return self._makers.stopping

    def begin(self, work: Coroutine[Any, None, ResultT]) -> Task[ResultT]:
        """See :class:`harness.client_ports.Clients`."""
        return self._makers.begin(work)

    def kill(self, *, silently: bool) -> None:
        """See :class:`harness.client_ports.ClientProcess`."""
        for client in self._clients:
            if silently:
                client.network.vanish()
            client.close()


async def _delete_records(client: Client, order: DeleteOrder, orders: DeleteRecordsLog) -> str | None:
    deadline_ns = client.world.now_ns + round(order.timeout_s * _NS_PER_S)
    for name in order.partitions:
        leader = await client.leader(name, deadline_ns)
        if leader is None:
            return GAVE_UP
        before = _HIGH_WATERMARK if order.before is None else order.before
        topic = DeleteRecordsTopic(name.topic, [DeleteRecordsPartition(name.partition, before)])
        left_s = (deadline_ns - client.world.now_ns) / _NS_PER_S
        request = DeleteRecordsRequest([topic], timeout_ms=round(left_s * 500))
        sent = orders.sent(name, order.before, request.timeout_ms)
        answer = await client.ask(leader.address, Call(ApiKey.DELETE_RECORDS, _DELETE_RECORDS_VERSION, request, left_s))
        if isinstance(answer, Silence):
            orders.ended(sent, GAVE_UP if answer is Silence.TIMED_OUT else LOST)
            return GAVE_UP
        deleted = cast("DeleteRecordsResponse", answer).topics[0].partitions[0]
        error = KafkaError(deleted.error_code).name() if deleted.error_code else None
        orders.ended(sent, error, deleted.low_watermark)
        if error is not None:
            return error
    return None


def addresses(bootstrap: str) -> list[Address]:
    """The addresses that a bootstrap list names."""
    pairs = [address.rsplit(":", 1) for address in bootstrap.split(",")]
    return [(host, int(port)) for host, port in pairs]
