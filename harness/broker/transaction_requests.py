"""Requests about transactions, as coordinators serve them; TxnOffsetCommit goes to that of the group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from harness.broker.coordinator_log import partition_of
from harness.broker.group_coordinator import GroupCoordinator
from harness.broker.group_requests import acceptable, named
from harness.broker.metadata import ClusterMetadata
from harness.broker.producer_ids import ProducerIds
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.broker.transaction_verifier import TransactionVerifier
from harness.clock import Clock
from harness.coordination.group_commits import Committer
from harness.coordination.internal_topics import GROUPS_TOPIC
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction import NO_PRODUCER_EPOCH, NUMBERED
from harness.coordination.transactions import Initialising, Transactions
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.replication.messages import ProducerStamp
from harness.wire.messages.coordination import InitProducerIdRequest, InitProducerIdResponse
from harness.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_OF_SEVERAL_SINCE = 4
_FENCED_SINCE = 2
_FENCED_AT_INIT_SINCE = 4
_NUMBERED_SINCE = 5
"""In these versions EndTxn and TxnOffsetCommit are those of transaction version 2 (KIP-890)."""
_UNCERTAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)

Errors = dict[TopicPartition, int]


class OffsetsInTransactions:
    """Asks whether a transaction has the partition in which the offsets of a group are.

    Args:
        replicas: of this broker.
        metadata: what it knows of the cluster.
        verifier: asks the transaction's coordinator; None: this broker asks none.
    """

    def __init__(self, replicas: Replicas, metadata: ClusterMetadata, verifier: TransactionVerifier | None) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._verifier = verifier

    def verify(self, request: Request, commit: Callable[[], None], refused: Callable[[int], None]) -> None:
        """Commit if the partition of the group is in the producer's open transaction, as far as this is verified.

        With transaction version 2 it is added to the transaction.
        """
        body = cast("TxnOffsetCommitRequest", request.body)
        count = self._metadata.partition_count(GROUPS_TOPIC)
        if self._verifier is None or not count:
            commit()
            return
        partition = self._replicas.get(TopicPartition(GROUPS_TOPIC, partition_of(body.group_id, count)))
        if partition is None:
            refused(ErrorCode.NOT_COORDINATOR)
            return

        def verified(error: int) -> None:
            if not error:
                commit()
            elif error in _UNCERTAIN:
                refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            elif error == ErrorCode.TRANSACTION_ABORTABLE:
                refused(ErrorCode.INVALID_TXN_STATE)
            elif error == ErrorCode.PRODUCER_FENCED:
                refused(ErrorCode.INVALID_PRODUCER_EPOCH)
            else:
                refused(error)

        stamp = ProducerStamp(body.producer_id, body.producer_epoch, 0, is_transactional=True)
        adds = request.version >= _NUMBERED_SINCE
        self._verifier.verify(body.transactional_id, stamp, partition, verified, adds=adds)


def init_producer_id(coordinator: TransactionCoordinator, producer_ids: ProducerIds, request: Request) -> None:
    """Serve InitProducerId: for a producer without transactions a new id, of the controller's blocks, with epoch 0."""
    body = cast("InitProducerIdRequest", request.body)
    request.session.hold()

    def initialised(error: int, producer: ProducerIdentity) -> None:
        request.session.release()
        known = _for_version(error, request.version, _FENCED_AT_INIT_SINCE)
        request.answer(InitProducerIdResponse(error_code=known, producer_id=producer[0], producer_epoch=producer.epoch))

    def allocated(producer_id: int | None) -> None:
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if producer_id is None else ErrorCode.NONE
        initialised(error, ProducerIdentity(-1 if producer_id is None else producer_id, -1 if error else 0))

    if body.transactional_id is None:
        producer_ids.next(allocated)
        return
    transactions = coordinator.transactions_of(body.transactional_id)
    if isinstance(transactions, ErrorCode):
        initialised(transactions, ProducerIdentity(-1, NO_PRODUCER_EPOCH))
        return
    before = ProducerIdentity(body.producer_id, body.producer_epoch)
    transactions.init_producer(
        Initialising(
            body.transactional_id, body.transaction_timeout_ms, None if max(before) < 0 else before, initialised
        )
    )


# ------------------------------------------------------------------------------------------------ the transaction


def add_partitions_to_txn(coordinator: TransactionCoordinator, metadata: ClusterMetadata, request: Request) -> None:
    """Serve AddPartitionsToTxn: from a producer, or from a leader that only wants to know (KIP-890)."""
    body = cast("AddPartitionsToTxnRequest", request.body)
    if request.version >= _OF_SEVERAL_SINCE:
        _add_several(coordinator, metadata, request, body)
        return
    topics = body.v3_and_below_topics
    producer = ProducerIdentity(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)

    def answered(errors: Errors) -> None:
        request.answer(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, errors)))

    _add(coordinator, metadata, (body.v3_and_below_transactional_id, producer, request.version), topics, answered)


def _add_several(
    coordinator: TransactionCoordinator, metadata: ClusterMetadata, request: Request, body: AddPartitionsToTxnRequest
) -> None:
    results: dict[str, AddPartitionsToTxnResult] = {}
    wanted = {one.transactional_id: one for one in body.transactions}

    def answered(transactional_id: str, errors: Errors) -> None:
        topics = wanted[transactional_id].topics
        results[transactional_id] = AddPartitionsToTxnResult(transactional_id, _results(topics, errors))
        if len(results) == len(wanted):
            request.answer(AddPartitionsToTxnResponse(results_by_transaction=[results[name] for name in wanted]))

    if not wanted:
        request.answer(AddPartitionsToTxnResponse())
    for name, one in wanted.items():
        producer = ProducerIdentity(one.producer_id, one.producer_epoch)
        if not one.verify_only:
            _add(coordinator, metadata, (name, producer, request.version), one.topics, partial(answered, name))
            continue
        transactions = coordinator.transactions_of(name)
        if isinstance(transactions, ErrorCode):
            answered(name, dict.fromkeys(_named(one.topics), transactions))
        else:
            answered(name, transactions.verify(name, producer, _named(one.topics)))


def _add(
    coordinator: TransactionCoordinator,
    metadata: ClusterMetadata,
    whose: tuple[str, ProducerIdentity, int],
    topics: list[AddPartitionsToTxnTopic],
    answered: Callable[[Errors], None],
) -> None:
    """Add partitions, all or none, to the transaction of an id and a producer, as a version of the request has it."""
    transactional_id, producer, version = whose
    names = _named(topics)
    unknown = {name for name in names if not metadata.knows(*name)}
    transactions = coordinator.transactions_of(transactional_id)
    if isinstance(transactions, ErrorCode):
        answered(dict.fromkeys(names, transactions))
    elif unknown:
        missing, others = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        answered({name: missing if name in unknown else others for name in names})
    else:
        transactions.add(
            transactional_id, producer, names,
            lambda error: answered(dict.fromkeys(names, _for_version(error, version, _FENCED_SINCE))),
            version=NUMBERED if version >= _OF_SEVERAL_SINCE else 0,
        )  # fmt: skip


def add_offsets_to_txn(coordinator: TransactionCoordinator, metadata: ClusterMetadata, request: Request) -> None:
    """Serve AddOffsetsToTxn: the partition of the group becomes a part of the transaction."""
    body = cast("AddOffsetsToTxnRequest", request.body)
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    count = metadata.partition_count(GROUPS_TOPIC)
    if not count:
        request.answer(AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    name = TopicPartition(GROUPS_TOPIC, partition_of(body.group_id, count))
    _at(
        coordinator, body.transactional_id, request,
        lambda transactions: transactions.add(
            body.transactional_id, producer, {name},
            lambda error: request.answer(
                AddOffsetsToTxnResponse(error_code=_for_version(error, request.version, _FENCED_SINCE))
            ),
        ),
    )  # fmt: skip


def end_txn(coordinator: TransactionCoordinator, request: Request) -> None:
    """Serve EndTxn."""
    body = cast("EndTxnRequest", request.body)
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)

    def ended(error: int, after: ProducerIdentity) -> None:
        known = _for_version(error, request.version, _FENCED_SINCE)
        request.answer(EndTxnResponse(error_code=known, producer_id=after.producer_id, producer_epoch=after.epoch))

    _at(
        coordinator, body.transactional_id, request,
        lambda transactions: transactions.end_transaction(
            body.transactional_id, producer, ended,
            commits=body.committed, version=NUMBERED if request.version >= _NUMBERED_SINCE else 0,
        ),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ offsets


def txn_offset_commit(
    groups: GroupCoordinator, metadata: ClusterMetadata, clock: Clock, offsets: OffsetsInTransactions, request: Request
) -> None:
    """Serve TxnOffsetCommit: the offsets of a group, which take effect when the producer's transaction commits."""
    body = cast("TxnOffsetCommitRequest", request.body)
    accepted, errors = acceptable(metadata, clock, body.topics)

    def committed(error: int) -> None:
        topics = [
            TxnOffsetCommitResponseTopic(
                topic, [TxnOffsetCommitResponsePartition(one.partition, errors.get(one, error)) for one in names]
            )
            for topic, names in named(body.topics)
        ]
        request.answer(TxnOffsetCommitResponse(topics=topics))

    offsets.verify(request, partial(_commit, groups, body, accepted, committed), committed)


def _commit(
    groups: GroupCoordinator, body: TxnOffsetCommitRequest, offsets: dict[TopicPartition, CommittedOffset],
    committed: Callable[[int], None],
) -> None:  # fmt: skip
    own = groups.groups_of(body.group_id)
    if isinstance(own, ErrorCode):
        committed(own)
        return
    who = Committer(body.member_id, body.group_instance_id, body.generation_id)
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    own.commits.commit_in_transaction(body.group_id, who, producer, offsets, committed)


# ------------------------------------------------------------------------------------------------ what they share


def _for_version(error: int, version: int, since: int) -> int:
    """An old client knows one error for every producer that is fenced off."""
    if error == ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _at(
    coordinator: TransactionCoordinator, transactional_id: str, request: Request, serve: Callable[[Transactions], None]
) -> None:
    """Serve a request about a transactional id if this broker coordinates it."""
    transactions = coordinator.transactions_of(transactional_id)
    if isinstance(transactions, ErrorCode):
        request.answer(request.body.error_response(transactions))
    else:
        serve(transactions)


def _named(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]


def _results(topics: list[AddPartitionsToTxnTopic], errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(partition, errors[TopicPartition(topic.name, partition)])
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
