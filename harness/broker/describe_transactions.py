"""What operators ask about transactions: DescribeProducers, DescribeTransactions, ListTransactions (KIP-664)."""

from __future__ import annotations

from collections import defaultdict
from typing import cast

from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.coordination.transaction_records import State
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire.messages.described_transactions import (
    DescribedProducers,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducerState,
    TransactionTopic,
)

_STATES = {state.title for state in State}


def describe_producers(replicas: Replicas, request: Request) -> None:
    """Serve DescribeProducers: any replica names the producers in its log, and where their transactions begin."""
    body = cast("DescribeProducersRequest", request.body)
    request.answer(
        DescribeProducersResponse(
            topics=[
                DescribeProducersTopicResponse(
                    topic.name, [_producers(replicas, topic.name, index) for index in topic.partition_indexes]
                )
                for topic in body.topics
            ]
        )
    )


def _producers(replicas: Replicas, topic: str, index: int) -> DescribedProducers:
    name = TopicPartition(topic, index)
    partition = replicas.get(name)
    if partition is None:
        return DescribedProducers(index, replicas.absence_of(name))
    if partition.replica.has_failed:
        return DescribedProducers(index, ErrorCode.KAFKA_STORAGE_ERROR)
    producers = partition.replica.log.producers
    return DescribedProducers(
        index,
        active_producers=[
            ProducerState(
                one.producer_id,
                one.epoch,
                one.last_sequence,
                one.last_timestamp_ms,
                coordinator_epoch=one.coordinator_epoch,
                current_txn_start_offset=one.transaction_start,
            )
            for one in producers
        ],
    )


def describe_transactions(coordinator: TransactionCoordinator, request: Request) -> None:
    """Serve DescribeTransactions: each transactional id on its own."""
    body = cast("DescribeTransactionsRequest", request.body)
    described = [_described(coordinator, one) for one in dict.fromkeys(body.transactional_ids)]
    request.answer(DescribeTransactionsResponse(transaction_states=described))


def _described(coordinator: TransactionCoordinator, transactional_id: str) -> DescribedTransaction:
    transactions = coordinator.transactions_of(transactional_id)
    if isinstance(transactions, ErrorCode):
        return DescribedTransaction(transactions, transactional_id)
    one = transactions.described(transactional_id)
    if one is None:
        return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(one.partitions):
        topics[topic].append(partition)
    return DescribedTransaction(
        ErrorCode.NONE,
        transactional_id,
        one.state.title,
        one.timeout_ms,
        one.start_ms,
        one.producer.producer_id,
        one.producer.epoch,
        [TransactionTopic(*listed) for listed in topics.items()],
    )


def list_transactions(coordinator: TransactionCoordinator, request: Request) -> None:
    """Serve ListTransactions: those that this broker coordinates."""
    body = cast("ListTransactionsRequest", request.body)
    found = coordinator.all_transactions()
    if isinstance(found, ErrorCode):
        request.answer(ListTransactionsResponse(error_code=found))
        return
    unknown = [state for state in body.state_filters if state not in _STATES]
    listed = [
        ListedTransaction(name, one.producer.producer_id, one.state.title)
        for transactions in found
        for name, one in transactions.listed(body.state_filters, body.producer_id_filters, body.duration_filter).items()
    ]
    request.answer(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed))
