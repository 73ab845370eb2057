"""Produce: the leader validates and appends, and with acks=all waits for the high watermark.

Before the first batch of a transaction it may ask the transaction's coordinator whether it is open, or, with
transaction version 2, add its partition to it (KIP-890).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from harness.broker.codecs import inflate
from harness.broker.delayed import Delayed
from harness.broker.injected_bugs import appended, produced
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.ports import Network
from harness.broker.replicas import Replicas
from harness.broker.segments import Batches, span_of
from harness.broker.session import Request
from harness.broker.settings import Settings
from harness.broker.topic_config import TopicConfig, topic_config
from harness.broker.transaction_verifier import TransactionVerifier
from harness.broker.validation import Refused, Validation
from harness.clock import Clock
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.error_codes import ErrorCode
from harness.model import NO_OFFSET, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.messages import ProduceExpired, ProduceRequested, ProducerStamp
from harness.wire import batches as wire
from harness.wire.messages.leadership import LeaderIdAndEpoch, NodeEndpoint
from harness.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

_HINTS_SINCE = 10
_ABORTABLE_SINCE = 11
_ADDS_SINCE = 12
_CERTAIN = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)
"""What a producer is answered as its transaction was verified; after anything else it sends the batch again."""


@dataclass(frozen=True, slots=True)
class ProduceServices:
    """What a broker needs to serve Produce; ``verifier`` None: it does not ask coordinators of transactions."""

    replicas: Replicas
    metadata: ClusterMetadata
    network: Network
    clock: Clock
    verifier: TransactionVerifier | None


@dataclass(frozen=True, slots=True)
class ProduceRules:
    """By what a broker accepts batches."""

    settings: Settings
    knobs: Knobs


class _Slot:
    """One partition's part of a produce request: the core's token for it."""

    __slots__ = ("_producing", "partition", "response")

    def __init__(self, producing: Producing, index: int, partition: Partition | None) -> None:
        self._producing = producing
        self.partition = partition
        self.response: PartitionProduceResponse = PartitionProduceResponse(index, base_offset=NO_OFFSET)

    def produced(self, error: int, base_offset: Offset) -> None:
        """See :class:`harness.broker.partition.ProduceToken`."""
        self.response.error_code = error
        self.response.base_offset = base_offset
        if self.partition is not None and error == ErrorCode.NONE:
            self.response.log_start_offset = self.partition.log.log_start_offset
        self._producing.slot_done(self)


class Producing(Delayed[_Slot]):
    """One produce request until its answer."""

    def __init__(self, services: ProduceServices, rules: ProduceRules, request: Request) -> None:
        super().__init__(services.network, request)
        self._services = services
        self._rules = rules
        self._body = cast("ProduceRequest", request.body)
        may_transact = self._body.transactional_id is not None and rules.knobs.transactions != "none"
        self._validation = Validation(request.version, rules.settings.message_max_bytes, may_transact=may_transact)
        self._is_expired = False
        self._topics: list[tuple[str, list[_Slot]]] = []

    def start(self) -> None:
        """Append every batch; answer at once unless acks=all has to wait."""
        todo: list[tuple[_Slot, TopicPartition, PartitionProduceData]] = []
        for topic in self._body.topic_data:
            slots = []
            for data in topic.partition_data:
                name = TopicPartition(topic.name, data.index)
                slots.append(_Slot(self, data.index, self._services.replicas.get(name)))
                todo.append((slots[-1], name, data))
            self._topics.append((topic.name, slots))
        self._wait_for(slot for slot, _, _ in todo)
        for slot, name, data in todo:
            self._append(slot, name, data)
        self._wait_at_most(self._body.timeout_ms)

    def _append(self, slot: _Slot, name: TopicPartition, data: PartitionProduceData) -> None:
        config = topic_config(self._rules.settings) if slot.partition is None else slot.partition.config
        error, batches = self._validate(name.topic, data, config)
        if slot.partition is None:
            slot.produced(self._services.replicas.absence_of(name), NO_OFFSET)
        elif batches is None:
            slot.produced(error, NO_OFFSET)
        elif (asked := self._to_be_verified(slot.partition, batches)) is not None:
            copy = memoryview(bytearray(batches.buffer))
            self._verify(slot, asked, Batches(copy, wire.headers(copy)))
        else:
            self._append_batch(slot, slot.partition, batches)
        data.records = None  # the bytes belong to the connection, which reuses them after this request

    def _append_batch(self, slot: _Slot, partition: Partition, batches: Batches) -> None:
        (header,) = batches.headers
        now_ns = kafka_time_ns(self._services.clock)
        producer = span_of(header).producer
        asked = ProduceRequested(slot, self._body.acks, (header.record_count,), batches, now_ns, producer)
        for request in produced(self._rules.knobs, self._services.clock, partition, asked):
            partition.handle(request)

    # ------------------------------------------------------------------------------------ transactions

    def _to_be_verified(self, partition: Partition, batches: Batches) -> ProducerStamp | None:
        """Whose transaction has to be verified before the batch may be appended; None: of no producer."""
        (header,) = batches.headers
        stamp = span_of(header).producer
        if self._services.verifier is None or stamp is None or not stamp.is_transactional:
            return None
        return None if partition.replica.log.producers.is_open(stamp) else stamp

    def _verify(self, slot: _Slot, stamp: ProducerStamp, batches: Batches) -> None:
        """Append the batch if its transaction is open, even if its client has hung up meanwhile, as Kafka does."""
        partition, verifier = slot.partition, self._services.verifier
        assert partition is not None
        assert verifier is not None

        def verified(error: int) -> None:
            with self._request.surviving():
                if error:
                    slot.produced(_unverified(error, self._request.version), NO_OFFSET)
                    return
                self._append_batch(slot, partition, batches)
                if self._is_expired:
                    partition.handle(ProduceExpired(slot))

        adds = self._request.version >= _ADDS_SINCE
        verifier.verify(self._body.transactional_id or "", stamp, partition, verified, adds=adds)

    def _validate(self, topic: str, data: PartitionProduceData, config: TopicConfig) -> tuple[int, Batches | None]:
        """The one batch that a client may send for a partition, or the error that refuses it."""
        if topic in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, None  # the coordinators alone write there
        if self._body.transactional_id is not None and self._rules.knobs.transactions == "none":
            return ErrorCode.INVALID_TXN_STATE, None
        try:
            buffer, header = self._validation.check(memoryview(data.records or b""), config.max_message_bytes)
        except Refused as refused:
            return refused.error, None
        ahead_ms = header.max_timestamp - self._services.clock.wall_ms()
        if ahead_ms > config.message_timestamp_after_max_ms:
            return ErrorCode.INVALID_TIMESTAMP, None
        if config.compacts and any(one.key is None for one in wire.records(buffer, header, inflate)):
            return ErrorCode.INVALID_RECORD, None
        return ErrorCode.NONE, appended(self._rules.knobs, Batches(buffer, [header]))

    def _expiry(self, slot: _Slot) -> ProduceExpired:
        self._is_expired = True
        return ProduceExpired(slot)

    def _answer(self) -> None:
        responses = [
            TopicProduceResponse(name, partition_responses=[slot.response for slot in slots])
            for name, slots in self._topics
        ]
        if self._body.acks == 0:
            self._request.answer(None)
            if any(slot.response.error_code for _, slots in self._topics for slot in slots):
                self._request.session.close()  # acks=0 has no answer that could carry the error: Kafka hangs up too
            return
        body = ProduceResponse(responses)
        if self._request.version >= _HINTS_SINCE:
            self._add_leaders(body)
        self._request.answer(body)

    def _add_leaders(self, body: ProduceResponse) -> None:
        """Add the leaders of the partitions that this broker does not lead (KIP-951)."""
        leaders: dict[int, NodeEndpoint] = {}
        for topic in body.responses:
            for response in topic.partition_responses:
                state = self._services.metadata.partition(topic.name, response.index)
                if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and state is not None:
                    response.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)
                    address = self._services.metadata.address(state.leader)
                    if address is not None:
                        leaders[state.leader] = NodeEndpoint(state.leader, *address)
        body.node_endpoints = [leaders[leader] for leader in sorted(leaders)]


def _unverified(error: int, version: int) -> int:
    """What a producer is answered whose transaction could not be verified."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if error == ErrorCode.CONCURRENT_TRANSACTIONS and version >= _ADDS_SINCE:
        return error  # the one before is being ended
    return error if error in _CERTAIN else ErrorCode.NOT_ENOUGH_REPLICAS  # so that it sends the batch again


def produce(services: ProduceServices, rules: ProduceRules, request: Request) -> None:
    """Serve Produce."""
    Producing(services, rules, request).start()
