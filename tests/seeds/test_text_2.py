"""Text 2: how a record gets lost, in short. One test or more for each of its rows."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.settings import Settings
from harness.error_codes import ErrorCode
from harness.errors import UsageError
from harness.model import NO_EPOCH, NO_LEADER, NodeId
from harness.replication.messages import (
    AnswerFetch,
    EpochEnd,
    EpochEndAnswered,
    EpochEntry,
    NextEpochLookup,
    NextFetch,
    Truncate,
)
from harness.wire.messages.fetch import PartitionData
from tests.seeds import served
from tests.seeds.clusters import (
    ALL_GENERATIONS,
    ONE,
    TWO,
    ZERO,
    Heard,
    a_replica,
    cluster,
    come_back,
    crash,
    ends,
    fetch,
    knobs_of,
    leads,
    replicate,
    restart_then_leader_death,
    watermark_behind,
)


def test_s2_1_the_watermark_is_the_offset_of_the_first_record_that_is_not_everywhere() -> None:
    world = cluster(nodes=3)
    for number in range(5):
        world.produce(ZERO, f"m{number}")
    world.fetch_batches = 3
    fetch(world, ONE, ONE)
    world.fetch_batches = 2
    fetch(world, TWO, TWO)
    fetch(world, ONE)
    # Heard of by the leader: 5 records on replica 1, 2 on replica 2.
    assert world.replica(ZERO).remote_log_end_offsets == {ONE: 5, TWO: 2}
    assert ends(world, ZERO).high_watermark == 2


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s2_2_a_follower_serves_no_consumer(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=3, watermark=3, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    assert follower.leader_error(NO_EPOCH) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_s2_2_a_follower_refuses_a_consumer_s_fetch_and_gives_it_nothing() -> None:
    cluster = served.fifteen_records()
    cluster.nodes["1"].thaw()
    cluster.world.sleep(1)
    partition = served.fetch(cluster, "1", 0)
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert served.offsets(partition) == []


@given(st.lists(st.tuples(st.sampled_from(("crash", "return")), st.sampled_from((ZERO, ONE, TWO))), max_size=20))
def test_s2_3_a_leader_is_in_sync_and_was_when_elected(moves: list[tuple[str, NodeId]]) -> None:
    world = cluster("3.7", 3)
    for move, node in moves:
        [before] = world.controller.partitions
        if move == "crash" and node in world.alive:
            crash(world, node)
        elif move == "return" and node not in world.alive:
            come_back(world, node)
        [after] = world.controller.partitions
        assert after.leader == NO_LEADER or after.leader in after.isr
        assert after.leader in (NO_LEADER, before.leader, *before.isr)


def test_s2_4_the_log_end_offset_is_the_next_offset_and_no_answer_carries_it() -> None:
    world = cluster()
    assert ends(world, ZERO).log_end_offset == 0
    world.produce(ZERO, "m0")
    assert ends(world, ZERO).log_end_offset == 1
    carried = {field.name for field in fields(PartitionData)}
    assert {"high_watermark", "log_start_offset"} <= carried
    assert "log_end_offset" not in carried


@pytest.mark.parametrize("acks", [1, -1])
def test_s2_5_the_flow_loses_a_record_of_acks_1_and_just_as_well_one_of_acks_all(acks: int) -> None:
    world = restart_then_leader_death("0.10", acks=acks)
    assert [record.value for record in world.brokers[ONE].records] == ["m1"]
    assert world.lost() == (["m2"] if acks == -1 else [])


@pytest.mark.parametrize("generation", ["0.11", "2.0.0", "2.0.1", "2.1"])
def test_s2_6_the_follower_compares_the_answer_2_with_its_own_end_2(generation: str) -> None:
    follower = a_replica(knobs_of(generation), end=2, watermark=1, epochs=[EpochEntry(0, 0)])
    follower.handle(leads(ONE, ZERO, ONE))
    asked = follower.next_request()
    assert isinstance(asked, NextEpochLookup)
    assert follower.log_end_offset == 2
    answer = EpochEndAnswered(asked.leader, asked.leader_epoch, 0, ErrorCode.NONE, EpochEnd(0, 2), 0)
    assert follower.handle(answer) == []
    wanted = follower.next_request()
    assert isinstance(wanted, NextFetch)
    assert wanted.fetch_offset == 2


def test_s2_6_since_2_8_the_fetch_itself_asks_and_is_answered_that_the_logs_agree() -> None:
    heard = Heard()
    world = cluster("2.8", tell=heard)
    watermark_behind(world)
    world.bounce(ONE)
    world.settle()
    heard.effects.clear()
    fetch(world, ONE)
    [(_, answer)] = heard.of(AnswerFetch)
    assert answer.diverging is None
    assert heard.of(Truncate) == []


def test_s2_7_the_lag_that_the_in_sync_set_bears_is_given_in_milliseconds() -> None:
    assert Settings.parse({"replica.lag.time.max.ms": 10_000}).replica_lag_time_max_ms == 10_000
    with pytest.raises(UsageError, match="not a whole number"):
        Settings.parse({"replica.lag.time.max.ms": "10s"})


@pytest.mark.parametrize(("ms", "in_sync"), [(10_000, True), (10_100, False)])
def test_s2_7_a_silent_follower_is_in_sync_for_10_000_ms_and_no_longer(ms: int, in_sync: bool) -> None:
    world = cluster(nodes=3)
    world.lag_ms = 10_000
    for node in world.brokers:
        world.kill(node)
        world.boot(node)
    world.impose(ZERO, 1, (ZERO, ONE, TWO))
    world.settle()
    replicate(world)
    world.produce(ZERO, "m0")
    fetch(world, ONE, ONE)
    world.tick(ms)
    proposed = [message for message in world.in_flight if message.kind == "isr-request"]
    assert bool(proposed) != in_sync
