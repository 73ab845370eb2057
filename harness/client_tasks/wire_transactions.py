"""A transactional producer that speaks Kafka's protocol itself, where librdkafka would not do what a schedule needs.

It sends each batch once, and does not ask for a new epoch after it has given one up: so a batch can still be under way
when its transaction is aborted and the next one begins. In transaction version 2 (KIP-890) it speaks as Kafka's own
client does since 4.0, in version 0 as the first transactional clients did (KIP-98).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

from confluent_kafka import KafkaError

from harness.client_ports import ABORTED, Transacted
from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction import NUMBERED
from harness.error_codes import ErrorCode
from harness.history.sends import Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord
from harness.wire.batches import TRANSACTIONAL, Record, build
from harness.wire.declaration import Message
from harness.wire.messages.coordination import InitProducerIdRequest, InitProducerIdResponse
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from harness.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
)

Address = tuple[str, int]

Versions = tuple[int, int]
"""Of a request: the oldest and the newest that serve the purpose."""

_INIT_PRODUCER_ID: Versions = (0, 1)
_ADD_PARTITIONS: Versions = (0, 3)
_PRODUCE: Mapping[int, Versions] = {0: (3, 9), NUMBERED: (12, 12)}
_END: Mapping[int, Versions] = {0: (0, 1), NUMBERED: (5, 5)}
_ASK_TIMEOUT_S = 1.0
_TRANSACTION_TIMEOUT_MS = 60_000
"""Kafka's ``transaction.timeout.ms``: a batch that is given up before does not end its transaction."""

_BACKOFF_S = 0.05
_NS_PER_S = 1_000_000_000
_TIMED_OUT: int = KafkaError._TIMED_OUT  # noqa: SLF001 (librdkafka's own codes begin with an underscore)

_ELSEWHERE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
"""Answers that say that nothing was done, and may be another one soon."""


class Wire(Protocol):
    """Connections to the brokers, and the time that passes meanwhile."""

    @property
    def turn(self) -> AbstractAsyncContextManager[Any]:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        ...

    def now_ns(self) -> int:
        """Nanoseconds of a monotonic clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def ask(self, address: Address, body: Message, versions: Versions, timeout_s: float) -> Message | None:
        """Ask the broker there, once, in the newest version that it knows; None: it has not answered in time."""
        ...

    async def leader(self, partition: TopicPartition) -> Address | None:
        """Where a partition is led, asked anew; None: that is not known."""
        ...

    async def coordinator(self, transactional_id: str) -> Address | None:
        """Where a transactional id is coordinated, asked anew; None: that is not known."""
        ...

    def close(self) -> None:
        """Hang up everywhere."""
        ...


class WireTransactions:
    """Implements :class:`harness.client_ports.TransactionalProducer`.

    Args:
        wire: its connections.
        transactional_id: who takes the same one fences this one off.
        timeout_s: how long each part of a transaction may take, and the answer to a batch.
        version: 0 or 2, see the module.

    Attributes:
        offsets: where the records of the open transaction are, as far as is known; empty: none is open.
    """

    def __init__(self, wire: Wire, transactional_id: str, timeout_s: float, version: int) -> None:
        self.offsets: list[Offset | None] = []
        self._wire = wire
        self._transactional_id = transactional_id
        self._timeout_s = timeout_s
        self._version = version
        self._coordinator: Address | None = None
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._has_part: set[TopicPartition] = set()

    @property
    def turn(self) -> AbstractAsyncContextManager[Any]:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        return self._wire.turn

    async def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        if not batch:
            return None
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if self._identity is None and (error := await self._initialise()):
            return self._ended("fail", KafkaError(error).name())  # nothing has been sent
        error = await self._add(partition) or await self._produce(partition, batch, first)
        return await self._given_up(error) if error else None

    async def end(self, *, commits: bool) -> Transacted:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        error = await self._end(commits=commits)
        if error:
            return self._lost(error)
        return self._ended("ok") if commits else self._ended("fail", ABORTED)

    def close(self) -> None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        self._wire.close()

    async def _given_up(self, error: int) -> Transacted:
        """A batch was refused, or not answered: the transaction is aborted, if that can be."""
        if await self._end(commits=False):
            return self._lost(error)
        return self._ended("fail", KafkaError(error).name())

    def _lost(self, error: int) -> Transacted:
        """It is not known how the transaction has ended; the next one begins as a new producer."""
        self._identity = None
        self._forget_sequences()
        return self._ended("info", KafkaError(error).name())

    def _forget_sequences(self) -> None:
        self._sequences.clear()
        self._has_part.clear()

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)

    # ------------------------------------------------------------------------------------ the coordinator

    async def _initialise(self) -> int:
        request = InitProducerIdRequest(self._transactional_id, _TRANSACTION_TIMEOUT_MS)

        def take(answer: Message) -> int:
            given = cast("InitProducerIdResponse", answer)
            self._identity = ProducerIdentity(given.producer_id, given.producer_epoch)
            return given.error_code

        error = await self._ask(request, _INIT_PRODUCER_ID, take)
        self._forget_sequences()
        if error:
            self._identity = None
        return error

    async def _add(self, partition: TopicPartition) -> int:
        """Make the partition a part of the transaction; in version 2 its leader does that."""
        if partition in self._has_part or self._version == NUMBERED:
            self._has_part.add(partition)
            return 0
        assert self._identity is not None
        topics = [AddPartitionsToTxnTopic(partition.topic, [partition.partition])]
        request = AddPartitionsToTxnRequest([], self._transactional_id, *self._identity, topics)

        def take(answer: Message) -> int:
            (result,) = cast("AddPartitionsToTxnResponse", answer).results_by_topic_v3_and_below
            return result.results_by_partition[0].partition_error_code

        error = await self._ask(request, _ADD_PARTITIONS, take)
        if not error:
            self._has_part.add(partition)
        return error

    async def _end(self, *, commits: bool) -> int:
        """Commit or abort; a transaction without a partition is none."""
        if not self._has_part:
            return 0
        assert self._identity is not None
        request = EndTxnRequest(self._transactional_id, *self._identity, commits)

        def take(answer: Message) -> int:
            ended = cast("EndTxnResponse", answer)
            if not ended.error_code and self._version == NUMBERED:
                self._identity = ProducerIdentity(ended.producer_id, ended.producer_epoch)
                self._sequences.clear()
            return ended.error_code

        error = await self._ask(request, _END[self._version], take)
        self._has_part.clear()
        return error

    async def _ask(self, request: Message, versions: Versions, take: Callable[[Message], int]) -> int:
        """Ask the coordinator until it answers what counts; the error code, 0 for success."""
        deadline_ns = self._deadline_ns()
        while self._wire.now_ns() < deadline_ns and not self._wire.is_closed:
            if self._coordinator is None:
                self._coordinator = await self._wire.coordinator(self._transactional_id)
            if self._coordinator is not None:
                answer = await self._wire.ask(self._coordinator, request, versions, _ASK_TIMEOUT_S)
                error = int(ErrorCode.NOT_COORDINATOR) if answer is None else take(answer)
                if error in _ELSEWHERE:
                    self._coordinator = None
                elif error not in _AGAIN:
                    return error
            await self._wire.sleep(_BACKOFF_S)
        return _TIMED_OUT

    # ------------------------------------------------------------------------------------ the leader

    async def _produce(self, partition: TopicPartition, batch: Sequence[ProducerRecord], first: int) -> int:
        """Send one batch, again only after an answer that says that it was not appended."""
        assert self._identity is not None
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(batch)
        records = build(
            [Record(at, one.timestamp_ms, one.key, one.value, tuple(one.headers)) for at, one in enumerate(batch)],
            attributes=TRANSACTIONAL, base_sequence=sequence,
            producer_id=self._identity.producer_id, producer_epoch=self._identity.epoch,
        )  # fmt: skip
        deadline_ns = self._deadline_ns()
        while not self._wire.is_closed and (left_s := (deadline_ns - self._wire.now_ns()) / _NS_PER_S) > 0:
            error, offset = await self._try(partition, bytes(records), left_s)
            if not error:
                self.offsets[first:] = range(offset, offset + len(batch))
                return 0
            if error not in _AGAIN:
                return error
            await self._wire.sleep(_BACKOFF_S)
        return _TIMED_OUT

    async def _try(self, partition: TopicPartition, records: bytes, left_s: float) -> tuple[int, Offset]:
        """One request; the error code, and where the batch is."""
        leader = await self._wire.leader(partition)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        topic = TopicProduceData(partition.topic, partition_data=[PartitionProduceData(partition.partition, records)])
        request = ProduceRequest(self._transactional_id, -1, max(1, round(left_s * 1000)), [topic])
        answer = await self._wire.ask(leader, request, _PRODUCE[self._version], left_s)
        if answer is None:
            return _TIMED_OUT, -1
        (result,) = cast("ProduceResponse", answer).responses[0].partition_responses
        return result.error_code, result.base_offset

    def _deadline_ns(self) -> int:
        return self._wire.now_ns() + round(self._timeout_s * _NS_PER_S)
