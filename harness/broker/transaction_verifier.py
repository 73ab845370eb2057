"""A leader asks whether a transaction is open before it appends the first batch of it (KIP-890)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from typing import cast

from harness.broker.coordinator_log import partition_of
from harness.broker.metadata import ClusterMetadata
from harness.broker.peers import Peers
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.coordination.errors import GroupError, TransactionError
from harness.coordination.internal_topics import TRANSACTIONS_TOPIC
from harness.coordination.surroundings import ProducerIdentity
from harness.model import NodeId, TopicPartition
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

Verified = Callable[[dict[TopicPartition, int]], None]
"""Takes the error code for each partition; 0: it is in the open transaction of the producer."""


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

    def verify(
        self, transactional_id: str, producer: ProducerIdentity, names: Collection[TopicPartition], verified: Verified
    ) -> None:
        """Call ``verified``, now or later."""
        count = self._metadata.partition_count(TRANSACTIONS_TOPIC)
        state = self._metadata.partition(TRANSACTIONS_TOPIC, partition_of(transactional_id, count)) if count else None
        if state is None or self._metadata.address(state.leader) is None:
            verified(dict.fromkeys(names, TransactionError.COORDINATOR_NOT_AVAILABLE))
        elif state.leader == self._node:
            verified(self._verify_here(transactional_id, producer, names))
        else:
            body = AddPartitionsToTxnRequest([_transaction(transactional_id, producer, names)])
            answered = partial(_answered, names, verified)
            self._peers.call(NodeId(state.leader), _REQUEST, body, _TIMEOUT_S, answered)

    def _verify_here(
        self, transactional_id: str, producer: ProducerIdentity, names: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        transactions = self._coordinator.transactions_of(transactional_id)
        if isinstance(transactions, GroupError):
            return dict.fromkeys(names, transactions)
        return transactions.verify(transactional_id, producer, names)


def _transaction(
    transactional_id: str, producer: ProducerIdentity, names: Collection[TopicPartition]
) -> AddPartitionsToTxnTransaction:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for name in names:
        topics[name.topic].append(name.partition)
    asked = [AddPartitionsToTxnTopic(*one) for one in topics.items()]
    return AddPartitionsToTxnTransaction(transactional_id, *producer, verify_only=True, topics=asked)


def _answered(names: Collection[TopicPartition], verified: Verified, answer: Message | None) -> None:
    errors: dict[TopicPartition, int] = dict.fromkeys(names, TransactionError.COORDINATOR_NOT_AVAILABLE)
    if answer is not None:
        body = cast("AddPartitionsToTxnResponse", answer)
        if body.error_code:
            errors = dict.fromkeys(names, body.error_code)
        for transaction in body.results_by_transaction:
            for topic in transaction.topic_results:
                for one in topic.results_by_partition:
                    errors[TopicPartition(topic.name, one.partition_index)] = one.partition_error_code
    verified(errors)
