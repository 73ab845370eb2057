"""Text 0: a lecture on the high watermark and the leader epoch. One test or more for each of its rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, Link, Offset
from harness.replication.epochs import LeaderEpochCache
from harness.replication.log_state import LogState, StoredLog
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    BatchSpan,
    CheckpointEpochs,
    EpochEnd,
    EpochEntry,
    FetchAnswered,
    FetchReceived,
    HighWatermarkAdvanced,
    NextFetch,
    ProduceRequested,
    Truncate,
)
from harness.replication.replica import Replica
from tests.seeds import served
from tests.seeds.clusters import (
    ALL_GENERATIONS,
    ONE,
    TWO,
    ZERO,
    Ends,
    Heard,
    a_replica,
    cluster,
    come_back,
    crash,
    ends,
    fetch,
    fetch_unheard,
    is_kind,
    knobs_of,
    leads,
    logs,
    replicate,
    restart_then_leader_death,
    two_leaders_die,
    values,
    watermark_behind,
    write,
)
from tests.seeds.witnessed import seeds_until

# ------------------------------------------------------------------------------------- what the high watermark is


@pytest.mark.parametrize("ms", [-3_600_000, 3_600_000])
def test_s0_1_a_clock_that_jumps_an_hour_moves_no_watermark(ms: int) -> None:
    world = cluster(nodes=3)
    world.produce(ZERO, "m0")
    replicate(world)
    world.produce(ZERO, "m1")
    fetch(world, ONE)
    for node in world.alive:
        world.step_clock(node, ms)
    world.tick(0)
    world.settle(is_kind("isr-request"))
    assert [ends(world, node).high_watermark for node in world.alive] == [1, 1, 1]


def test_s0_2_the_watermark_bounds_what_consumers_read_and_not_what_followers_do() -> None:
    replica = a_replica(end=5, watermark=2)
    assert (replica.read_bound(None), replica.read_bound(ONE)) == (2, 5)


def test_s0_2_where_replicas_part_is_told_by_the_watermark_in_0_10_only() -> None:
    cuts = {}
    for generation in ALL_GENERATIONS:
        replica = a_replica(knobs_of(generation), end=5, watermark=2, epochs=[EpochEntry(0, 0)])
        cuts[generation] = Truncate(2, "high_watermark") in replica.handle(leads(ONE, ZERO, ONE))
    assert [generation for generation, cut in cuts.items() if cut] == ["0.10"]


def test_s0_3_of_15_records_with_the_watermark_at_8_those_from_0_to_7_are_visible() -> None:
    replica = a_replica(end=15, watermark=8)
    visible = range(replica.log_start_offset, replica.read_bound(None))
    uncommitted = range(replica.read_bound(None), replica.log_end_offset)
    assert [*visible] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [*uncommitted] == [8, 9, 10, 11, 12, 13, 14]


@given(st.integers(0, 20), st.integers(0, 20), st.lists(st.integers(-5, 40)))
def test_s0_3_no_watermark_leaves_its_log(start: Offset, length: int, targets: list[Offset]) -> None:
    log = LogState(StoredLog(start, start + length, [], 0))
    for target in targets:
        log.move_high_watermark(target)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_3_a_broker_gives_a_consumer_exactly_those(generation: str) -> None:
    partition = served.fetch(served.fifteen_records(generation), "0", 0)
    assert served.offsets(partition) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert partition.high_watermark == 8


@pytest.mark.parametrize("offset", [8, 14])
def test_s0_3_from_the_watermark_on_a_broker_gives_nothing_and_it_is_no_error(offset: Offset) -> None:
    partition = served.fetch(served.fifteen_records(), "0", offset)
    assert (served.offsets(partition), partition.error_code) == ([], 0)


def test_s0_4_without_transactions_the_last_stable_offset_is_the_watermark() -> None:
    partition = served.fetch(served.fifteen_records(), "0", 0, committed=True)
    assert served.offsets(partition) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert (partition.last_stable_offset, partition.high_watermark) == (8, 8)
    assert not partition.aborted_transactions


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_5_the_end_that_consumers_are_told_is_the_leader_s_watermark(generation: str) -> None:
    found = served.latest(served.fifteen_records(generation), "0")
    assert (found.error_code, found.offset) == (0, 8)


def test_s0_5_with_another_leader_the_partition_s_watermark_may_fall() -> None:
    world = cluster(nodes=3)
    world.produce(ZERO, "m1")
    replicate(world)
    world.produce(ZERO, "m2")
    fetch(world, ONE, TWO)
    fetch_unheard(world, ONE, TWO)
    assert ends(world, ZERO) == (2, 2)
    crash(world, ZERO)
    assert (world.replica(ONE).role, ends(world, ONE)) == ("leader", (2, 1))
    replicate(world)
    assert ends(world, ONE) == (2, 2)


def test_s0_6_a_leader_knows_where_its_followers_logs_end_and_nothing_of_their_watermarks() -> None:
    worlds = [cluster(), cluster()]
    for world, last_fetch in zip(worlds, (fetch, fetch_unheard), strict=True):
        world.produce(ZERO, "m0")
        fetch(world, ONE, ONE)
        last_fetch(world, ONE)
    told, untold = worlds
    assert (ends(told, ONE), ends(untold, ONE)) == ((1, 1), (1, 0))
    assert told.replica(ZERO).remote_log_end_offsets == untold.replica(ZERO).remote_log_end_offsets == {ONE: 1}
    asked = told.replica(ONE).next_request()
    assert isinstance(asked, NextFetch)
    assert asked.high_watermark == NO_OFFSET


# --------------------------------------------------------------------------------------- who updates what, and when


def test_s0_7_a_follower_s_log_end_moves_when_its_disk_says_so() -> None:
    follower = a_replica()
    follower.handle(leads(ONE, ZERO, ONE))
    span = batch(0, 3)
    [append] = follower.handle(answer(0, span))
    assert isinstance(append, Append)
    assert follower.log_end_offset == 0
    follower.handle(Appended(1))
    assert follower.log_end_offset == 3


def test_s0_7_a_leader_s_log_end_moves_when_its_disk_says_so() -> None:
    leader = a_leader()
    leader.handle(ProduceRequested("p", 1, (3,), b"", 0))
    assert leader.log_end_offset == 0
    leader.handle(Appended(0))
    assert leader.log_end_offset == 3


def test_s0_7_a_remote_log_end_is_the_offset_that_the_follower_fetches_from() -> None:
    leader = a_leader()
    write(leader, 3)
    assert leader.remote_log_end_offsets == {ONE: -1}
    for offset in (0, 3):
        leader.handle(asks(offset))
        assert leader.remote_log_end_offsets == {ONE: offset}


@pytest.mark.parametrize(("leader_watermark", "taken"), [(0, 0), (2, 2), (3, 3), (9, 3)])
def test_s0_7_a_follower_s_watermark_is_the_lesser_of_its_end_and_its_leader_s_watermark(
    leader_watermark: Offset, taken: Offset
) -> None:
    follower = a_replica()
    follower.handle(leads(ONE, ZERO, ONE))
    follower.handle(answer(0, batch(0, 3), high_watermark=leader_watermark))
    assert follower.high_watermark == 0
    follower.handle(Appended(1))
    assert follower.high_watermark == taken


def test_s0_7_a_leader_s_watermark_moves_after_its_own_log_end() -> None:
    alone = a_replica()
    alone.handle(leads(ZERO, ZERO))
    assert HighWatermarkAdvanced(2) in write(alone, 2)


def test_s0_7_a_leader_s_watermark_moves_after_a_remote_log_end() -> None:
    leader = a_leader()
    assert HighWatermarkAdvanced(2) not in write(leader, 2)
    assert HighWatermarkAdvanced(1) in leader.handle(asks(1))
    assert HighWatermarkAdvanced(2) in leader.handle(asks(2))


def test_s0_10_a_fetch_is_answered_with_the_watermark_of_before_it_counted() -> None:
    leader = a_leader()
    write(leader, 1)
    answered, advanced = leader.handle(asks(1))
    assert isinstance(answered, AnswerFetch)
    assert answered.high_watermark == 0
    assert advanced == HighWatermarkAdvanced(1)


def test_s0_11_a_follower_s_watermark_may_fall() -> None:
    follower = a_replica(end=3, watermark=3, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    follower.handle(answer(follower.log_end_offset, high_watermark=1))
    assert follower.high_watermark == 1


def test_s0_11_a_leader_s_does_not_although_a_follower_starts_over() -> None:
    leader = a_leader()
    write(leader, 2)
    leader.handle(asks(2))
    leader.handle(asks(0))
    assert leader.remote_log_end_offsets == {ONE: 0}
    assert leader.high_watermark == 2


# ----------------------------------------------------------------------------------------------- the walk-throughs


def test_s0_12_one_record_and_two_replicas_event_by_event() -> None:
    world = cluster()
    trace: list[tuple[str, Ends, Ends, Offset]] = []

    def see(event: str) -> None:
        remote = world.replica(ZERO).remote_log_end_offsets[ONE]
        trace.append((event, ends(world, ZERO), ends(world, ONE), remote))

    see("at first")
    produced = world.produce(ZERO, "m0")
    see("m0 is produced")
    for number in (1, 2, 3):
        world.fetch(ONE)
        world.settle(is_kind("fetch-response"))
        see(f"the leader hears fetch {number}")
        world.settle()
        see(f"the follower hears answer {number}")
    assert trace == [
        ("at first", (0, 0), (0, 0), -1),
        ("m0 is produced", (1, 0), (0, 0), -1),
        ("the leader hears fetch 1", (1, 0), (0, 0), 0),
        ("the follower hears answer 1", (1, 0), (1, 0), 0),
        ("the leader hears fetch 2", (1, 1), (1, 0), 1),
        ("the follower hears answer 2", (1, 1), (1, 0), 1),
        ("the leader hears fetch 3", (1, 1), (1, 0), 1),
        ("the follower hears answer 3", (1, 1), (1, 1), 1),
    ]
    assert produced.acknowledged


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_12_where_fetches_wait_for_data_the_second_answer_carries_the_new_watermark(generation: str) -> None:
    cluster = served.started(generation)
    answers: list[tuple[int, Offset]] = []

    def watch(link: Link, _: memoryview) -> None:
        if link == Link("0", "1"):
            answers.append((len(answers), served.high_watermark(cluster, "1")))

    cluster.world.links.watch = watch
    served.produce(cluster, 0, acks=1)
    cluster.world.sleep_until(lambda: served.high_watermark(cluster, "1") == 1, 5)
    assert answers == [(0, 0), (1, 0)]


def test_s0_21_one_record_and_three_replicas_event_by_event() -> None:
    heard = Heard()
    world = cluster(nodes=3, tell=heard)
    heard.effects.clear()
    trace: list[tuple[str, list[Ends], list[Offset]]] = []

    def see(event: str) -> None:
        remote = world.replica(ZERO).remote_log_end_offsets
        trace.append((event, [ends(world, node) for node in (ZERO, ONE, TWO)], [remote[ONE], remote[TWO]]))

    produced = world.produce(ZERO, "m0")
    see("m0 is produced")
    for offset in (0, 1, 1):
        for node in (ONE, TWO):
            assert not produced.acknowledged or trace[3][1][0] == (1, 0)
            fetch(world, node)
            see(f"{node} fetches from {offset}")
    assert trace == [
        ("m0 is produced", [(1, 0), (0, 0), (0, 0)], [-1, -1]),
        ("1 fetches from 0", [(1, 0), (1, 0), (0, 0)], [0, -1]),
        ("2 fetches from 0", [(1, 0), (1, 0), (1, 0)], [0, 0]),
        ("1 fetches from 1", [(1, 0), (1, 0), (1, 0)], [1, 0]),
        ("2 fetches from 1", [(1, 1), (1, 0), (1, 0)], [1, 1]),
        ("1 fetches from 1", [(1, 1), (1, 1), (1, 0)], [1, 1]),
        ("2 fetches from 1", [(1, 1), (1, 1), (1, 1)], [1, 1]),
    ]
    answered = [(who, type(effect)) for who, effect in heard.of(AnswerFetch, AnswerProduce)]
    assert answered.index(("0", AnswerProduce)) == 4, "the fourth fetch is what acknowledges m0"
    assert [effect.high_watermark for _, effect in heard.of(AnswerFetch)] == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("followers", [1, 2, 4])
def test_s0_13_every_follower_learns_of_a_watermark_one_fetch_after_it_rose(followers: int) -> None:
    world = cluster(nodes=followers + 1)
    world.produce(ZERO, "m0")
    known = []
    for _ in range(3):
        fetch(world, *world.alive[1:])
        known.append([ends(world, node).high_watermark for node in world.alive])
    assert known == [[0] * (followers + 1), [1, *[0] * followers], [1] * (followers + 1)]


# --------------------------------------------------------------------------------------------------- leader epochs


def test_s0_14_an_epoch_from_0_followed_by_one_from_120_has_120_records() -> None:
    cache = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 120)])
    assert cache.end_offset_for(0, log_end_offset=200) == EpochEnd(0, 120)


def test_s0_15_replicas_refuse_a_controller_of_an_older_epoch() -> None:
    replica = a_replica()
    replica.handle(leads(ZERO, ZERO, ONE, epoch=5))
    assert replica.handle(leads(ONE, ZERO, ONE, epoch=4)) == []
    assert (replica.role, replica.leader_epoch) == ("leader", 5)


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_15_a_fetch_of_an_older_epoch_is_refused_since_2_1(generation: str) -> None:
    leader = a_replica(knobs_of(generation))
    leader.handle(leads(ZERO, ZERO, ONE, epoch=5))
    [answered, *_] = leader.handle(FetchReceived("fetch", ONE, 0, 4, NO_EPOCH, 0))
    assert isinstance(answered, AnswerFetch)
    is_fenced = ALL_GENERATIONS.index(generation) >= ALL_GENERATIONS.index("2.1")
    assert answered.error is (ErrorCode.FENCED_LEADER_EPOCH if is_fenced else ErrorCode.NONE)


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_15_no_generation_keeps_a_deposed_leader_from_acknowledging_writes_to_itself_alone(generation: str) -> None:
    world = cluster(generation, 3)
    world.expire(ZERO)
    world.settle(lambda message: message.kind == "states" and message.destination == ZERO)
    assert (world.leader, world.replica(ONE).role) == (ONE, "leader")
    assert world.produce(ZERO, "w0", acks=1).acknowledged


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s0_16_an_epoch_is_written_down_at_its_first_record_and_since_2_0_1_at_the_election(generation: str) -> None:
    leader = a_replica(knobs_of(generation), end=4, epochs=[EpochEntry(0, 0)])
    elected = CheckpointEpochs((EpochEntry(0, 0), EpochEntry(1, 4))) in leader.handle(leads(ZERO, ZERO, ONE, epoch=1))
    written = CheckpointEpochs((EpochEntry(0, 0), EpochEntry(1, 4))) in write(leader, 1)
    at_election = ALL_GENERATIONS.index(generation) >= ALL_GENERATIONS.index("2.0.1")
    assert (elected, written) == (at_election, not at_election)
    assert not any(isinstance(effect, CheckpointEpochs) for effect in write(leader, 1))


def test_s0_20_the_new_leader_s_first_write_begins_epoch_1_at_offset_2() -> None:
    world = restart_then_leader_death("2.8", writes_between=True)
    assert world.replica(ONE).epoch_entries == (EpochEntry(0, 0), EpochEntry(1, 2))


# ---------------------------------------------------------------------------------------- what is lost, and what not


def test_s0_17_in_0_10_a_restart_and_a_leader_s_death_lose_an_acknowledged_record() -> None:
    world = restart_then_leader_death("0.10", unclean=True)
    replicate(world)
    assert logs(world) == [["m1@0"], ["m1@0"]]
    assert world.lost() == ["m2"]


def test_s0_17_without_unclean_elections_the_old_leader_shuts_down_with_the_record() -> None:
    world = restart_then_leader_death("0.10")
    replicate(world)
    assert world.exited == [ZERO]
    assert logs(world) == [["m1@0", "m2@0"], ["m1@0"]]


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
@pytest.mark.parametrize("min_isr", [1, 2])
def test_s0_18_two_clean_elections_lose_a_record_of_0_10_whatever_min_insync_replicas_is(
    generation: str, min_isr: int
) -> None:
    world = two_leaders_die(generation, min_isr=min_isr)
    assert world.lost() == (["m2"] if generation == "0.10" else [])


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s0_19_a_follower_that_asks_for_the_end_of_its_epoch_keeps_its_log(generation: str) -> None:
    heard = Heard()
    world = cluster(generation, tell=heard)
    watermark_behind(world)
    world.bounce(ONE)
    replicate(world)
    crash(world, ZERO)
    come_back(world, ZERO)
    assert heard.of(Truncate) == []
    assert values(world, ZERO) == values(world, ONE) == ["m1", "m2"]
    assert not world.lost()


# --------------------------------------------------------------------------------------- the text's rules as mutants


def newcomer_under_load(rule: str) -> bool:
    """Whether a replica gets into the ISR while a record reaches the leader between any two of its fetches."""
    world = cluster(hw_waits_for=rule)
    crash(world, ONE)
    world.produce(ZERO, "m0")
    world.start(ONE)
    world.settle()
    for number in range(1, 20):
        fetch(world, ONE)
        world.produce(ZERO, f"m{number}")
        world.tick(50)
        world.settle()
    return ONE in world.replica(ZERO).isr


def test_s0_8_the_watermark_waits_for_a_caught_up_replica_so_that_it_can_join() -> None:
    assert newcomer_under_load("isr_and_caught_up")
    assert not newcomer_under_load("isr")


def test_s0_9_a_watermark_that_is_the_least_of_itself_and_all_ends_never_leaves_0() -> None:
    worlds = {rule: cluster(hw_rule=rule) for rule in ("max_of_min", "min_of_all")}
    acknowledged = {}
    for rule, world in worlds.items():
        produced = world.produce(ZERO, "m0")
        replicate(world)
        acknowledged[rule] = (produced.acknowledged, ends(world, ZERO).high_watermark)
    assert acknowledged == {"max_of_min": (True, 1), "min_of_all": (False, 0)}


def test_s0_9_the_witness_sees_that_a_cluster_with_it_does_not_come_to_rest() -> None:
    assert seeds_until("T13", hw_rule="min_of_all") == 1


def a_leader() -> Replica:
    """It leads an empty log, and has one follower, in sync."""
    leader = a_replica()
    leader.handle(leads(ZERO, ZERO, ONE))
    return leader


def asks(offset: Offset) -> FetchReceived:
    return FetchReceived("fetch", ONE, offset, 0, NO_EPOCH, 0)


def batch(base_offset: Offset, end_offset: Offset) -> BatchSpan:
    return BatchSpan(base_offset, end_offset, 0)


def answer(fetch_offset: Offset, *spans: BatchSpan, high_watermark: Offset = 0) -> FetchAnswered:
    """Replica 1's answer to a fetch, in epoch 0."""
    return FetchAnswered(ONE, 0, fetch_offset, ErrorCode.NONE, high_watermark, 0, 9, None, spans, b"", 0)
