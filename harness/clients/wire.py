"""The connections of a :class:`~harness.client_tasks.wire_transactions.WireTransactions` in real time: all block."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from typing import TypeVar

from harness.client_tasks.wire_transactions import Address, Versions
from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.model import NodeId, TopicPartition
from harness.wire.declaration import MESSAGES, Message
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import FindCoordinatorRequest, FindCoordinatorResponse
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_TRANSACTION = 1
_FIND_COORDINATOR, _METADATA = 2, 7
_LOOK_TIMEOUT_S = 1.0
_SOME_BROKER = NodeId(0)
"""Clients know brokers by their addresses."""

Answer = TypeVar("Answer", bound=Message)


class BlockingWire:
    """Implements :class:`harness.client_tasks.wire_transactions.Wire`.

    What it looks up it asks in connections of their own; of its requests to a broker, batches go in another connection
    than those for a coordinator, as with other clients.

    Args:
        bootstrap: where the brokers listen.
    """

    def __init__(self, bootstrap: Sequence[Address]) -> None:
        self._closed = threading.Event()
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._lines: dict[tuple[Address, bool], Conversation] = {}

    @property
    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        with self._lock:  # each task has a thread of its own
            yield

    @property
    def is_closed(self) -> bool:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        return self._closed.is_set()

    def now_ns(self) -> int:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        self._closed.wait(seconds)

    async def ask(self, address: Address, body: Message, versions: Versions, timeout_s: float) -> Message | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        name = (address, body.api_key is ApiKey.PRODUCE)
        if name not in self._lines:
            self._lines[name] = Conversation(_SOME_BROKER, address, timeout_s)
        try:
            self._lines[name].open()
            oldest, newest = versions
            if self._lines[name].version(body.api_key, newest) < oldest:
                return None
            return self._lines[name].ask(body, MESSAGES["response", body.api_key], newest)
        except NoAnswer:
            return None

    async def leader(self, partition: TopicPartition) -> Address | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`: by the word of the newest leader epoch."""
        request = MetadataRequest([MetadataRequestTopic(name=partition.topic)], allow_auto_topic_creation=False)
        found: list[tuple[int, Address]] = []
        for answer in self._asked_everywhere(request, MetadataResponse, _METADATA):
            addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
            found += [
                (one.leader_epoch, addresses[one.leader_id])
                for topic in answer.topics
                for one in topic.partitions
                if one.partition_index == partition.partition and one.leader_id in addresses
            ]
        return max(found)[1] if found else None

    async def coordinator(self, transactional_id: str) -> Address | None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`: by the word of the first broker that knows one."""
        request = FindCoordinatorRequest(transactional_id, _TRANSACTION)
        answers = self._asked_everywhere(request, FindCoordinatorResponse, _FIND_COORDINATOR)
        return next(((one.host, one.port) for one in answers if not one.error_code), None)

    def close(self) -> None:
        """See :class:`harness.client_tasks.wire_transactions.Wire`."""
        self._closed.set()
        for line in self._lines.values():
            line.close()

    def _asked_everywhere(self, request: Message, answer: type[Answer], version: int) -> Iterator[Answer]:
        """What the brokers answer that answer at all, one after the other."""
        for address in self._bootstrap:
            with closing(Conversation(_SOME_BROKER, address, _LOOK_TIMEOUT_S)) as conversation, suppress(NoAnswer):
                yield conversation.ask(request, answer, version)
