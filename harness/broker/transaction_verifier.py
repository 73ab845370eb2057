"""A leader asks whether a transaction is open before it appends the first batch of it (KIP-890).

With transaction version 2 it does not ask whether its partition is in the transaction: it adds it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from harness.broker.coordinator_log import partition_of
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.peers import Peers
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.coordination.internal_topics import TRANSACTIONS_TOPIC
from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction import NUMBERED
from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.messages import ProducerStamp
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_REQUEST = (ApiKey.ADD_PARTITIONS_TO_TXN, 4)
_TIMEOUT_S = 5.0
_MOST_REMEMBERED = 1_000
"""Of how many producers the first unverified sequence is remembered."""

Verified = Callable[[int], None]
"""Takes the error code; 0: the partition is in the open transaction of the producer, and nothing has ended it."""


class _Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    name: TopicPartition
    adds: bool


class TransactionVerifier:
    """Asks the coordinator of a transactional id, which may be this broker.

    Args:
        node: this broker.
        metadata: where the coordinators are.
        peers: the connections to other brokers.
        coordinator: that of this broker.
    """

    def __init__(
        self, node: NodeId, metadata: ClusterMetadata, peers: Peers, coordinator: TransactionCoordinator
    ) -> None:
        self._node = node
        self._metadata = metadata
        self._peers = peers
        self._coordinator = coordinator
        self._first: OrderedDict[tuple[TopicPartition, ProducerIdentity], int] = OrderedDict()

    def verify(
        self, transactional_id: str, stamp: ProducerStamp, partition: Partition, verified: Verified, *, adds: bool
    ) -> None:
        """Call ``verified``, now or later; with ``adds`` the partition is added to the transaction, which may begin it.

        A marker that the log gets meanwhile may have ended the transaction; if it is numbered, its epoch says so. A
        batch behind one that is not verified waits for it, for an unknown producer may begin with any sequence.
        """
        producer, log = ProducerIdentity(stamp.producer_id, stamp.producer_epoch), partition.replica.log
        place, markers = (partition.name, producer), log.producers.markers_of(stamp.producer_id)
        self._first[place] = min(stamp.base_sequence, self._first.get(place, stamp.base_sequence))
        if len(self._first) > _MOST_REMEMBERED:
            self._first.popitem(last=False)

        def answered(error: int) -> None:
            if not error and not adds and log.producers.markers_of(stamp.producer_id) != markers:
                error = ErrorCode.INVALID_TXN_STATE
            elif not error and self._first.get(place, stamp.base_sequence) < stamp.base_sequence:
                error = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if not error:
                self._first.pop(place, None)
            verified(error)

        self._ask(_Question(transactional_id, producer, partition.name, adds), answered)

    def _ask(self, question: _Question, answered: Verified) -> None:
        transactional_id, producer, name, adds = question
        count = self._metadata.partition_count(TRANSACTIONS_TOPIC)
        state = self._metadata.partition(TRANSACTIONS_TOPIC, partition_of(transactional_id, count)) if count else None
        if state is None or self._metadata.address(state.leader) is None:
            answered(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif state.leader == self._node:
            self._ask_here(question, answered)
        else:
            topics = [AddPartitionsToTxnTopic(name.topic, [name.partition])]
            asked = AddPartitionsToTxnTransaction(transactional_id, *producer, verify_only=not adds, topics=topics)
            take = partial(_answered, answered)
            self._peers.call(NodeId(state.leader), _REQUEST, AddPartitionsToTxnRequest([asked]), _TIMEOUT_S, take)

    def _ask_here(self, question: _Question, answered: Verified) -> None:
        transactional_id, producer, name, adds = question
        transactions = self._coordinator.transactions_of(transactional_id)
        if isinstance(transactions, ErrorCode):
            answered(transactions)
        elif adds:
            transactions.add(transactional_id, producer, [name], answered, version=NUMBERED)
        else:
            answered(transactions.verify(transactional_id, producer, [name])[name])


def _answered(answered: Verified, answer: Message | None) -> None:
    error: int = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if answer is not None:
        body = cast("AddPartitionsToTxnResponse", answer)
        results = [one for each in body.results_by_transaction for topic in each.topic_results
                   for one in topic.results_by_partition]  # fmt: skip
        error = body.error_code or (results[0].partition_error_code if results else error)
    answered(error)
