"""Transactions that have an epoch each (transaction version 2, KIP-890), without a broker."""

from __future__ import annotations

import pytest

from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction import LAST_EPOCH, NUMBERED, Transaction
from harness.coordination.transaction_records import State, TransactionKey, transaction_record
from harness.error_codes import ErrorCode
from tests.harness.coordination.transactions_alone import TIMEOUT_MS, A, B, TransactionsAlone

FENCED, CONCURRENT = ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.fixture
def alone() -> TransactionsAlone:
    return TransactionsAlone()


def begun(alone: TransactionsAlone) -> ProducerIdentity:
    who = alone.producer()
    assert alone.add(who, version=NUMBERED) == [0]
    return who


def after(who: ProducerIdentity) -> ProducerIdentity:
    return who._replace(epoch=who.epoch + 1)


@pytest.mark.parametrize("commits", [True, False])
def test_the_end_of_a_transaction_raises_the_epoch_and_its_markers_have_it(
    alone: TransactionsAlone, commits: bool
) -> None:
    who = begun(alone)
    assert alone.end_numbered(who, commits=commits) == [(0, after(who))]
    assert [marking[:3] for marking in alone.marking] == [(after(who), {A}, commits)]


@pytest.mark.parametrize("is_marked", [False, True])
def test_who_ends_a_transaction_again_does_not_end_the_next_one(alone: TransactionsAlone, is_marked: bool) -> None:
    """KAFKA-17754: the first request was late."""
    who = begun(alone)
    alone.end_numbered(who, commits=False)
    if not is_marked:
        assert [error for error, _ in alone.end_numbered(who, commits=False)] == [CONCURRENT]
        return
    alone.mark_next()
    assert alone.end_numbered(who, commits=False) == [(0, after(who))]
    assert alone.add(after(who), B, version=NUMBERED) == [0]
    assert [error for error, _ in alone.end_numbered(who, commits=False)] == [FENCED]
    assert alone.state() == "Ongoing"


def test_without_numbers_the_second_request_ends_the_next_transaction(alone: TransactionsAlone) -> None:
    who = alone.producer()
    alone.add(who)
    alone.end(who, commits=False)
    alone.mark_next()
    alone.add(who, B)
    assert alone.end(who, commits=False) == [0]
    assert alone.state() == "PrepareAbort"


def test_what_was_answered_before_is_not_contradicted(alone: TransactionsAlone) -> None:
    who = begun(alone)
    alone.end_numbered(who, commits=True)
    alone.mark_next()
    assert alone.end_numbered(who, commits=False)[0][0] == ErrorCode.INVALID_TXN_STATE


def test_a_batch_of_the_last_transaction_is_not_added_to_this_one(alone: TransactionsAlone) -> None:
    who = begun(alone)
    alone.end_numbered(who, commits=False)
    alone.mark_next()
    assert alone.add(who, version=NUMBERED) == [FENCED]


def test_a_transaction_of_which_nothing_has_arrived_is_aborted_so_that_what_is_late_is_fenced(
    alone: TransactionsAlone,
) -> None:
    who = alone.producer()
    assert alone.end_numbered(who, commits=False) == [(0, after(who))]
    assert [marking[1] for marking in alone.marking] == [set()]
    alone.mark_next()
    assert alone.end_numbered(after(who), commits=False) == [(0, after(after(who)))]
    assert alone.add(who, version=NUMBERED) == [FENCED]


def test_a_transaction_of_which_nothing_has_arrived_cannot_be_committed(alone: TransactionsAlone) -> None:
    who = alone.producer()
    assert alone.end_numbered(who, commits=True)[0][0] == ErrorCode.INVALID_TXN_STATE


def test_the_next_transaction_waits_for_the_markers_of_the_one_before(alone: TransactionsAlone) -> None:
    who = begun(alone)
    alone.end_numbered(who, commits=True)
    assert alone.add(after(who), version=NUMBERED) == [CONCURRENT]
    assert alone.end_numbered(after(who), commits=False)[0][0] == CONCURRENT


def test_the_next_coordinator_knows_the_epoch_and_that_the_transaction_was_numbered(alone: TransactionsAlone) -> None:
    who = begun(alone)
    alone.end_numbered(who, commits=True)
    second = alone.successor()
    assert second.marking[0][0] == after(who)
    second.mark_next()
    assert second.end_numbered(who, commits=True) == [(0, after(who))]


def test_a_producer_that_has_used_up_its_epochs_goes_on_with_another_id() -> None:
    last = ProducerIdentity(7, LAST_EPOCH)
    open_one = Transaction(last, TIMEOUT_MS, State.ONGOING, frozenset({A}), 1, 1, version=NUMBERED)
    alone = TransactionsAlone([transaction_record(TransactionKey("x"), open_one.value())])
    ((error, new),) = alone.end_numbered(last, commits=True)
    assert (error, new.epoch) == (0, 0)
    assert new.producer_id != 7
    assert alone.marking[0][0] == ProducerIdentity(7, LAST_EPOCH + 1)
    alone.mark_next()
    assert alone.successor().end_numbered(last, commits=True) == [(0, new)]
    assert alone.add(new, version=NUMBERED) == [0]


def test_a_client_that_does_not_number_its_transactions_keeps_its_epoch(alone: TransactionsAlone) -> None:
    who = alone.producer()
    alone.add(who)
    assert alone.end(who, commits=True) == [0]
    assert alone.marking[0][0] == who
