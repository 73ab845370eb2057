"""What the stories do not tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NodeId, TopicPartition
from harness.replication.knobs import GENERATIONS, Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    BatchSpan,
    CheckpointEpochs,
    EpochEnd,
    EpochEntry,
    FetchAnswered,
    FetchReceived,
    HighWatermarkAdvanced,
    LogStartedAt,
    LogStartRaised,
    NextFetch,
    PartitionStateChanged,
    ProduceExpired,
    ProduceRequested,
    RaiseLogStart,
    ReplicaFailed,
    RetentionReached,
    StartLogAt,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica, ReplicaConfig

ZERO, ONE, TWO = NodeId(0), NodeId(1), NodeId(2)
LEADING = PartitionStateChanged(ZERO, 5, (ZERO, ONE), (ZERO, ONE), 7, 0)
FOLLOWING = PartitionStateChanged(ONE, 5, (ZERO, ONE), (ZERO, ONE), 7, 0)


def a_replica(
    generation: str = "3.7",
    *,
    end: int = 0,
    watermark: int = 0,
    start: int = 0,
    epochs: Iterable[EpochEntry] = (),
    knobs: Knobs | None = None,
) -> Replica:
    return Replica(
        ZERO,
        TopicPartition("ledger", 0),
        knobs or GENERATIONS[generation],
        ReplicaConfig(
            min_insync_replicas=1,
            replica_lag_time_max_ms=2_000,
        ),
        StoredLog(
            log_start_offset=start,
            log_end_offset=end,
            epoch_entries=epochs,
            high_watermark=watermark,
        ),
    )


def fetch(offset: int, *, replica: NodeId = ONE, epoch: int = 5, last: int = NO_EPOCH) -> FetchReceived:
    return FetchReceived("fetch", replica, offset, epoch, last, 1)


def answered(offset: int, *spans: BatchSpan, diverging: EpochEnd | None = None) -> FetchAnswered:
    return FetchAnswered(ONE, 5, offset, ErrorCode.NONE, 100, 0, 100, diverging, spans, "bytes", 1)


@pytest.mark.parametrize(("checkpointed", "clipped"), [(0, 10), (10, 10), (15, 15), (20, 20), (99, 20)])
def test_a_checkpointed_watermark_is_clipped_to_the_log(checkpointed: int, clipped: int) -> None:
    assert a_replica(start=10, end=20, watermark=checkpointed).high_watermark == clipped


def test_before_the_controllers_first_word_nothing_is_served_and_nobody_followed() -> None:
    replica = a_replica()
    assert replica.next_request() is None
    assert replica.handle(ProduceRequested("p", 1, (1,), b"", 0)) == [
        AnswerProduce("p", ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    ]
    [answer] = replica.handle(fetch(0, epoch=NO_EPOCH))
    assert isinstance(answer, AnswerFetch)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("generation", "carried"), [("0.10", NextFetch(ONE, -1, 4, -1)), ("3.7", NextFetch(ONE, 5, 4, 3))]
)
def test_a_fetch_carries_the_epochs_its_generation_knows(generation: str, carried: NextFetch) -> None:
    replica = a_replica(generation, end=4, watermark=4, epochs=[EpochEntry(3, 0)])
    replica.handle(FOLLOWING)
    assert replica.next_request() == carried


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (fetch(0, epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(0, epoch=6), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(0, last=9), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(0, replica=TWO), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(0, replica=TWO, epoch=NO_EPOCH), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (fetch(0, replica=ZERO, epoch=NO_EPOCH), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_refused_fetch_is_no_progress(request_: FetchReceived, error: ErrorCode) -> None:
    leader = a_replica()
    leader.handle(LEADING)
    [answer] = leader.handle(request_)
    assert isinstance(answer, AnswerFetch)
    assert answer.error is error
    assert leader.remote_log_end_offsets == {ONE: -1}


def test_judging_a_fetch_again_changes_nothing_and_sees_the_new_watermark() -> None:
    leader = a_replica()
    leader.handle(LEADING)
    leader.handle(ProduceRequested("p", 1, (3,), b"", 0))
    leader.handle(Appended(0))
    assert leader.judge_fetch(fetch(3)).high_watermark == 0
    assert leader.remote_log_end_offsets == {ONE: -1}
    leader.handle(fetch(3))
    assert leader.judge_fetch(fetch(3)).high_watermark == 3
    assert leader.read_bound(None) == 3


def test_consumers_read_below_the_watermark_and_replicas_to_the_end() -> None:
    replica = a_replica(end=9, watermark=4)
    assert (replica.read_bound(None), replica.read_bound(ONE)) == (4, 9)


def test_a_request_with_another_leader_epoch_is_refused_by_name() -> None:
    leader = a_replica()
    assert leader.leader_error(NO_EPOCH) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader.handle(LEADING)
    errors = [leader.leader_error(epoch) for epoch in (NO_EPOCH, 4, 5, 6)]
    assert errors == [
        ErrorCode.NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]


@pytest.mark.parametrize(
    "state",
    [
        replace(LEADING, leader=ONE, partition_epoch=8),
        replace(LEADING, isr=(ZERO,)),
        replace(LEADING, leader_epoch=4, partition_epoch=9),
        replace(LEADING, leader_epoch=6, partition_epoch=6),
        replace(LEADING, leader_epoch=6, isr=(ONE,)),
        replace(LEADING, leader_epoch=6, isr=(ZERO, ZERO)),
        replace(LEADING, leader_epoch=6, isr=(ZERO, TWO)),
    ],
    ids=["two leaders", "same version", "older epoch", "older version", "leader out of sync", "twice", "stranger"],
)  # fmt: skip
def test_a_stale_or_senseless_state_is_ignored(state: PartitionStateChanged) -> None:
    replica = a_replica()
    replica.handle(LEADING)
    assert replica.handle(state) == []
    assert (replica.role, replica.leader_epoch, replica.partition_epoch, replica.isr) == ("leader", 5, 7, (ZERO, ONE))


def test_truncation_of_a_whole_batch_takes_the_watermark_along() -> None:
    replica = a_replica(end=10, watermark=8, epochs=[EpochEntry(0, 0), EpochEntry(3, 7)])
    replica.handle(FOLLOWING)
    assert replica.handle(answered(10, diverging=EpochEnd(3, 8))) == [Truncate(8, "diverging_epoch")]
    assert replica.handle(Truncated(6)) == [CheckpointEpochs((EpochEntry(0, 0),))]
    assert (replica.log_end_offset, replica.high_watermark) == (6, 6)
    assert replica.next_request() == NextFetch(ONE, 5, 6, 0)


def test_the_watermark_of_a_diverging_answer_is_not_taken() -> None:
    replica = a_replica(end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    replica.handle(answered(10, diverging=EpochEnd(0, 8)))
    replica.handle(Truncated(8))
    assert replica.high_watermark == 3


@pytest.mark.parametrize(
    "answer",
    [
        answered(9),
        replace(answered(10), leader=TWO),
        replace(answered(10), leader_epoch=4),
        replace(answered(10), error=ErrorCode.FENCED_LEADER_EPOCH),
        answered(10, BatchSpan(9, 11, 5)),
        answered(10, BatchSpan(10, 10, 5)),
        answered(10, BatchSpan(10, 12, 5), BatchSpan(11, 13, 5)),
    ],
)
def test_an_answer_to_another_fetch_or_one_that_does_not_continue_the_log_is_ignored(answer: FetchAnswered) -> None:
    replica = a_replica(end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    assert replica.handle(answer) == []
    assert (replica.log_end_offset, replica.high_watermark) == (10, 3)


def test_a_followers_watermark_never_passes_its_own_end() -> None:
    replica = a_replica(end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    assert replica.handle(answered(10, BatchSpan(10, 12, 5))) == [Append("bytes", (BatchSpan(10, 12, 5),))]
    replica.handle(Appended(2))
    assert replica.high_watermark == 12


@pytest.mark.parametrize(("rule", "watermark"), [("leader", 8), ("own", 3)])
def test_a_followers_watermark_follows_the_leaders_or_stays_where_it_was(rule: str, watermark: int) -> None:
    knobs = replace(GENERATIONS["4.1"], follower_hw_rule=rule)  # type: ignore[arg-type]
    replica = a_replica(knobs=knobs, end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    replica.handle(replace(answered(10), high_watermark=8))
    assert replica.high_watermark == watermark


@pytest.mark.parametrize(("bug", "exposed"), [(False, []), (True, [HighWatermarkAdvanced(10)])])
def test_the_watermark_of_a_diverging_answer_exposes_the_tail_only_with_the_bug(
    bug: bool, exposed: list[HighWatermarkAdvanced]
) -> None:
    knobs = replace(GENERATIONS["4.1"], hw_from_diverging=bug)
    replica = a_replica(knobs=knobs, end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    effects = replica.handle(answered(10, diverging=EpochEnd(0, 8)))
    assert effects == [*exposed, Truncate(8, "diverging_epoch")]


@pytest.mark.parametrize(("fenced", "leader"), [(True, ZERO), (False, ONE)])
def test_the_word_of_an_older_controller_counts_only_without_fencing(fenced: bool, leader: NodeId) -> None:
    replica = a_replica(knobs=replace(GENERATIONS["4.1"], controller_epoch_fencing=fenced))
    replica.handle(replace(LEADING, controller_epoch=4))
    replica.handle(replace(FOLLOWING, leader_epoch=6, partition_epoch=8, controller_epoch=3))
    assert replica.leader == leader


@pytest.mark.parametrize(("before", "to"), [(2, 2), (5, 3), (9, 3)])
def test_retention_stops_at_the_watermark_on_followers_too(before: int, to: int) -> None:
    replica = a_replica(end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    replica.handle(FOLLOWING)
    assert replica.handle(RetentionReached(before, 1)) == [RaiseLogStart(to, "retention")]
    assert replica.handle(LogStartRaised(to)) == [CheckpointEpochs((EpochEntry(0, to),))]
    assert replica.handle(RetentionReached(before, 2)) == []


def test_a_log_that_the_leader_does_not_reach_back_to_starts_anew() -> None:
    replica = a_replica(start=5, end=10, watermark=8, epochs=[EpochEntry(0, 5)])
    replica.handle(FOLLOWING)
    out_of_range = replace(answered(10), error=ErrorCode.OFFSET_OUT_OF_RANGE, log_end_offset=2)
    assert replica.handle(out_of_range) == [StartLogAt(2, "out_of_range")]
    assert replica.handle(LogStartedAt(2)) == [CheckpointEpochs(())]
    assert (replica.log_start_offset, replica.log_end_offset, replica.high_watermark) == (2, 2, 2)


@pytest.mark.parametrize("counts", [(), (0,), (3, -1)])
def test_a_produce_without_records_is_refused(counts: tuple[int, ...]) -> None:
    leader = a_replica()
    leader.handle(LEADING)
    assert leader.handle(ProduceRequested("p", 1, counts, b"", 0)) == [
        AnswerProduce("p", ErrorCode.INVALID_REQUEST, -1)
    ]


def test_shared_storage_that_fails_ends_the_replica_and_answers_everybody() -> None:
    leader = a_replica()
    leader.handle(LEADING)
    leader.handle(ProduceRequested("p", -1, (1,), b"", 0))
    leader.handle(Appended(0))
    assert leader.handle(AppendFailed(5)) == [
        AnswerProduce("p", ErrorCode.KAFKA_STORAGE_ERROR, -1),
        ReplicaFailed(5),
    ]
    assert leader.handle(AppendFailed(5)) == []
    assert leader.role == "offline"
    assert leader.handle(replace(FOLLOWING, leader_epoch=6)) == []
    assert leader.handle(ProduceRequested("p", 1, (1,), b"", 0)) == [
        AnswerProduce("p", ErrorCode.KAFKA_STORAGE_ERROR, -1)
    ]
    assert leader.leader_error(NO_EPOCH) is ErrorCode.KAFKA_STORAGE_ERROR


def test_an_answered_produce_does_not_expire() -> None:
    leader = a_replica()
    leader.handle(LEADING)
    leader.handle(ProduceRequested("p", 1, (1,), b"", 0))
    leader.handle(Appended(0))
    assert leader.handle(ProduceExpired("p")) == []


@pytest.mark.parametrize("generation", GENERATIONS)
def test_only_the_oldest_generation_cuts_to_its_watermark_on_start(generation: str) -> None:
    replica = a_replica(generation, end=10, watermark=3, epochs=[EpochEntry(0, 0)])
    effects = replica.handle(FOLLOWING)
    assert (Truncate(3, "high_watermark") in effects) == (generation == "0.10")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_log_without_epochs_is_cut_to_its_watermark_in_every_generation(generation: str) -> None:
    replica = a_replica(generation, end=10, watermark=3)
    assert replica.handle(FOLLOWING) == [Truncate(3, "high_watermark")]
    replica.handle(Truncated(3))
    wanted = replica.next_request()
    assert isinstance(wanted, NextFetch)
    assert wanted.fetch_offset == 3


def test_a_leader_of_the_oldest_generation_that_leads_again_after_none_keeps_its_log() -> None:
    replica = a_replica("0.10", end=10, watermark=3)
    replica.handle(LEADING)
    replica.handle(PartitionStateChanged(NodeId(-1), 6, (ZERO,), (ZERO, ONE), 8, 0))
    assert replica.next_request() is None
    assert replica.handle(PartitionStateChanged(ZERO, 7, (ZERO, ONE), (ZERO, ONE), 9, 0)) == []
    assert (replica.role, replica.log_end_offset) == ("leader", 10)
