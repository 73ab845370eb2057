from __future__ import annotations

import pytest

from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction import Transaction
from harness.coordination.transaction_records import State, TransactionKey, transaction_record
from tests.harness.coordination.transactions_alone import A, B, TransactionsAlone

NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST, INVALID_STATE, UNKNOWN_ID = 15, 16, 42, 48, 49
BAD_TIMEOUT, CONCURRENT, FENCED, ABORTABLE = 50, 51, 90, 120


def test_a_transaction_is_prepared_before_its_end_is_answered_and_complete_once_all_have_markers() -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    assert alone.state() == "Empty"
    assert alone.add(who, A) == [0]
    assert alone.add(who, B) == [0]
    assert alone.end(who, commits=True) == [0]
    assert alone.state() == "PrepareCommit"
    assert [one[:3] for one in alone.marking] == [(who, {A, B}, True)]
    assert alone.add(who) == [CONCURRENT]
    alone.mark_next()
    assert alone.state() == "CompleteCommit"
    assert alone.add(who) == [0]


def test_an_end_that_cannot_be_stored_decides_nothing() -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    alone.add(who)
    alone.holds_stores = True
    answers = alone.end(who, commits=True)
    assert answers == []
    assert alone.end(who, commits=True) == [CONCURRENT]
    alone.store_next(7)
    assert answers == [NOT_AVAILABLE]
    assert (alone.state(), alone.marking) == ("Ongoing", [])


@pytest.mark.parametrize(
    ("code", "answer"), [(0, 0), (3, 15), (6, 16), (7, 15), (19, 15), (20, 15), (56, 16), (10, -1)]
)
def test_what_a_producer_is_answered_is_what_became_of_the_record(code: int, answer: int) -> None:
    alone = TransactionsAlone()
    alone.holds_stores = True
    answers = alone.init()
    alone.store_next(code)
    assert [error for error, _ in answers] == [answer]


@pytest.mark.parametrize("commits", [True, False])
def test_an_end_that_is_asked_again_is_answered_as_the_first_time(commits: bool) -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    assert alone.end(who, commits=commits) == [INVALID_STATE]
    alone.add(who)
    alone.end(who, commits=commits)
    assert alone.end(who, commits=commits) == [CONCURRENT]
    assert alone.end(who, commits=not commits) == [INVALID_STATE]
    alone.mark_next()
    assert alone.end(who, commits=commits) == [0]
    assert alone.end(who, commits=not commits) == [INVALID_STATE]


def test_a_new_process_fences_the_old_one_off_and_waits_for_its_transaction_to_be_aborted() -> None:
    alone = TransactionsAlone()
    old = alone.producer()
    alone.add(old, A)
    assert [error for error, _ in alone.init()] == [CONCURRENT]
    assert alone.end(old, commits=True) == [FENCED]
    ((marked, partitions, commits, _),) = alone.marking
    assert (marked, partitions, commits) == (ProducerIdentity(old.producer_id, old.epoch + 1), {A}, False)
    assert [error for error, _ in alone.init()] == [CONCURRENT]
    alone.mark_next()
    new = alone.producer()
    assert new == ProducerIdentity(old.producer_id, old.epoch + 2)
    assert alone.add(old) == [FENCED]
    assert alone.add(new) == [0]


def test_a_fence_that_could_not_be_stored_raises_the_epoch_once() -> None:
    alone = TransactionsAlone()
    old = alone.producer()
    alone.add(old)
    alone.holds_stores = True
    for error in (19, 19, 0):
        alone.init()
        alone.store_next(error)
    assert alone.marking[0][0] == ProducerIdentity(old.producer_id, old.epoch + 1)


def test_a_transaction_that_takes_too_long_is_aborted_in_an_epoch_that_its_producer_does_not_have() -> None:
    alone = TransactionsAlone()
    who = alone.producer(timeout_ms=5_000)
    alone.sleep(60_000)
    alone.add(who)
    alone.sleep(4_999)
    assert alone.add(who, B) == [0]
    assert alone.state() == "Ongoing"
    alone.sleep(1)
    assert alone.state() == "PrepareAbort"
    assert alone.add(who) == [FENCED]
    alone.mark_next()
    alone.sleep(60_000)
    assert (alone.state(), alone.marking) == ("CompleteAbort", [])


def test_a_transaction_that_ends_in_time_is_not_aborted_later() -> None:
    alone = TransactionsAlone()
    who = alone.producer(timeout_ms=5_000)
    alone.add(who)
    alone.end(who, commits=True)
    alone.mark_next()
    alone.sleep(60_000)
    assert (alone.state(), alone.marking) == ("CompleteCommit", [])


@pytest.mark.parametrize("asked", [ProducerIdentity(999, 0), ProducerIdentity(101, 7)])
def test_another_producer_is_refused(asked: ProducerIdentity) -> None:
    alone = TransactionsAlone()
    alone.producer()
    error = UNKNOWN_ID if asked.producer_id == 999 else FENCED
    assert alone.add(asked) == [error]
    assert alone.end(asked, commits=True) == [error]
    assert alone.transactions.verify("x", asked, [A]) == {A: error}
    assert alone.add(asked, name="y") == [UNKNOWN_ID]


def test_a_leader_learns_whether_a_partition_is_in_the_open_transaction() -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    assert alone.transactions.verify("x", who, [A]) == {A: ABORTABLE}
    alone.add(who, A)
    assert alone.transactions.verify("x", who, [A, B]) == {A: 0, B: ABORTABLE}
    alone.end(who, commits=True)
    assert alone.transactions.verify("x", who, [A]) == {A: CONCURRENT}
    alone.mark_next()
    assert alone.transactions.verify("x", who, [A]) == {A: ABORTABLE}


# ------------------------------------------------------------------------------------------------ KIP-360


def test_a_producer_that_says_who_it_was_goes_on_and_one_that_was_replaced_does_not() -> None:
    alone = TransactionsAlone()
    first = alone.producer()
    ((error, second),) = alone.init(before=first)
    assert (error, second) == (0, ProducerIdentity(first.producer_id, first.epoch + 1))
    assert alone.init(before=first) == [(0, second)], "its answer was lost"
    ((_, third),) = alone.init(before=second)
    assert [error for error, _ in alone.init(before=first)] == [FENCED]
    alone.producer()
    assert [error for error, _ in alone.init(before=third)] == [FENCED]


def test_a_replaced_producer_cannot_abort_the_transaction_of_its_successor() -> None:
    alone = TransactionsAlone()
    old = alone.producer()
    new = alone.producer()
    alone.add(new)
    assert [error for error, _ in alone.init(before=old)] == [FENCED]
    assert alone.end(new, commits=True) == [0]


def test_a_producer_id_with_all_its_epochs_used_is_replaced() -> None:
    used = Transaction(ProducerIdentity(5, 32_766), 60_000)
    alone = TransactionsAlone([transaction_record(TransactionKey("x"), used.value())])
    assert alone.producer() == ProducerIdentity(101, 0)


# ------------------------------------------------------------------------------------------------ refusals


def test_a_request_that_cannot_be_served_is_refused() -> None:
    alone = TransactionsAlone()
    assert alone.init("")[0][0] == INVALID_REQUEST
    for half in (ProducerIdentity(101, -1), ProducerIdentity(-1, 0)):
        assert alone.init(before=half)[0][0] == INVALID_REQUEST
    assert alone.init(timeout_ms=0)[0][0] == BAD_TIMEOUT
    assert alone.init(timeout_ms=900_001)[0][0] == BAD_TIMEOUT
    alone.has_ids = False
    assert alone.init()[0][0] == NOT_AVAILABLE


def test_no_more_ids_are_taken_in_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.coordination.transactions.MAX_IDS", 1)
    alone = TransactionsAlone()
    alone.producer("x")
    assert alone.init("y")[0][0] == -1
    assert alone.init("x")[0][0] == 0


# ------------------------------------------------------------------------------------------------ the log


@pytest.mark.parametrize("commits", [True, False])
def test_the_next_coordinator_finishes_what_was_being_ended(commits: bool) -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    alone.add(who, A, B)
    alone.end(who, commits=commits)
    next_one = alone.successor()
    assert [one[:3] for one in next_one.marking] == [(who, {A, B}, commits)]
    alone.mark_next()
    assert len(alone.log) == 3, "the one that has resigned stores nothing"
    next_one.mark_next()
    assert next_one.state() == ("CompleteCommit" if commits else "CompleteAbort")


def test_the_next_coordinator_aborts_what_began_too_long_ago() -> None:
    alone = TransactionsAlone()
    who = alone.producer(timeout_ms=5_000)
    alone.add(who)
    next_one = alone.successor()
    assert (next_one.state(), next_one.add(who, A)) == ("Ongoing", [0])
    next_one.sleep(5_000)
    assert next_one.state() == "PrepareAbort"


@pytest.mark.parametrize("error", [19, 10])
def test_a_completion_that_could_not_be_stored_is_stored_later(error: int) -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    alone.add(who)
    alone.end(who, commits=True)
    alone.holds_stores = True
    alone.mark_next()
    alone.store_next(error)
    assert alone.state() == "PrepareCommit"
    assert alone.add(who) == [CONCURRENT]
    alone.sleep(50)
    alone.store_next()
    assert alone.state() == "CompleteCommit"


def test_what_is_stored_is_what_the_next_coordinator_knows() -> None:
    alone = TransactionsAlone()
    who = alone.producer()
    alone.add(who, A, B)
    known, read = alone.transactions.described("x"), alone.successor().transactions.described("x")
    assert known is not None
    assert read == known._replace(last_epoch=-1)
    assert (read.state, read.partitions, read.start_ms) == (State.ONGOING, frozenset({A, B}), 1_000)


@pytest.mark.parametrize("act", ["add", "end"])
def test_what_is_stored_after_a_coordinator_has_resigned_begins_nothing(act: str) -> None:
    alone = TransactionsAlone()
    who = alone.producer(timeout_ms=5_000)
    if act == "end":
        alone.add(who)
    alone.holds_stores = True
    answers = alone.add(who) if act == "add" else alone.end(who, commits=True)
    alone.transactions.end()
    alone.store_next()
    assert answers == [0], "it is in the log"
    alone.sleep(60_000)
    assert (alone.storing, alone.marking) == ([], [])


def test_a_clock_that_was_ahead_makes_no_transaction_longer() -> None:
    alone = TransactionsAlone()
    alone.time.now_ms += 3_600_000
    who = alone.producer(timeout_ms=5_000)
    alone.add(who)
    next_one = alone.successor()
    assert next_one.time.now_ms < alone.time.now_ms
    next_one.sleep(5_000)
    assert next_one.state() == "PrepareAbort"


def test_operators_ask_for_states_producers_and_how_long() -> None:
    alone = TransactionsAlone()
    one, other = alone.producer("one"), alone.producer("other")
    alone.add(one, name="one")
    alone.sleep(100)
    listed = alone.transactions.listed
    assert list(listed((), (), -1)) == ["one", "other"]
    assert list(listed(["Ongoing"], (), -1)) == ["one"]
    assert list(listed((), [other.producer_id], -1)) == ["other"]
    assert list(listed((), (), 99)) == ["one"]
    assert list(listed((), (), 100)) == []
