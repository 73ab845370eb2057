"""The connections of a :class:`~harness.client_tasks.wire_transactions.WireTransactions` in virtual time."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from harness.client_tasks.wire_transactions import Versions
from harness.model import TopicPartition
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.coordinator import coordinator_of
from harness.simulation.stack.links import Address
from harness.simulation.stack.tasks import Window
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey

_TRANSACTION = 1
_LOOK_NS = 500_000_000


class SimulatedWire:
    """Implements :class:`harness.client_tasks.wire_transactions.Wire`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._window = Window(1)

    @property
    def turn(self) -> AbstractAsyncContextManager[None]:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        return self._window.turn()

    @property
    def is_closed(self) -> bool:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        return self._client.is_closed

    def now_ns(self) -> int:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        return self._client.world.now_ns

    async def sleep(self, seconds: float) -> None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        await self._client.sleep(seconds)

    async def ask(self, address: Address, body: Message, versions: Versions, timeout_s: float) -> Message | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        purpose = "batches" if body.api_key is ApiKey.PRODUCE else ""
        answer = await self._client.ask(address, Call(body.api_key, versions[1], body, timeout_s), purpose)
        return None if isinstance(answer, Silence) else answer

    async def leader(self, partition: TopicPartition) -> Address | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        self._client.forget_leader(partition)
        leader = await self._client.leader(partition, self._client.world.now_ns + _LOOK_NS)
        return None if leader is None else leader.address

    async def coordinator(self, transactional_id: str) -> Address | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        return await coordinator_of(self._client, transactional_id, _TRANSACTION)

    def close(self) -> None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        self._client.close()
