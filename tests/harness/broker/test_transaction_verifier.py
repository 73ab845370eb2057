"""What a leader makes of the answer of a coordinator that it has asked about a transaction."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.peers import Peers
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.broker.transaction_verifier import TransactionVerifier
from harness.coordination.internal_topics import TRANSACTIONS_TOPIC
from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.messages import BatchSpan, ProducerStamp, TransactionEnd
from harness.replication.producers import ProducerStates
from harness.wire.declaration import Message
from harness.wire.messages.control import UpdateMetadataPartitionState
from harness.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

NAME = TopicPartition("t", 0)
NOT_AVAILABLE, ABORTABLE = 15, 120


class Asked:
    """A verifier on broker 0; broker 1 coordinates, and answers when the test says so."""

    def __init__(self, *, adds: bool = False) -> None:
        self.adds = adds
        self.asked: list[AddPartitionsToTxnTransaction] = []
        metadata = ClusterMetadata("c", tells_epochs=True, brokers={NodeId(1): ("10.0.0.11", 9092)})
        metadata.topics = {TRANSACTIONS_TOPIC: {0: UpdateMetadataPartitionState(partition_index=0, leader=1)}}
        self.states = ProducerStates()
        log = SimpleNamespace(producers=self.states)
        self._partition = cast("Partition", SimpleNamespace(name=NAME, replica=SimpleNamespace(log=log)))
        self._waiting: list[Callable[[Message | None], None]] = []
        coordinator = cast("TransactionCoordinator", None)
        self._verifier = TransactionVerifier(NodeId(0), metadata, cast("Peers", self), coordinator)

    def call(self, node: int, request: Any, body: Any, timeout_s: float, answered: Any) -> None:
        assert node == 1
        self._waiting.append(answered)
        self.asked += body.transactions

    def verify(self, sequence: int, producer: int = 7) -> list[int]:
        errors: list[int] = []
        stamp = ProducerStamp(producer, 0, sequence, is_transactional=True)
        self._verifier.verify("x", stamp, self._partition, errors.append, adds=self.adds)
        return errors

    def answer(self, error: int | None = 0) -> None:
        """The next answer; None: there is none."""
        if error is None:
            self._waiting.pop(0)(None)
            return
        topic = AddPartitionsToTxnTopicResult("t", [AddPartitionsToTxnPartitionResult(0, error)])
        self._waiting.pop(0)(AddPartitionsToTxnResponse(0, 0, [AddPartitionsToTxnResult("x", [topic])]))


@pytest.mark.parametrize(("answer", "error"), [(0, 0), (ABORTABLE, ABORTABLE), (None, NOT_AVAILABLE)])
def test_the_answer_of_the_coordinator_counts(answer: int | None, error: int) -> None:
    asked = Asked()
    errors = asked.verify(0)
    assert errors == []
    asked.answer(answer)
    assert errors == [error]


def test_a_marker_that_came_meanwhile_has_ended_the_transaction() -> None:
    asked = Asked()
    errors = asked.verify(0)
    marker = ProducerStamp(7, 0, -1, is_transactional=True, ends=TransactionEnd(True, 1))
    asked.states.appended([BatchSpan(0, 1, 0, marker)])
    asked.answer()
    assert errors == [ErrorCode.INVALID_TXN_STATE]


def test_a_partition_is_added_to_a_numbered_transaction_although_the_marker_of_the_last_one_has_just_come() -> None:
    asked = Asked(adds=True)
    errors = asked.verify(0)
    asked.states.appended([BatchSpan(0, 1, 0, ProducerStamp(7, 1, -1, True, TransactionEnd(True, 0)))])
    asked.answer()
    assert errors == [0]
    assert [one.verify_only for one in asked.asked] == [False]


def test_a_batch_does_not_overtake_one_before_it_that_could_not_be_verified() -> None:
    asked = Asked()
    first, second, other = asked.verify(0), asked.verify(1), asked.verify(5, producer=8)
    asked.answer(NOT_AVAILABLE)
    asked.answer()
    asked.answer()
    assert (first, second, other) == ([NOT_AVAILABLE], [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER], [0])
    again, behind = asked.verify(0), asked.verify(1)
    asked.answer()
    asked.answer()
    assert (again, behind) == ([0], [0])


def test_producers_that_never_come_back_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.broker.transaction_verifier._MOST_REMEMBERED", 1)
    asked = Asked()
    asked.verify(0)
    asked.answer(NOT_AVAILABLE)
    asked.verify(0, producer=8)
    asked.answer(NOT_AVAILABLE)
    late = asked.verify(1)
    asked.answer()
    assert late == [0]
