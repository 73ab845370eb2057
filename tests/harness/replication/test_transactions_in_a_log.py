"""What a log says of transactions: where they begin and end, and up to where a reader of committed records may read."""

from __future__ import annotations

import pytest

from harness.error_codes import ErrorCode
from harness.replication.log_state import LogState, StoredLog
from harness.replication.messages import BatchSpan, ProducerStamp, TransactionEnd
from harness.replication.producers import AbortedTransaction, ProducerStates


def sent(base: int, producer: int, sequence: int = 0, *, epoch: int = 0, plain: bool = False) -> BatchSpan:
    return BatchSpan(base, base + 1, 0, ProducerStamp(producer, epoch, sequence, not plain))


def ended(at: int, producer: int, *, commits: bool, epoch: int = 0, coordinator: int = 3) -> BatchSpan:
    return BatchSpan(at, at + 1, 0, ProducerStamp(producer, epoch, -1, True, TransactionEnd(commits, coordinator)))


TWO = [sent(0, 7), sent(1, 8), sent(2, 7, 1), ended(3, 8, commits=False), sent(4, 9), ended(5, 7, commits=True)]
"""7 is committed and 8 aborted; 9 is open."""


@pytest.mark.parametrize(
    ("batches", "high_watermark", "stable"),
    [(0, 0, 0), (1, 1, 0), (2, 2, 0), (4, 4, 0), (6, 6, 4), (6, 5, 0), (6, 4, 0), (6, 3, 0), (6, 2, 0)],
)
def test_a_reader_of_committed_records_stops_where_the_first_transaction_begins_that_is_not_over(
    batches: int, high_watermark: int, stable: int
) -> None:
    assert ProducerStates(TWO[:batches]).last_stable_offset(high_watermark) == stable


def test_a_marker_counts_once_the_watermark_has_passed_it() -> None:
    log = LogState(StoredLog(0, 0, (), 0))
    log.appended((sent(0, 7), ended(1, 7, commits=True)))
    stable = []
    for watermark in (1, 2):
        log.move_high_watermark(watermark)
        stable.append(log.last_stable_offset)
    assert stable == [0, 2]


def test_the_last_stable_offset_is_within_the_log_where_the_first_records_are_deleted() -> None:
    log = LogState(StoredLog(0, 0, (), 0))
    log.appended((sent(0, 7), sent(1, 7, 1), sent(2, 7, 2)))
    log.move_high_watermark(3)
    log.raise_start(2)
    assert log.last_stable_offset == 2


def test_aborted_transactions_are_those_with_records_in_what_is_read() -> None:
    states = ProducerStates([*TWO, ended(6, 9, commits=False), sent(7, 8, 1), ended(8, 8, commits=False)])
    eight, nine = AbortedTransaction(8, 1, 3, 0), AbortedTransaction(9, 4, 6, 7)
    again = AbortedTransaction(8, 7, 8, 9)
    assert states.aborted(0, 9) == [eight, nine, again]
    assert states.aborted(0, 1) == []
    assert states.aborted(0, 2) == [eight]
    assert states.aborted(3, 5) == [eight, nine]
    assert states.aborted(4, 7) == [nine]
    assert states.aborted(7, 9) == [again]
    states.deleted_before(4)
    assert states.aborted(0, 9) == [nine, again]


def test_a_marker_without_a_transaction_changes_nothing_but_the_epochs() -> None:
    states = ProducerStates([ended(0, 7, commits=False, epoch=2)])
    assert states.last_stable_offset(1) == 1
    assert states.aborted(0, 1) == []
    assert states.error(ProducerStamp(7, 1, 0, True)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.error(ProducerStamp(7, 2, 0, True)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("stamp", "error"),
    [
        (ProducerStamp(7, 0, -1, True, TransactionEnd(True, 3)), ErrorCode.NONE),
        (ProducerStamp(7, 0, -1, True, TransactionEnd(True, 2)), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (ProducerStamp(7, -1, -1, True, TransactionEnd(True, 4)), ErrorCode.INVALID_PRODUCER_EPOCH),
        (ProducerStamp(9, 0, 1, False), ErrorCode.INVALID_TXN_STATE),
        (ProducerStamp(9, 0, 1, True), ErrorCode.NONE),
        (ProducerStamp(7, 0, 2, True), ErrorCode.NONE),
        (ProducerStamp(7, 0, 0, True), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (ProducerStamp(7, 1, 0, True), ErrorCode.NONE),
    ],
)
def test_what_may_be_appended(stamp: ProducerStamp, error: ErrorCode) -> None:
    assert ProducerStates(TWO).error(stamp) is error


def test_a_coordinator_s_batches_have_no_place_in_the_sequence() -> None:
    states = ProducerStates(TWO)
    assert states.error(ProducerStamp(9, 0, 0, True), in_sequence=False) is ErrorCode.NONE
    assert states.error(ProducerStamp(9, -1, 0, True), in_sequence=False) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_whose_marker_is_cut_is_open_again() -> None:
    log = LogState(StoredLog(0, 0, (), 0))
    log.appended(tuple(TWO))
    log.move_high_watermark(2)
    log.truncated(5, TWO[:5])
    log.move_high_watermark(5)
    assert log.last_stable_offset == 0
    assert log.producers.is_open(ProducerStamp(7, 0, 2, True))
    assert not log.producers.is_open(ProducerStamp(8, 0, 1, True))
    assert not log.producers.is_open(ProducerStamp(7, 1, 0, True))


def test_the_markers_of_a_producer_are_counted() -> None:
    states = ProducerStates(TWO)
    assert [states.markers_of(producer) for producer in (7, 8, 9, 10)] == [1, 1, 0, 0]


def test_operators_see_where_a_transaction_begins() -> None:
    known = {one.producer_id: one for one in ProducerStates(TWO)}
    assert [known[7].transaction_start, known[9].transaction_start] == [-1, 4]
    assert (known[7].last_sequence, known[7].coordinator_epoch, known[9].coordinator_epoch) == (1, 3, -1)
