"""What a leader still knows of a producer: by its records, by its last batches, and for how long."""

from __future__ import annotations

import pytest

from harness.error_codes import ErrorCode
from harness.replication.knobs import Knobs, generation
from harness.replication.messages import BatchSpan, ProducerStamp, TransactionEnd
from harness.replication.producers import ProducerStates

NONE, OUT_OF_ORDER, UNKNOWN = (
    ErrorCode.NONE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


def knobs(**overrides: str) -> Knobs:
    return generation("4.1", overrides)


def sent(base: int, sequence: int, timestamp_ms: int = 0, *, transactional: bool = False) -> BatchSpan:
    return BatchSpan(base, base + 1, 0, ProducerStamp(7, 0, sequence, transactional, timestamp_ms=timestamp_ms))


def next_one(sequence: int) -> ProducerStamp:
    return ProducerStamp(7, 0, sequence)


@pytest.mark.parametrize(("knob", "error"), [("out_of_order", OUT_OF_ORDER), ("unknown", UNKNOWN), ("kept", NONE)])
def test_a_producer_whose_records_are_all_deleted_goes_on_or_is_refused(knob: str, error: ErrorCode) -> None:
    states = ProducerStates([sent(0, 0), sent(1, 1)], knobs(producers_without_records=knob))
    states.deleted_before(1)
    assert states.error(next_one(2)) == NONE
    states.deleted_before(2)
    assert states.error(next_one(2)) == error
    assert states.error(next_one(0)) == (OUT_OF_ORDER if knob == "kept" else NONE)


@pytest.mark.parametrize(("knob", "is_known"), [("out_of_order", False), ("unknown", False), ("kept", True)])
def test_a_batch_whose_records_are_deleted_is_detected_where_the_producer_is_kept(knob: str, is_known: bool) -> None:
    states = ProducerStates([sent(0, 0)], knobs(producers_without_records=knob))
    states.deleted_before(1)
    assert (states.duplicate(next_one(0), 1) is not None) == is_known


@pytest.mark.parametrize(("knob", "detected"), [("last", [2]), ("five", [0, 1, 2])])
def test_a_repeated_batch_is_detected_among_those_that_are_remembered(knob: str, detected: list[int]) -> None:
    states = ProducerStates([sent(number, number) for number in range(3)], knobs(batches_remembered=knob))
    assert [one for one in range(3) if states.duplicate(next_one(one), 1)] == detected
    assert states.error(next_one(0)) == OUT_OF_ORDER


@pytest.mark.parametrize(("knob", "error"), [("out_of_order", OUT_OF_ORDER), ("unknown", UNKNOWN), ("kept", NONE)])
def test_a_producer_expires_by_the_timestamp_of_its_last_batch(knob: str, error: ErrorCode) -> None:
    states = ProducerStates([sent(0, 0, 1_000), sent(1, 1, 5_000)], knobs(producers_without_records=knob))
    states.expire(4_999)
    assert states.duplicate(next_one(1), 1) is not None
    states.expire(5_000)
    assert states.duplicate(next_one(1), 1) is None
    assert states.error(next_one(1)) == error


def test_a_producer_does_not_expire_in_a_transaction() -> None:
    states = ProducerStates([sent(0, 0, transactional=True)])
    states.expire(1)
    assert [one.transaction_start for one in states] == [0]
    states.appended([BatchSpan(1, 2, 0, ProducerStamp(7, 0, -1, True, TransactionEnd(True, 0), 10))])
    states.expire(10)
    assert list(states) == []


def test_the_transaction_of_a_producer_is_forgotten_with_its_last_record() -> None:
    states = ProducerStates([sent(0, 0, transactional=True), sent(1, 1, transactional=True)], generation("2.1"))
    states.deleted_before(1)
    assert states.last_stable_offset(2) == 0
    states.deleted_before(2)
    assert states.last_stable_offset(2) == 2
