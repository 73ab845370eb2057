"""What a leader does, knob by knob, where no story tells it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, NodeId, Offset, TopicPartition
from harness.replication.knobs import GENERATIONS, Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Appended,
    AppendFailed,
    DeleteRecordsRequested,
    EpochEnd,
    FetchReceived,
    HighWatermarkAdvanced,
    IsrAnswered,
    PartitionStateChanged,
    ProduceRequested,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaFailed,
    SessionsHeard,
    Tick,
)
from harness.replication.replica import Replica, ReplicaConfig

ZERO, ONE, TWO = NodeId(0), NodeId(1), NodeId(2)
ALL = (ZERO, ONE, TWO)
CURRENT = GENERATIONS["4.1"]
SECOND = 1_000_000_000


class Leader:
    """Replica 0, which leads epoch 5 with an empty log."""

    def __init__(self, knobs: Knobs, isr: tuple[NodeId, ...] = ALL) -> None:
        config, empty = ReplicaConfig(1, replica_lag_time_max_ms=2_000), StoredLog(0, 0, (), 0)
        self.replica = Replica(ZERO, TopicPartition("ledger", 0), knobs, config, empty)
        self.hear_of(*ALL)
        self.replica.handle(PartitionStateChanged(ZERO, 5, isr, ALL, 7, 0))

    def hear_of(self, *nodes: NodeId, epoch: int = 1) -> None:
        """These brokers have a session."""
        self.replica.handle(SessionsHeard(tuple((node, epoch) for node in nodes)))

    def produce(self, records: int = 1, *, acks: int = 1, now_ns: int = 0) -> list[ReplicaEffect]:
        self.replica.handle(ProduceRequested("produce", acks, (records,), b"", now_ns))
        return self.replica.handle(Appended(now_ns))

    def fetch(self, node: NodeId, offset: Offset, *, now_ns: int = 0, **fields: Any) -> list[ReplicaEffect]:
        """A fetch in the current epoch; ``fields`` are :class:`FetchReceived`'s."""
        last = fields.pop("last_fetched_epoch", NO_EPOCH)
        epoch = fields.pop("current_leader_epoch", 5)
        return self.replica.handle(FetchReceived("fetch", node, offset, epoch, last, now_ns, **fields))

    def answer(self, node: NodeId, offset: Offset, **fields: Any) -> AnswerFetch:
        [answer] = [one for one in self.fetch(node, offset, **fields) if isinstance(one, AnswerFetch)]
        return answer

    @property
    def watermark(self) -> Offset:
        return self.replica.high_watermark


@pytest.mark.parametrize(("when", "told"), [("pre_update", 0), ("post_update", 1)])
def test_an_answer_carries_the_watermark_from_before_its_fetch_counted_or_after(when: str, told: Offset) -> None:
    leader = Leader(replace(CURRENT, hw_in_fetch_response=when), isr=(ZERO, ONE))  # type: ignore[arg-type]
    leader.produce()
    assert leader.answer(ONE, 1).high_watermark == told
    assert leader.watermark == 1


@pytest.mark.parametrize(("rule", "reached"), [("max_of_min", 1), ("min_of_all", 0)])
def test_the_least_of_all_never_leaves_zero(rule: str, reached: Offset) -> None:
    leader = Leader(replace(CURRENT, hw_rule=rule))  # type: ignore[arg-type]
    leader.produce()
    for node in (ONE, TWO):
        leader.fetch(node, 1)
    assert leader.watermark == reached


@pytest.mark.parametrize(("rule", "reached"), [("isr_and_caught_up", 1), ("isr", 2)])
def test_who_is_about_to_join_is_waited_for(rule: str, reached: Offset) -> None:
    knobs = replace(CURRENT, hw_waits_for=rule)  # type: ignore[arg-type]
    leader = Leader(knobs, isr=(ZERO, ONE))
    leader.replica.handle(PartitionStateChanged(ZERO, 5, (ZERO, ONE), ALL, 8, 0))
    leader.produce()
    leader.fetch(ONE, 1)
    leader.fetch(TWO, 1)
    leader.replica.handle(IsrAnswered(ErrorCode.INELIGIBLE_REPLICA, (), -1, -1))
    leader.produce()
    leader.fetch(ONE, 2)
    assert leader.watermark == reached


@pytest.mark.parametrize(("rule", "reached"), [("synchronous", 0), ("maximal", 1), ("naive", 1)])
def test_an_isr_change_under_way_stops_the_watermark_only_where_it_is_synchronous(rule: str, reached: Offset) -> None:
    leader = Leader(replace(CURRENT, isr_update=rule), isr=(ZERO, ONE))  # type: ignore[arg-type]
    assert ProposeIsr((ZERO, ONE, TWO), 5, 7, (-1, -1, -1)) in leader.fetch(TWO, 0)
    leader.produce()
    leader.fetch(ONE, 1)
    leader.fetch(TWO, 1)
    assert leader.watermark == reached
    leader.replica.handle(IsrAnswered(ErrorCode.NONE, ALL, 5, 8))
    assert leader.watermark == 1


def test_the_naive_rule_overtakes_a_member_that_the_controller_may_have_added() -> None:
    reached = []
    for rule in ("maximal", "naive"):
        leader = Leader(replace(CURRENT, isr_update=rule), isr=(ZERO, ONE))
        leader.fetch(TWO, 0)
        leader.produce(now_ns=10 * SECOND)
        leader.fetch(ONE, 1, now_ns=10 * SECOND)
        reached.append(leader.watermark)
    assert reached == [0, 1]


def test_a_watermark_that_waits_for_the_followers_is_promised_first() -> None:
    leader = Leader(replace(CURRENT, hw_advance="after_followers"), isr=(ZERO, ONE))
    leader.produce(acks=-1)
    assert leader.answer(ONE, 1, high_watermark=0).high_watermark == 0
    assert leader.answer(ONE, 1, high_watermark=0).high_watermark == 1
    assert leader.watermark == 0
    assert leader.fetch(ONE, 1, high_watermark=1)[1:] == [
        HighWatermarkAdvanced(1),
        AnswerProduce("produce", ErrorCode.NONE, 0),
    ]


def test_a_diverging_fetch_is_no_progress_unless_the_bug_says_so() -> None:
    known = {}
    for bug in (False, True):
        leader = Leader(replace(CURRENT, diverging_fetch_is_progress=bug))
        leader.produce(3)
        assert leader.answer(ONE, 2, last_fetched_epoch=3).diverging == EpochEnd(3, 0)
        known[bug] = leader.replica.remote_log_end_offsets[ONE]
    assert known == {False: NO_OFFSET, True: 2}


@pytest.mark.parametrize(
    ("sessions", "fetched_as", "joins"),
    [((ZERO, ONE), 1, False), (ALL, 0, False), (ALL, 1, True), (ALL, -1, True)],
    ids=["no session", "of an earlier life", "of this life", "of a life that it does not name"],
)
def test_who_is_known_not_to_be_eligible_is_neither_proposed_nor_waited_for(
    sessions: tuple[NodeId, ...], fetched_as: int, *, joins: bool
) -> None:
    leader = Leader(replace(CURRENT, broker_epoch_check=False), isr=(ZERO, ONE))
    leader.hear_of(*sessions)
    leader.produce()
    told = [*leader.fetch(TWO, 1, broker_epoch=fetched_as), *leader.fetch(ONE, 1)]
    assert any(isinstance(one, ProposeIsr) for one in told) is joins
    leader.replica.handle(IsrAnswered(ErrorCode.INELIGIBLE_REPLICA, (), -1, -1))
    leader.produce()
    leader.fetch(ONE, 2)
    assert leader.watermark == (1 if joins else 2)


@pytest.mark.parametrize(("epoch", "reached"), [(5, 1), (6, 2)])
def test_only_a_new_epoch_makes_a_leader_forget_who_had_the_whole_log(epoch: int, reached: Offset) -> None:
    leader = Leader(CURRENT)
    leader.produce()
    for node in (ONE, TWO):
        leader.fetch(node, 1)
    leader.replica.handle(PartitionStateChanged(ZERO, epoch, (ZERO, ONE), ALL, 8, 0))
    leader.produce()
    leader.fetch(ONE, 2, current_leader_epoch=epoch)
    assert leader.watermark == reached


@pytest.mark.parametrize(("generation", "counts"), [("2.8", True), ("3.7", False)])
def test_who_is_not_in_sync_when_its_leader_is_elected_again_is_waited_for_after_its_next_fetch_or_not(
    generation: str, *, counts: bool
) -> None:
    leader = Leader(GENERATIONS[generation], isr=(ZERO, ONE))
    leader.produce()
    leader.fetch(ONE, 1)
    leader.replica.handle(PartitionStateChanged(ZERO, 6, (ZERO, ONE), ALL, 8, 0))
    leader.produce()
    leader.fetch(TWO, 1, current_leader_epoch=6)
    leader.replica.handle(IsrAnswered(ErrorCode.INELIGIBLE_REPLICA, (), -1, -1))
    leader.fetch(ONE, 2, current_leader_epoch=6)
    assert leader.watermark == (1 if counts else 2)


def test_a_spurious_answer_comes_once_for_each_append() -> None:
    leader = Leader(replace(CURRENT, spurious_out_of_range=True))
    leader.produce()
    errors = [leader.answer(node, 1).error for node in (ONE, TWO)]
    leader.produce()
    errors += [leader.answer(ONE, offset).error for offset in (1, 2, 2)]
    wrong, right = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE
    assert errors == [wrong, right, right, wrong, right]


def test_a_proposal_says_with_which_broker_epochs_the_members_fetched() -> None:
    leader = Leader(CURRENT, isr=(ZERO, ONE))
    leader.fetch(ONE, 0, broker_epoch=4)
    leader.hear_of(*ALL, epoch=6)
    [_, proposal] = leader.fetch(TWO, 0, broker_epoch=6)
    assert proposal == ProposeIsr((ZERO, ONE, TWO), 5, 7, (-1, 4, 6))


@pytest.mark.parametrize(("bug", "members"), [(False, (ZERO,)), (True, ())])
def test_a_proposal_that_got_no_answer_is_repeated_with_its_members(bug: bool, members: tuple[NodeId, ...]) -> None:
    leader = Leader(replace(CURRENT, empty_isr_retry=bug))
    leader.produce()
    leader.replica.handle(Tick(3 * SECOND))
    leader.replica.handle(IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), -1, -1))
    [repeated] = leader.replica.handle(Tick(4 * SECOND))
    assert isinstance(repeated, ProposeIsr)
    assert repeated.isr == members


def test_a_proposal_is_repeated_with_the_broker_epochs_of_the_first_time_whoever_has_restarted_since() -> None:
    leader = Leader(CURRENT, isr=(ZERO, ONE))
    leader.fetch(ONE, 0, broker_epoch=4)
    leader.hear_of(*ALL, epoch=6)
    [_, proposal] = leader.fetch(TWO, 0, broker_epoch=6)
    leader.replica.handle(IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), -1, -1))
    leader.fetch(TWO, 0, broker_epoch=9)
    assert leader.replica.handle(Tick(1)) == [proposal]


@pytest.mark.parametrize(
    ("rule", "epoch", "known"), [("keeps", 6, 1), ("keeps", 7, 1), ("forgets", 6, 1), ("forgets", 7, NO_OFFSET)]
)
def test_a_leader_that_is_elected_again_may_forget_what_it_knew_if_it_missed_an_epoch(
    rule: str, epoch: int, known: Offset
) -> None:
    leader = Leader(replace(CURRENT, reelected_leader=rule))  # type: ignore[arg-type]
    leader.produce(acks=-1)
    for node in (ONE, TWO):
        leader.fetch(node, 0)
    leader.fetch(ONE, 1)
    leader.replica.handle(PartitionStateChanged(ZERO, epoch, ALL, ALL, 9, 0))
    assert leader.replica.remote_log_end_offsets[ONE] == known
    leader.fetch(TWO, 1, current_leader_epoch=epoch)
    assert leader.watermark == (1 if known == 1 else 0)


@pytest.mark.parametrize(
    ("fetch_fencing", "lookup_fencing", "errors"),
    [
        (True, True, [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH]),
        (False, True, [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH]),
        (True, False, [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE]),
    ],
)
def test_fetches_and_lookups_are_fenced_each_on_its_own(
    fetch_fencing: bool, lookup_fencing: bool, errors: list[ErrorCode]
) -> None:
    leader = Leader(replace(CURRENT, fetch_fencing=fetch_fencing, lookup_fencing=lookup_fencing))
    fetched = leader.answer(ONE, 0, current_leader_epoch=4).error
    looked_up, _ = leader.replica.judge_lookup(4, 5)
    assert [fetched, looked_up] == errors


@pytest.mark.parametrize(
    ("generation", "answers"),
    [
        ("0.11", {5: (-1, 3), 4: (-1, -1), 6: (-1, -1)}),
        ("2.0.0", {5: (5, 3), 4: (-1, -1), 6: (-1, -1)}),
        ("2.0.1", {5: (5, 3), 4: (4, 0), 6: (-1, -1)}),
        ("4.1", {5: (5, 3), 4: (4, 0), 6: (-1, -1)}),
    ],
)
def test_each_generation_answers_a_lookup_its_own_way(generation: str, answers: dict[int, tuple[int, int]]) -> None:
    leader = Leader(GENERATIONS[generation])
    leader.produce(3)
    assert {epoch: leader.replica.judge_lookup(NO_EPOCH, epoch)[1] for epoch in answers} == answers


@pytest.mark.parametrize(("generation", "known"), [("2.0.0", False), ("2.0.1", True)])
def test_an_epoch_is_known_at_its_first_append_or_at_the_election(generation: str, known: bool) -> None:
    leader = Leader(GENERATIONS[generation])
    assert (leader.replica.judge_lookup(NO_EPOCH, 5) == (ErrorCode.NONE, EpochEnd(5, 0))) == known


def test_a_storage_that_fails_answers_whoever_wanted_records_deleted() -> None:
    leader = Leader(CURRENT, isr=(ZERO,))
    leader.produce(3)
    assert leader.replica.handle(DeleteRecordsRequested("delete", 2, 0)) == [RaiseLogStart(2, "delete_records")]
    assert leader.replica.handle(AppendFailed(5)) == [
        AnswerDeleteRecords("delete", ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET),
        ReplicaFailed(5),
    ]


@pytest.mark.parametrize(("checks", "reached", "error"), [
    (True, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (False, 2, ErrorCode.NONE),
])  # fmt: skip
def test_a_fetch_of_a_followers_earlier_life_acknowledges_nothing(
    checks: bool, reached: Offset, error: ErrorCode
) -> None:
    leader = Leader(replace(CURRENT, broker_epoch_check=checks), isr=(ZERO, ONE))
    leader.produce()
    leader.fetch(ONE, 1, broker_epoch=5)
    leader.hear_of(*ALL, epoch=6)
    leader.produce()
    assert leader.answer(ONE, 2, broker_epoch=5).error is error
    assert leader.watermark == reached
