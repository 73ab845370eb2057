"""Text 1: a walk through the code of replication, flushing, and two failures. One test or more for each row."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.files import Disk
from harness.broker.ledger import lose_power
from harness.broker.segments import Batches, LogPolicy, SegmentLog
from harness.broker.settings import NEVER, Settings
from harness.error_codes import ErrorCode
from harness.history.schema import REPLICA_LOGS
from harness.model import NO_EPOCH, Offset
from harness.replication.epochs import UNDEFINED, LeaderEpochCache
from harness.replication.messages import (
    AppendFailed,
    BatchSpan,
    EpochEnd,
    EpochEndAnswered,
    EpochEntry,
    FetchAnswered,
    NextEpochLookup,
    NextFetch,
    ReplicaFailed,
    Truncate,
    Truncated,
)
from harness.wire import batches as wire
from tests.seeds import served
from tests.seeds.clusters import (
    ALL_GENERATIONS,
    ONE,
    TWO,
    ZERO,
    Ends,
    a_replica,
    cluster,
    come_back,
    crash,
    elect,
    ends,
    fetch,
    is_kind,
    knobs_of,
    leads,
    logs,
    power_loss_of_both,
    replicate,
    restart_then_leader_death,
    stamped,
    values,
)
from tests.seeds.witnessed import seeds_until

LOOKUP_GENERATIONS = ("0.11", "2.0.0", "2.0.1", "2.1")
"""Those whose followers ask with OffsetForLeaderEpoch before they fetch."""

# ---------------------------------------------------------------------------------------------------- three numbers


def test_s1_1_every_record_bears_the_epoch_of_the_leader_that_wrote_it() -> None:
    world = cluster(nodes=3)
    world.produce(ZERO, "m0")
    replicate(world)
    crash(world, ZERO)
    world.produce(ONE, "m1")
    come_back(world, ZERO)
    assert logs(world) == [["m0@0", "m1@1"]] * 3


def test_s1_1_a_leader_writes_its_epoch_into_a_batch_without_touching_the_checksum() -> None:
    batch = bytearray(wire.build([b"a"]))
    wire.patch(batch, 0, 7, 3)
    [header] = wire.headers(batch)
    assert (header.base_offset, header.leader_epoch, wire.verify(batch, header)) == (7, 3, True)
    assert "leader_epoch" in {column.name for column in REPLICA_LOGS.columns}


def test_s1_4_a_leader_takes_the_greater_and_a_follower_the_lesser() -> None:
    world = cluster()
    world.produce(ZERO, "m0")
    replicate(world)
    assert [ends(world, node).high_watermark for node in (ZERO, ONE)] == [1, 1]


def test_s1_4_a_follower_bounded_by_its_own_watermark_never_leaves_0() -> None:
    world = cluster(follower_hw_rule="own")
    world.produce(ZERO, "m0")
    replicate(world, rounds=9)
    assert [ends(world, node).high_watermark for node in (ZERO, ONE)] == [1, 0]
    crash(world, ZERO)
    assert world.leader == ONE


def test_s1_4_the_witness_sees_that_such_followers_never_agree_with_their_leader() -> None:
    assert seeds_until("T13", follower_hw_rule="own") == 1


def test_s1_5_the_walk_through_with_its_numbers_event_by_event() -> None:
    world = cluster()
    leader = world.replica(ZERO)
    steps: list[tuple[Offset, Offset, Ends, Ends]] = []

    def see(before: Offset) -> None:
        """The leader's watermark before, the least log end (a follower never heard of counts as 0), and all ends."""
        remote = max(leader.remote_log_end_offsets[ONE], 0)
        least = min(leader.log_end_offset, remote)
        assert leader.high_watermark == max(before, least)
        steps.append((before, least, ends(world, ZERO), ends(world, ONE)))

    for event in ("produce", "fetch 0", "fetch 1", "fetch 1 again"):
        before = leader.high_watermark
        if event == "produce":
            world.produce(ZERO, "m0")
        else:
            fetch(world, ONE)
        see(before)
    assert steps == [
        (0, 0, (1, 0), (0, 0)),  # max(0, min(0)) = 0
        (0, 0, (1, 0), (1, 0)),  # min(0, 1) = 0 at the follower
        (0, 1, (1, 1), (1, 0)),  # max(0, min(1)) = 1 at the leader; its answer still said 0
        (1, 1, (1, 1), (1, 1)),  # min(1, 1) = 1 at the follower
    ]


def test_s1_6_a_commit_needs_the_whole_in_sync_set_and_a_majority_is_not_enough() -> None:
    world = cluster(nodes=5)
    produced = world.produce(ZERO, "m0")
    replicate(world, *world.alive[1:4])
    assert not produced.acknowledged
    replicate(world)
    assert produced.acknowledged


def test_s1_6_an_in_sync_set_of_one_commits_alone() -> None:
    world = cluster(nodes=5)
    for node in world.alive[1:]:
        crash(world, node)
    assert world.produce(ZERO, "m0").acknowledged


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s1_7_below_the_minimum_only_acks_all_is_refused(generation: str) -> None:
    world = cluster(generation, 2, min_isr=2)
    world.produce(ZERO, "m0")
    replicate(world)
    crash(world, ONE)
    refused, taken = world.produce(ZERO, "m1"), world.produce(ZERO, "m2", acks=1)
    assert refused.answer is not None
    assert refused.answer.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert taken.acknowledged
    assert values(world, ZERO) == ["m0", "m2"]
    is_frozen = ALL_GENERATIONS.index(generation) >= ALL_GENERATIONS.index("3.7")
    assert world.replica(ZERO).read_bound(None) == (1 if is_frozen else 2)


# ------------------------------------------------------------------------------------------------- flush and fsync


def test_s1_2_nothing_is_flushed_by_number_or_by_time_unless_asked_for() -> None:
    settings = Settings()
    assert settings.log_flush_interval_messages == settings.log_flush_interval_ms == NEVER
    asked = Settings.parse({"log.flush.interval.messages": 10_000, "log.flush.interval.ms": "1000"})
    assert (asked.log_flush_interval_messages, asked.log_flush_interval_ms) == (10_000, 1_000)


@pytest.mark.parametrize(("every", "flushed"), [(NEVER, 0), (2, 2), (1, 3)])
def test_s1_2_a_log_is_flushed_when_so_many_records_are_not(tmp_path: Path, every: int, flushed: int) -> None:
    assert log_with_three_records(tmp_path, every).recovery_point == flushed


@pytest.mark.parametrize(("every", "kept"), [(NEVER, 0), (2, 2), (1, 3)])
def test_s1_3_killing_a_process_loses_nothing_and_losing_power_what_was_not_flushed(
    tmp_path: Path, every: int, kept: int
) -> None:
    log_with_three_records(tmp_path, every)
    assert reopened(tmp_path).log_end_offset == 3
    again = tmp_path / "again"
    log_with_three_records(again, every)
    lose_power(again)
    assert reopened(again).log_end_offset == kept


def log_with_three_records(root: Path, flush_every: int) -> SegmentLog:
    """One batch each, written by a process that is never heard of again."""
    log = SegmentLog(Disk(root), "t-0", LogPolicy(1 << 20, 1 << 40, flush_every))
    for offset in range(3):
        batch = memoryview(bytearray(wire.build([b"v"])))
        log.append(Batches(batch, wire.headers(batch)), [BatchSpan(offset, offset + 1, 0)])
    return log


def reopened(root: Path) -> SegmentLog:
    return SegmentLog(Disk(root), "t-0", LogPolicy(1 << 20, 1 << 40, NEVER))


# ------------------------------------------------------------------------------------------------- the two failures


def test_s1_8_in_0_10_a_watermark_lost_in_a_restart_loses_the_record() -> None:
    world = restart_then_leader_death("0.10")
    assert world.lost() == ["m2"]
    assert stamped(world, ONE) == ["m1@0"]


def test_s1_9_cutting_to_the_leader_s_watermark_mends_the_first_failure_and_not_the_second() -> None:
    mended = restart_then_leader_death("0.10", truncation="leader_hw")
    replicate(mended)
    assert (mended.lost(), mended.diverged()) == ([], [])
    world = power_loss_of_both("0.10", truncation="leader_hw")
    assert [values(world, node) for node in (ZERO, ONE)] == [["m1", "m2"], ["m1", "m3"]]
    assert world.diverged() == [1]


def test_s1_9_the_witness_finds_logs_that_differ_by_it() -> None:
    assert seeds_until("R1", truncation="leader_hw") is not None


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s1_10_with_epochs_the_follower_keeps_what_the_first_failure_lost(generation: str) -> None:
    world = restart_then_leader_death(generation)
    replicate(world)
    assert [values(world, node) for node in (ZERO, ONE)] == [["m1", "m2"]] * 2
    assert world.lost() == []


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s1_11_with_epochs_the_second_failure_leaves_equal_logs(generation: str) -> None:
    world = power_loss_of_both(generation)
    assert [values(world, node) for node in (ZERO, ONE)] == [["m1", "m3"]] * 2
    assert world.diverged() == []


def test_s1_11_the_answer_about_epoch_0_names_epoch_0_and_not_1() -> None:
    world = power_loss_of_both("2.0.0")
    assert world.replica(ONE).end_offset_for(0) == EpochEnd(0, 1)


# ------------------------------------------------------------------------------------- first truncate, then fetch


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s1_12_a_follower_truncates_before_it_fetches(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=1, epochs=[EpochEntry(0, 0)])
    effects = follower.handle(leads(ONE, ZERO, ONE, epoch=2))
    if generation == "0.10":
        assert effects == [Truncate(1, "high_watermark")]
        return
    assert effects == []
    carried = 2 if follower._knobs.fetch_fencing else NO_EPOCH
    asked = NextEpochLookup(ONE, carried, 0) if generation in LOOKUP_GENERATIONS else NextFetch(ONE, 2, 3, 0)
    assert follower.next_request() == asked


@pytest.mark.parametrize("generation", LOOKUP_GENERATIONS)
def test_s1_12_a_follower_without_epochs_truncates_to_its_watermark(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=1)
    assert Truncate(1, "high_watermark") in follower.handle(leads(ONE, ZERO, ONE, epoch=2))
    follower.handle(Truncated(1))
    assert isinstance(follower.next_request(), NextFetch)


@pytest.mark.parametrize("generation", LOOKUP_GENERATIONS)
def test_s1_12_when_the_answer_is_obeyed_the_follower_fetches(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=1, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE, epoch=2))
    assert follower.handle(epoch_end(follower.next_request(), EpochEnd(0, 2))) == [Truncate(2, "epoch_end")]
    follower.handle(Truncated(2))
    wanted = follower.next_request()
    assert isinstance(wanted, NextFetch)
    assert wanted.fetch_offset == 2


@pytest.mark.parametrize("generation", LOOKUP_GENERATIONS)
def test_s1_13_an_answer_that_outlived_its_epoch_truncates_nothing(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=1, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE, TWO, epoch=2))
    late = epoch_end(follower.next_request(), EpochEnd(0, 0))
    follower.handle(leads(TWO, ZERO, ONE, TWO, epoch=3))
    assert follower.handle(late) == []
    follower.handle(leads(ZERO, ZERO, ONE, TWO, epoch=4))
    assert follower.handle(late) == []
    assert (follower.role, follower.log_end_offset) == ("leader", 3)


def leader_that_hears_a_late_answer(*, applied: bool) -> list[str]:
    """The log of a leader that gets, after its election, the answer to a fetch that it made as a follower."""
    world = cluster(nodes=3, stale_truncation_applied=applied)
    world.produce(ZERO, "m0")
    replicate(world)
    world.produce(ZERO, "u1", acks=1)
    fetch(world, ONE)
    world.kill(ZERO)
    elect(world, TWO, ONE, TWO)
    world.produce(TWO, "n1", acks=1)
    world.fetch(ONE)
    world.settle(is_kind("fetch-response"))
    world.impose(ONE, 2, (ONE, TWO))
    world.settle(is_kind("fetch-response"))
    assert world.replica(ONE).role == "leader"
    world.settle()
    return values(world, ONE)


def test_s1_13_a_leader_that_skips_the_recheck_cuts_its_own_log() -> None:
    assert leader_that_hears_a_late_answer(applied=False) == ["m0", "u1"]
    assert leader_that_hears_a_late_answer(applied=True) == ["m0"]


@pytest.mark.parametrize("generation", LOOKUP_GENERATIONS)
@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_s1_14_an_error_instead_of_an_end_truncates_nothing_and_is_asked_again(
    generation: str, error: ErrorCode
) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=1, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE, epoch=2))
    asked = follower.next_request()
    assert follower.handle(epoch_end(asked, UNDEFINED, error)) == []
    assert (follower.log_end_offset, follower.next_request()) == (3, asked)


def test_s1_14_a_replica_that_cannot_answer_says_why() -> None:
    follower, failed = a_replica(), a_replica()
    follower.handle(leads(ONE, ZERO, ONE))
    failed.handle(AppendFailed(5))
    assert follower.leader_error(NO_EPOCH) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert failed.leader_error(NO_EPOCH) is ErrorCode.KAFKA_STORAGE_ERROR


def test_s1_14_its_handler_says_so_with_undefined_ends() -> None:
    cluster = served.started()
    served.produce(cluster, 0, acks=-1)
    assert served.epoch_end(cluster, "0", served.TOPIC, 0) == (ErrorCode.NONE, 0, 1)
    assert served.epoch_end(cluster, "1", served.TOPIC, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
    assert served.epoch_end(cluster, "0", "unheard-of", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


# ------------------------------------------------------------------------------------------- where an epoch ends


@pytest.mark.parametrize("below", ["undefined", "start_of_first"])
@given(log=st.lists(st.integers(0, 8), max_size=30).map(sorted), requested=st.integers(-1, 10))
def test_s1_15_the_end_of_an_epoch_is_what_reading_the_whole_log_would_say(
    below: str, log: list[int], requested: int
) -> None:
    cache = LeaderEpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    assert end_offset_for(cache, requested, len(log), below) == read_whole(log, requested, below)


def read_whole(log: list[int], requested: int, below: str) -> EpochEnd:
    """``log`` holds each record's epoch: the last one not above the requested, and what follows it."""
    if not log or requested < 0 or requested > log[-1]:
        return UNDEFINED
    older = [*takewhile(lambda epoch: epoch <= requested, log)]
    if older:
        return EpochEnd(older[-1], len(older))
    return EpochEnd(requested, 0) if below == "start_of_first" else UNDEFINED


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (2, EpochEnd(2, 50)),
        (3, EpochEnd(3, 70)),
        (4, EpochEnd(4, 80)),
        (5, UNDEFINED),
        (-1, UNDEFINED),
    ],
)
@pytest.mark.parametrize("below", ["undefined", "start_of_first"])
def test_s1_16_epochs_that_start_at_30_50_and_70_end_at_50_at_70_and_at_the_log_s_end(
    requested: int, answer: EpochEnd, below: str
) -> None:
    cache = LeaderEpochCache([EpochEntry(2, 30), EpochEntry(3, 50), EpochEntry(4, 70)])
    assert end_offset_for(cache, requested, 80, below) == answer


@pytest.mark.parametrize(("below", "answer"), [("undefined", UNDEFINED), ("start_of_first", EpochEnd(1, 30))])
def test_s1_16_an_older_epoch_than_all_ends_nowhere_before_2_0_1_and_then_at_the_first(
    below: str, answer: EpochEnd
) -> None:
    cache = LeaderEpochCache([EpochEntry(2, 30), EpochEntry(3, 50), EpochEntry(4, 70)])
    assert end_offset_for(cache, 1, 80, below) == answer


# --------------------------------------------------------------------------------------------- answers and errors


def test_s1_17_an_answer_to_another_offset_than_the_one_asked_for_is_dropped() -> None:
    follower = a_replica(end=3, watermark=3, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    for offset in (0, 2, 4):
        assert follower.handle(answered(offset, BatchSpan(offset, offset + 1, 0))) == []
    assert follower.next_request() == NextFetch(ONE, 0, 3, 0)


def test_s1_17_an_answer_that_comes_twice_is_appended_once() -> None:
    world = cluster()
    world.produce(ZERO, "m0")
    world.fetch(ONE)
    world.settle(is_kind("fetch-response"))
    [response] = world.in_flight
    world.settle()
    response.arrive()
    assert values(world, ONE) == ["m0"]


def test_s1_18_batches_that_do_not_continue_the_log_are_left_alone_and_asked_for_again() -> None:
    follower = a_replica(end=3, watermark=3, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    asked = follower.next_request()
    assert follower.handle(answered(3, BatchSpan(2, 5, 0))) == []
    assert (follower.role, follower.next_request()) == ("follower", asked)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_s1_18_after_a_refusal_the_follower_asks_again(error: ErrorCode) -> None:
    follower = a_replica(end=3, watermark=3, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    asked = follower.next_request()
    assert follower.handle(answered(3, error=error)) == []
    assert (follower.role, follower.log_end_offset, follower.next_request()) == ("follower", 3, asked)


def test_s1_18_a_replica_whose_disk_fails_stops_replicating_for_good() -> None:
    follower = a_replica()
    follower.handle(leads(ONE, ZERO, ONE))
    follower.handle(answered(0, BatchSpan(0, 1, 0)))
    assert any(isinstance(effect, ReplicaFailed) for effect in follower.handle(AppendFailed(5)))
    follower.handle(leads(TWO, ZERO, ONE, TWO, epoch=1))
    assert (follower.role, follower.next_request()) == ("offline", None)


def test_s1_18_a_follower_that_is_silent_is_seen_by_its_leader_as_not_in_sync() -> None:
    world = cluster(nodes=3)
    world.brokers[TWO].disk_full = True
    world.produce(ZERO, "m0")
    fetch(world, ONE, TWO)
    world.tick(2_500)
    fetch(world, ONE)
    world.tick(2_500)
    world.settle()
    assert TWO not in world.replica(ZERO).isr


def end_offset_for(cache: LeaderEpochCache, requested: int, log_end_offset: Offset, below: str) -> EpochEnd:
    """What a replica with these epochs answers, by the knob ``lookup_below_first``."""
    return a_replica(knobs_of(lookup_below_first=below), end=log_end_offset, epochs=cache.entries).end_offset_for(
        requested
    )


def epoch_end(
    asked: NextFetch | NextEpochLookup | None, end: EpochEnd, error: ErrorCode = ErrorCode.NONE
) -> EpochEndAnswered:
    """The leader's answer to what the follower ``asked``."""
    assert isinstance(asked, NextEpochLookup)
    return EpochEndAnswered(asked.leader, asked.leader_epoch, asked.requested_epoch, error, end, 0)


def answered(fetch_offset: Offset, *spans: BatchSpan, error: ErrorCode = ErrorCode.NONE) -> FetchAnswered:
    """Replica 1's answer to a fetch, in epoch 0."""
    return FetchAnswered(ONE, 0, fetch_offset, error, 9, 0, 9, None, spans, b"", 0)
