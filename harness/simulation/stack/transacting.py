"""A transactional producer in virtual time, as :mod:`harness.clients.transactional_sender` is one in real time.

It behaves as librdkafka does, or, with transaction version 2 (KIP-890), as Kafka's own producer does since 4.0: leaders
and the group's coordinator add partitions to the transaction, and its end gives the producer the next epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import cast

from confluent_kafka import KafkaError

from harness.client_ports import ABORTED, CommittedOffset, Member, Transacted
from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from harness.history.sends import Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.coordinator import ELSEWHERE, coordinator_of
from harness.simulation.stack.group_offsets import GroupMetadata
from harness.simulation.stack.links import Address
from harness.simulation.stack.producing import framed
from harness.simulation.stack.tasks import Window
from harness.wire.batches import TRANSACTIONAL, build
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import InitProducerIdRequest, InitProducerIdResponse
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from harness.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_INIT_PRODUCER_ID_VERSION, _ADD_PARTITIONS_VERSION, _END_VERSION, _PRODUCE_VERSION = 4, 3, 3, 9
_ADD_OFFSETS_VERSION, _TXN_OFFSET_COMMIT_VERSION = 3, 3
_NUMBERED_PRODUCE_VERSION, _NUMBERED_TXN_OFFSET_COMMIT_VERSION, _NUMBERED_END_VERSION = 12, 5, 5
_GROUP, _TRANSACTION = 0, 1
_ASK_TIMEOUT_S = 1.0
_BACKOFF_S = 0.05
_NS_PER_S = 1_000_000_000
_TIMED_OUT: int = KafkaError._TIMED_OUT  # noqa: SLF001 (librdkafka's own codes begin with an underscore)

_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""After these errors, and after silence, it asks again until its time is up, as librdkafka does."""


class TransactionalProducer:
    """Implements :class:`harness.client_ports.TransactionalProducer`.

    After an error it begins with a new epoch, which fences the old one off.

    Args:
        client: its connections.
        transactional_id: who takes the same one fences this one off.
        timeout_s: how long each part of a transaction may take.
        numbered: whether it runs transactions of version 2 where brokers offer them.

    Attributes:
        offsets: where the records of the open transaction are, as far as is known; empty: none is open.
    """

    def __init__(self, client: Client, transactional_id: str, timeout_s: float, *, numbered: bool = False) -> None:
        self.offsets: list[Offset | None] = []
        self._client = client
        self._transactional_id = transactional_id
        self._timeout_s = timeout_s
        newest = client.version(ApiKey.END_TXN, _NUMBERED_END_VERSION)
        self._numbered = numbered and newest == _NUMBERED_END_VERSION
        self._coordinators: dict[tuple[str, int], Address] = {}
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition | str] = set()  # partitions, and groups whose offsets it commits
        self._window = Window(1)

    @property
    def turn(self) -> AbstractAsyncContextManager[None]:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        return self._window.turn()

    async def initialise(self) -> str | None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        error = await self._initialise()
        return KafkaError(error).name() if error else None

    async def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        if not batch:
            return None
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if self._identity is None:
            error = await self._initialise()
            if error:  # nothing has been sent
                return self._ended("fail", KafkaError(error).name())
        error = await self._add(partition) or await self._produce(partition, batch, first)
        return await self._given_up(error) if error else None

    async def commit_offsets(
        self, member: Member, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Transacted | None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        who = cast("GroupMetadata", member.metadata)
        error = await self._add_group(who.group) or await self._commit_offsets(who, offsets)
        return await self._given_up(error) if error else None

    async def end(self, *, commits: bool) -> Transacted:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        error = await self._end(commits=commits)
        if error:
            return await self._given_up(error) if not commits else self._lost(error)
        self._added.clear()
        return self._ended("ok") if commits else self._ended("fail", ABORTED)

    def close(self) -> None:
        """See :class:`harness.client_ports.TransactionalProducer`."""
        self._client.close()

    async def _given_up(self, error: int) -> Transacted:
        """What could not be sent is aborted, if that can be; the next transaction begins with a new epoch."""
        aborted = not await self._end(commits=False)
        self._forget_identity()
        return self._ended("fail" if aborted else "info", KafkaError(error).name())

    def _lost(self, error: int) -> Transacted:
        """It is not known whether the transaction is committed."""
        self._forget_identity()
        return self._ended("info", KafkaError(error).name())

    def _forget_identity(self) -> None:
        self._identity = None
        self._sequences.clear()
        self._added.clear()

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)

    # ------------------------------------------------------------------------------------ requests

    async def _initialise(self) -> int:
        request = InitProducerIdRequest(self._transactional_id, round(self._timeout_s * 1000))

        def take(answer: Message) -> int:
            given = cast("InitProducerIdResponse", answer)
            if not given.error_code:
                self._identity = ProducerIdentity(given.producer_id, given.producer_epoch)
            return given.error_code

        return await self._ask(ApiKey.INIT_PRODUCER_ID, _INIT_PRODUCER_ID_VERSION, request, take)

    async def _add(self, partition: TopicPartition) -> int:
        """Add a partition to the transaction, unless it is there; in version 2 its leader does."""
        if partition in self._added or self._numbered:
            self._added.add(partition)
            return 0
        assert self._identity is not None
        request = AddPartitionsToTxnRequest(
            [],
            self._transactional_id,
            *self._identity,
            [AddPartitionsToTxnTopic(partition.topic, [partition.partition])],
        )

        def take(answer: Message) -> int:
            (result,) = cast("AddPartitionsToTxnResponse", answer).results_by_topic_v3_and_below
            return result.results_by_partition[0].partition_error_code

        error = await self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, _ADD_PARTITIONS_VERSION, request, take)
        if not error:
            self._added.add(partition)
        return error

    async def _add_group(self, group: str) -> int:
        """Add the offsets of a group to the transaction, unless they are there; in version 2 its coordinator does."""
        if group in self._added or self._numbered:
            self._added.add(group)
            return 0
        assert self._identity is not None
        request = AddOffsetsToTxnRequest(self._transactional_id, *self._identity, group)
        error = await self._ask(
            ApiKey.ADD_OFFSETS_TO_TXN, _ADD_OFFSETS_VERSION, request,
            lambda answer: cast("AddOffsetsToTxnResponse", answer).error_code,
        )  # fmt: skip
        if not error:
            self._added.add(group)
        return error

    async def _commit_offsets(self, who: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
        assert self._identity is not None
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for name, (offset, epoch) in offsets.items():
            topics.setdefault(name.topic, []).append(TxnOffsetCommitRequestPartition(name.partition, offset, epoch))
        request = TxnOffsetCommitRequest(
            self._transactional_id, who.group, *self._identity, who.generation, who.member_id, who.instance,
            [TxnOffsetCommitRequestTopic(topic, parts) for topic, parts in topics.items()],
        )  # fmt: skip

        def take(answer: Message) -> int:
            given = cast("TxnOffsetCommitResponse", answer).topics
            return next((one.error_code for topic in given for one in topic.partitions if one.error_code), 0)

        of = (who.group, _GROUP)
        known = _NUMBERED_TXN_OFFSET_COMMIT_VERSION if self._numbered else _TXN_OFFSET_COMMIT_VERSION
        version = self._client.version(ApiKey.TXN_OFFSET_COMMIT, known)
        return await self._ask(ApiKey.TXN_OFFSET_COMMIT, version, request, take, of)

    async def _end(self, *, commits: bool) -> int:
        """Commit or abort; a transaction without a partition is none for the coordinator."""
        if not self._added:
            return 0
        assert self._identity is not None
        request = EndTxnRequest(self._transactional_id, *self._identity, commits)

        def take(answer: Message) -> int:
            ended = cast("EndTxnResponse", answer)
            if not ended.error_code and self._numbered:
                self._identity = ProducerIdentity(ended.producer_id, ended.producer_epoch)
                self._sequences.clear()
            return ended.error_code

        return await self._ask(ApiKey.END_TXN, _NUMBERED_END_VERSION if self._numbered else _END_VERSION, request, take)

    async def _ask(
        self, key: ApiKey, version: int, request: Message, take: Callable[[Message], int],
        of: tuple[str, int] | None = None,
    ) -> int:  # fmt: skip
        """Ask a coordinator until it answers what counts; the error code, 0 for success.

        ``of``: the group, or the transactional id, that it coordinates, and which of them it is; None: its own id.
        """
        of = of or (self._transactional_id, _TRANSACTION)
        deadline_ns = self._client.world.now_ns + round(self._timeout_s * _NS_PER_S)
        while self._client.world.now_ns < deadline_ns and not self._client.is_closed:
            coordinator = self._coordinators.get(of) or await coordinator_of(self._client, *of)
            if coordinator is not None:
                self._coordinators[of] = coordinator
                answer = await self._client.ask(coordinator, Call(key, version, request, _ASK_TIMEOUT_S))
                error = ErrorCode.NOT_COORDINATOR if isinstance(answer, Silence) else take(answer)
                if error in ELSEWHERE:
                    del self._coordinators[of]
                elif error not in _AGAIN:
                    return error
            await self._client.sleep(_BACKOFF_S)
        return _TIMED_OUT

    async def _produce(self, partition: TopicPartition, batch: Sequence[ProducerRecord], first: int) -> int:
        """Send one batch until its leader answers what counts: its leader detects that it had it before."""
        assert self._identity is not None
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(batch)
        records = build(
            framed(batch), attributes=TRANSACTIONAL, base_sequence=sequence,
            producer_id=self._identity.producer_id, producer_epoch=self._identity.epoch,
        )  # fmt: skip
        deadline_ns = self._client.world.now_ns + round(self._timeout_s * _NS_PER_S)
        while self._client.world.now_ns < deadline_ns and not self._client.is_closed:
            error, offset = await self._try(partition, bytes(records), deadline_ns)
            if not error:
                self.offsets[first:] = range(offset, offset + len(batch))
                return 0
            if error not in _AGAIN:
                return error
            self._client.forget_leader(partition)
            await self._client.sleep(_BACKOFF_S)
        return _TIMED_OUT

    async def _try(self, partition: TopicPartition, records: bytes, deadline_ns: int) -> tuple[int, Offset]:
        """One request; the error code, and where the batch is."""
        leader = await self._client.leader(partition, deadline_ns)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        topic = TopicProduceData(partition.topic, partition_data=[PartitionProduceData(partition.partition, records)])
        request = ProduceRequest(self._transactional_id, -1, round(_ASK_TIMEOUT_S * 1000), [topic])
        version = _NUMBERED_PRODUCE_VERSION if self._numbered else _PRODUCE_VERSION
        answer = await self._client.ask(leader.address, Call(ApiKey.PRODUCE, version, request, _ASK_TIMEOUT_S))
        if isinstance(answer, Silence):
            return ErrorCode.REQUEST_TIMED_OUT, -1
        (result,) = cast("ProduceResponse", answer).responses[0].partition_responses
        return result.error_code, result.base_offset
