"""Text 3: a reading of KIP-101, and an incident with two full disks. One test or more for each of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.epochs import UNDEFINED, LeaderEpochCache
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    EpochEnd,
    EpochEntry,
    HighWatermarkAdvanced,
    Truncate,
)
from harness.wire import batches as wire
from tests.harness.replication.world import World
from tests.seeds import served
from tests.seeds.clusters import (
    ALL_GENERATIONS,
    ONE,
    TWO,
    ZERO,
    Heard,
    cluster,
    come_back,
    crash,
    ends,
    fetch,
    fetch_unheard,
    last_replica_standing,
    logs,
    lose_tail,
    power_loss_of_both,
    replicate,
    restart_then_leader_death,
    take_turns,
    values,
    watermark_behind,
)
from tests.seeds.witnessed import seeds_until

# -------------------------------------------------------------------------------------------- leader epochs, defined


def test_s3_1_the_end_of_an_epoch_is_the_start_of_the_next_or_the_log_s_end() -> None:
    cache = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 120), EpochEntry(2, 240)])
    assert [cache.end_offset_for(epoch, 300) for epoch in (0, 1, 2)] == [(0, 120), (1, 240), (2, 300)]
    assert cache.end_offset_for(3, 300) == UNDEFINED


def test_s3_1_an_epoch_is_a_signed_number_of_32_bits_in_every_batch() -> None:
    for epoch in (0, 2**31 - 1):
        [header] = wire.headers(wire.build([b"a"], leader_epoch=epoch))
        assert header.leader_epoch == epoch


def test_s3_2_the_fetch_behind_a_record_is_what_acknowledges_it() -> None:
    world = cluster(nodes=3)
    produced = world.produce(ZERO, "m0")
    fetch(world, ONE, TWO)
    assert [values(world, node) for node in (ONE, TWO)] == [["m0"], ["m0"]]
    fetch_unheard(world, ONE)
    assert not produced.acknowledged
    fetch_unheard(world, TWO)
    assert produced.acknowledged


def test_s3_3_even_with_two_replicas_the_answer_carries_the_watermark_of_before() -> None:
    heard = Heard()
    watermark_behind(cluster(tell=heard))
    order = [type(effect) for who, effect in heard.effects if who == "0"]
    last_fetch = len(order) - 1 - order[::-1].index(AnswerFetch)
    assert order[last_fetch:] == [AnswerFetch, HighWatermarkAdvanced, AnswerProduce]
    assert heard.of(AnswerFetch)[-1][1].high_watermark == 1


def test_s3_3_with_the_watermark_of_after_the_follower_learns_a_fetch_earlier() -> None:
    world = cluster(hw_in_fetch_response="post_update")
    world.produce(ZERO, "m0")
    fetch(world, ONE, ONE)
    assert ends(world, ONE) == (1, 1)


@pytest.mark.parametrize(("checkpointed", "kept"), [(True, ["m0"]), (False, [])])
def test_s3_4_a_follower_of_0_10_starts_with_the_watermark_on_disk_and_cuts_to_it(
    checkpointed: bool, kept: list[str]
) -> None:
    world = cluster("0.10")
    world.produce(ZERO, "m0")
    replicate(world)
    if checkpointed:
        world.checkpoint(ONE)
    world.produce(ZERO, "m1")
    replicate(world)
    world.bounce(ONE)
    world.settle()
    assert values(world, ONE) == kept


# ------------------------------------------------------------------------------------------------ two rejected fixes


def fetches_until_acknowledged(**knobs: Any) -> int:
    world = cluster(**knobs)
    produced = world.produce(ZERO, "m0")
    for number in range(1, 9):
        fetch(world, ONE)
        if produced.acknowledged:
            return number
    raise AssertionError("never acknowledged")


def test_s3_5_a_leader_that_waits_for_its_followers_watermarks_loses_nothing() -> None:
    world = cluster("0.10", hw_advance="after_followers")
    world.produce(ZERO, "m1")
    replicate(world)
    produced = world.produce(ZERO, "m2")
    fetch(world, ONE)
    fetch_unheard(world, ONE)
    assert not produced.acknowledged, "so the record that scenario 1 loses was never promised"


@pytest.mark.parametrize(("carried", "waits"), [("post_update", 3), ("pre_update", 4)])
def test_s3_5_it_costs_one_fetch_more_and_two_where_answers_carry_the_watermark_of_before(
    carried: str, waits: int
) -> None:
    assert fetches_until_acknowledged(hw_in_fetch_response=carried) == 2
    assert fetches_until_acknowledged(hw_in_fetch_response=carried, hw_advance="after_followers") == waits


@pytest.mark.parametrize(("rule", "waits"), [("on_fetch", False), ("after_followers", True)])
def test_s3_5_in_an_idle_cluster_it_costs_the_time_that_a_fetch_waits_for_data(rule: str, waits: bool) -> None:
    cluster = served.started(hw_advance=rule)
    begun_ns = cluster.world.now_ns
    assert served.produce(cluster, 0, acks=-1) == 0
    assert (cluster.world.now_ns - begun_ns >= served.FETCH_WAIT_MS * 1_000_000) == waits


def test_s3_6_waiting_for_the_first_answer_mends_scenario_1_and_not_scenario_2() -> None:
    world = restart_then_leader_death("0.10", truncation="hw_after_first_fetch")
    replicate(world)
    assert (world.lost(), world.diverged()) == ([], [])
    assert power_loss_of_both("0.10", truncation="hw_after_first_fetch").diverged() == [1]


def test_s3_6_the_witness_finds_logs_that_differ_by_it() -> None:
    assert seeds_until("R1", truncation="hw_after_first_fetch") is not None


# ------------------------------------------------------------------------------- scenario 2: both die, tails differ


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_7_unequal_tails_differ_for_ever_in_0_10_and_only_there(generation: str) -> None:
    world = power_loss_of_both(generation)
    assert world.lost() == ["m2"], "the record is lost everywhere: no disk of a leader held it"
    assert world.diverged() == ([1] if generation == "0.10" else [])


def batches_of_unequal_length(generation: str) -> World:
    """A05: replica 0 holds a batch [1,4) that 1 lost; 1 wrote [1,5) and [5,6) since, and 0 follows it."""
    world = cluster(generation)
    world.produce(ZERO, "m0")
    replicate(world)
    world.produce(ZERO, "a1", "a2", "a3")
    replicate(world)
    for node in (ZERO, ONE):
        world.checkpoint(node)
        world.kill(node)
    lose_tail(world, ONE, 3)
    for node in (ZERO, ONE):
        world.expire(node)
    world.start(ONE)
    world.settle()
    world.produce(ONE, "b1", "b2", "b3", "b4")
    world.produce(ONE, "b5")
    come_back(world, ZERO)
    return world


def test_s3_7_a_follower_of_0_10_whose_log_ends_within_a_batch_is_stuck() -> None:
    world = batches_of_unequal_length("0.10")
    replicate(world, rounds=9)
    assert values(world, ZERO) == ["m0", "a1", "a2", "a3"]
    assert values(world, ONE) == ["m0", "b1", "b2", "b3", "b4", "b5"]


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s3_7_with_epochs_it_is_not(generation: str) -> None:
    world = batches_of_unequal_length(generation)
    assert values(world, ZERO) == values(world, ONE) == ["m0", "b1", "b2", "b3", "b4", "b5"]


@given(order=st.permutations([ZERO, ONE, TWO]), generation=st.sampled_from(ALL_GENERATIONS[1:]))
def test_s3_8_two_failures_of_three_replicas_lose_nothing(order: list[NodeId], generation: str) -> None:
    world = cluster(generation, 3, min_isr=2)
    produced = world.produce(ZERO, "m0")
    fetch(world, ONE, TWO, ONE, TWO)
    assert produced.acknowledged
    for node in order[:2]:
        crash(world, node)
    assert values(world, order[2]) == ["m0"]
    for node in order[:2]:
        come_back(world, node)
    assert world.lost() == []


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_8_but_the_promise_holds_for_the_in_sync_set_and_not_for_all_replicas(generation: str) -> None:
    world = cluster(generation, 3)
    for node in (ONE, TWO):
        crash(world, node)
    assert world.produce(ZERO, "m0").acknowledged, "an in-sync set of one, with min.insync.replicas=1"
    crash(world, ZERO)
    lose_tail(world, ZERO, 0)
    come_back(world, ZERO)
    assert world.lost() == ["m0"], "one failure of one of three"


@pytest.mark.parametrize(("min_isr", "harmed"), [(1, ALL_GENERATIONS), (2, ALL_GENERATIONS[:-1])])
def test_s3_8_one_failure_that_loses_data_is_borne_with_a_minimum_of_two_and_since_4_1(
    min_isr: int, harmed: tuple[str, ...]
) -> None:
    worlds = {generation: last_replica_standing(generation, min_isr=min_isr) for generation in ALL_GENERATIONS}
    assert tuple(generation for generation, world in worlds.items() if world.lost()) == harmed


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s3_9_a_follower_learns_the_epochs_that_it_missed(generation: str) -> None:
    world = cluster(generation, 3)
    world.produce(ZERO, "m0")
    replicate(world)
    crash(world, TWO)
    for node, other in ((ZERO, ONE), (ONE, ZERO)):
        crash(world, node)
        world.produce(other, f"m{len(world.produced)}")
        come_back(world, node)
    assert world.brokers[TWO].epochs == (EpochEntry(0, 0),)
    come_back(world, TWO)
    caches = {node: world.replica(node).epoch_entries for node in world.alive}
    assert caches[ZERO] == caches[ONE] == caches[TWO]
    assert len(caches[TWO]) > 1


def answered_with_the_last_offset(
    honest: Callable[[LeaderEpochCache, int, Offset], EpochEnd],
) -> Callable[[LeaderEpochCache, int, Offset], EpochEnd]:
    def answer(cache: LeaderEpochCache, requested: int, log_end_offset: Offset) -> EpochEnd:
        end = honest(cache, requested, log_end_offset)
        return end if end == UNDEFINED else end._replace(end_offset=end.end_offset - 1)

    return answer


def lost_when_a_follower_bounces_and_its_leader_dies(before_the_bounce: Callable[[], None]) -> list[str]:
    """The generation is 2.1, the last in which a clean restart goes unnoticed, so that the follower stays in sync."""
    world = cluster("2.1")
    watermark_behind(world)
    before_the_bounce()
    world.checkpoint(ONE)
    world.bounce(ONE)
    world.settle()
    fetch(world, ONE)
    crash(world, ZERO)
    return world.lost()


def test_s3_10_an_end_offset_that_is_the_last_offset_instead_cuts_a_committed_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = answered_with_the_last_offset(LeaderEpochCache.end_offset_for)
    assert lost_when_a_follower_bounces_and_its_leader_dies(lambda: None) == []
    patch = partial(monkeypatch.setattr, LeaderEpochCache, "end_offset_for", wrong)
    assert lost_when_a_follower_bounces_and_its_leader_dies(patch) == ["m2"]


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
def test_s3_11_asked_for_epoch_0_the_new_leader_answers_1_and_m2_is_cut(generation: str) -> None:
    heard = Heard()
    world = power_loss_of_both(generation, tell=heard)
    assert world.replica(ONE).end_offset_for(0).end_offset == 1
    assert [(who, effect.to_offset) for who, effect in heard.of(Truncate)] == [("0", 1)]
    assert [values(world, node) for node in (ZERO, ONE)] == [["m1", "m3"]] * 2


# ------------------------------------------------------------------------------------- unclean elections, five steps


FIVE_STEPS = {
    "0.10": [["a0", "a1"], ["b0", "b1"]],
    "0.11": [["a0", "b1"], ["b0", "b1"]],
    "2.0.0": [["a0", "b1"], ["b0", "b1"]],
}
"""The logs at the end, up to 2.0.0; since then both are b0, b1."""


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_12_unclean_elections_leave_different_logs_up_to_2_0_0(generation: str) -> None:
    world = take_turns(generation)
    assert [values(world, node) for node in (ZERO, ONE)] == FIVE_STEPS.get(generation, [["b0", "b1"]] * 2)


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_13_with_an_epoch_in_common_the_answer_says_where_the_logs_part_since_2_0_0(generation: str) -> None:
    world = take_turns(generation, "c0")
    equal = values(world, ZERO) == values(world, ONE)
    assert equal == (generation not in ("0.10", "0.11"))


# ------------------------------------------------------------------------------------------------------ the incident


def both_disks_full(generation: str, records: int, **knobs: Any) -> World:
    """A18 up to the moment when everything is down: 0 (the text's 152) died first, 1 (153) took ``records``."""
    world = cluster(generation, **knobs)
    world.brokers[ZERO].disk_full = True
    world.produce(ZERO, "refused")
    world.expire(ZERO)
    world.settle()
    assert (world.leader, world.alive) == (ONE, [ONE])
    for number in range(records):
        assert world.produce(ONE, f"m{number}").acknowledged
    world.checkpoint(ONE)
    world.brokers[ONE].disk_full = True
    world.produce(ONE, "refused too")
    world.expire(ONE)
    for node in (ZERO, ONE):
        world.brokers[node].disk_full = False
    assert (world.leader, world.alive) == (NO_LEADER, [])
    return world


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
@pytest.mark.parametrize("records", [3, 7])
def test_s3_14_the_first_to_die_leads_uncleanly_and_the_last_one_cuts_what_was_consumed(
    generation: str, records: int
) -> None:
    heard = Heard()
    world = both_disks_full(generation, records, unclean=True, tell=heard)
    world.start(ZERO)
    world.settle()
    assert (world.replica(ZERO).role, ends(world, ZERO)) == ("leader", (0, 0))
    heard.effects.clear()
    world.start(ONE)
    world.settle()
    assert (values(world, ONE), heard.of(Truncate)) == ([f"m{n}" for n in range(records)], []), (
        "its watermark cuts none"
    )
    replicate(world)
    assert [effect.to_offset for who, effect in heard.of(Truncate) if who == "1"] == [0]
    assert logs(world) == [[], []]


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_15_without_unclean_elections_the_first_to_die_waits_for_the_last(generation: str) -> None:
    world = both_disks_full(generation, 3)
    world.start(ZERO)
    world.settle()
    assert world.leader == NO_LEADER
    come_back(world, ONE)
    assert (world.leader, world.lost()) == (ONE, [])
    assert values(world, ZERO) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s3_15_with_the_last_to_die_started_first_nothing_is_lost(generation: str) -> None:
    world = both_disks_full(generation, 7)
    come_back(world, ONE)
    come_back(world, ZERO)
    assert (world.leader, world.lost()) == (ONE, [])
    assert len(values(world, ZERO)) == 7
