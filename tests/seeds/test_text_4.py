"""Text 4: an article on Kafka and the CAP theorem. One test or more for each of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.checkpoints import format_epochs, parse_epochs
from harness.broker.settings import Settings
from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    ControllerStarted,
    SendPartitionStates,
    TopicCreationRequested,
)
from harness.replication.epochs import LeaderEpochCache
from harness.replication.messages import EpochEnd, EpochEntry, Truncate
from harness.replication.topic_configs import Refusal
from harness.replication.topics import place
from harness.wire.messages.produce import ProduceRequest
from tests.harness.replication.world import World
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
    fast_failover,
    fetch,
    join_at_a_stale_watermark,
    knobs_of,
    last_replica_standing,
    leads,
    logs,
    power_loss_of_both,
    replicate,
    restart_then_leader_death,
    take_turns,
    values,
    zombie_follower,
)

# --------------------------------------------------------------------------------------------------- the controller


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s4_1_between_a_leader_s_death_and_the_next_election_no_broker_takes_writes_and_nothing_is_lost(
    generation: str,
) -> None:
    world = cluster(generation, 3, min_isr=2)
    world.produce(ZERO, "m0")
    replicate(world)
    world.kill(ZERO)
    refused = [world.produce(node, "m1") for node in (ONE, TWO)]
    assert [one.answer.error for one in refused if one.answer] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    world.expire(ZERO)
    world.settle()
    produced = world.produce(ONE, "m2")
    replicate(world)
    assert produced.acknowledged
    assert values(world, ONE) == ["m0", "m2"]


def test_s4_2_a_second_controller_takes_over_what_the_first_one_decided() -> None:
    world = cluster(nodes=3)
    crash(world, ZERO)
    successor = Controller(1_500, world.controller.to_state())
    sent = [effect for effect in successor.handle(ControllerStarted(0)) if isinstance(effect, SendPartitionStates)]
    assert successor.partitions == world.controller.partitions
    assert {effect.broker for effect in sent} == {ONE, TWO}
    assert {effect.controller_epoch for effect in sent} == {world.controller.controller_epoch + 1}


def test_s4_3_controller_epochs_count_from_1() -> None:
    controller = Controller(1_500)
    epochs = []
    for _ in range(3):
        controller.handle(ControllerStarted(0))
        epochs.append(controller.controller_epoch)
        controller = Controller(1_500, controller.to_state())
    assert epochs == [1, 2, 3]


def obeyed_the_older_controller(*, fencing: bool) -> bool:
    """Controller 2 has elected 0; controller 1, back from a long pause, elects 1 with a greater leader epoch."""
    replica = a_replica(knobs_of(controller_epoch_fencing=fencing))
    replica.handle(replace(leads(ZERO, ZERO, ONE, epoch=5), controller_epoch=2))
    replica.handle(replace(leads(ONE, ZERO, ONE, epoch=6), controller_epoch=1))
    return replica.leader == ONE


def test_s4_3_a_broker_ignores_a_controller_older_than_the_newest_it_has_heard() -> None:
    assert not obeyed_the_older_controller(fencing=True)
    assert obeyed_the_older_controller(fencing=False)


def test_s4_3_its_handler_answers_such_a_controller_with_an_error_and_goes_on_leading() -> None:
    cluster = served.started()
    refused = served.command(cluster, "0", controller_epoch=0, leader=1, leader_epoch=5)
    assert (refused, served.leads(cluster, "0")) == (ErrorCode.STALE_CONTROLLER_EPOCH, True)
    obeyed = served.command(cluster, "0", controller_epoch=2, leader=1, leader_epoch=5)
    assert (obeyed, served.leads(cluster, "0")) == (ErrorCode.NONE, False)


# ------------------------------------------------------------------------------------------------------- placement


@given(brokers=st.integers(1, 9), partitions=st.integers(1, 20), data=st.data())
def test_s4_4_partition_i_s_replica_j_is_on_broker_i_plus_j_and_no_broker_has_two(
    brokers: int, partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, brokers))
    live = [NodeId(node) for node in range(brokers)]
    placed = place(TopicCreationRequested("token", "ledger", partitions, factor, None), live, live)
    assert not isinstance(placed, Refusal)
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert placed == tuple(tuple((i + j) % brokers for j in range(factor)) for i in range(partitions))


def test_s4_4_more_replicas_than_brokers_are_refused() -> None:
    placed = place(TopicCreationRequested("token", "ledger", 1, 4, None), [ZERO, ONE, TWO], [ZERO, ONE, TWO])
    assert isinstance(placed, Refusal)


# ---------------------------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s4_5_a_minimum_above_the_replication_factor_refuses_everything_before_3_7(generation: str) -> None:
    world = cluster(generation, nodes=2, min_isr=3)
    produced = world.produce(ZERO, "m0")
    replicate(world)
    is_bounded = ALL_GENERATIONS.index(generation) >= ALL_GENERATIONS.index("3.7")
    assert produced.acknowledged == is_bounded
    assert values(world, ONE) == (["m0"] if is_bounded else [])


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s4_5_the_in_sync_set_may_be_smaller_than_the_minimum(generation: str) -> None:
    world = cluster(generation, nodes=3, min_isr=3)
    for node in (ONE, TWO):
        crash(world, node)
    assert world.controller.partitions[0].isr == (ZERO,)


def test_s4_6_it_is_off_unless_it_is_asked_for() -> None:
    assert not Settings().unclean_leader_election_enable
    assert Settings.parse({"unclean.leader.election.enable": "true"}).unclean_leader_election_enable


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
@pytest.mark.parametrize(("unclean", "leader"), [(False, NO_LEADER), (True, ONE)])
def test_s4_6_true_lets_every_live_replica_lead_and_false_only_one_in_sync(
    generation: str, unclean: bool, leader: NodeId
) -> None:
    world = cluster(generation, unclean=unclean)
    crash(world, ONE)
    assert world.produce(ZERO, "m0").acknowledged
    crash(world, ZERO)
    world.start(ONE)
    world.settle()
    assert world.leader == leader


def test_s4_7_acks_belong_to_the_request_and_are_no_setting_of_the_broker() -> None:
    assert "acks" in {field.name for field in fields(ProduceRequest)}
    assert not [field.name for field in fields(Settings) if "acks" in field.name]
    world = cluster()
    weak, strong = world.produce(ZERO, "w0", acks=1), world.produce(ZERO, "m0", acks=-1)
    assert (weak.acknowledged, strong.acknowledged) == (True, False)


# ------------------------------------------------------------------------------------- the three stock configurations

STOCK = {"min 3, acks all": (3, -1), "min 3, acks 1": (3, 1), "min 2, acks all": (2, -1)}


def stock(name: str, generation: str) -> tuple[World, int]:
    """Three replicas in that configuration, one record everywhere; and the acks of its producers."""
    min_isr, acks = STOCK[name]
    world = cluster(generation, 3, min_isr)
    world.produce(ZERO, "m0", acks=acks)
    replicate(world)
    return world, acks


def takes_writes(world: World, acks: int) -> bool:
    """Whether a record produced now is acknowledged, once all that live have fetched."""
    if world.leader == NO_LEADER:
        return False
    produced = world.produce(world.leader, f"after {len(world.produced)}", acks=acks)
    replicate(world)
    return produced.acknowledged


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
@pytest.mark.parametrize(
    ("name", "available"),
    [
        ("min 3, acks all", [True, False, False]),
        ("min 3, acks 1", [True, True, True]),
        ("min 2, acks all", [True, True, False]),
    ],
)
@pytest.mark.parametrize("victims", [(ZERO, ONE), (ONE, TWO), (TWO, ZERO)])
def test_s4_8_how_many_failures_a_stock_configuration_takes_writes_under(
    generation: str, name: str, available: list[bool], victims: tuple[NodeId, NodeId]
) -> None:
    world, acks = stock(name, generation)
    seen = [takes_writes(world, acks)]
    for victim in victims:
        crash(world, victim)
        seen.append(takes_writes(world, acks))
    assert seen == available


@pytest.mark.parametrize("generation", ALL_GENERATIONS[1:])
@pytest.mark.parametrize("name", ["min 3, acks all", "min 2, acks all"])
@pytest.mark.parametrize("failures", [1, 2])
def test_s4_8_acks_all_loses_nothing_under_failures_of_processes(generation: str, name: str, failures: int) -> None:
    world, acks = stock(name, generation)
    produced = world.produce(ZERO, "m1", acks=acks)
    fetch(world, ONE, TWO, ONE, TWO)
    assert produced.acknowledged
    victims = (ZERO, ONE)[:failures]
    for victim in victims:
        crash(world, victim)
    for victim in reversed(victims):
        come_back(world, victim)
    assert world.lost() == []
    assert values(world, world.leader)[:2] == ["m0", "m1"]


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s4_8_min_3_with_acks_1_loses_what_its_leader_alone_had(generation: str) -> None:
    world, acks = stock("min 3, acks 1", generation)
    assert world.produce(ZERO, "w1", acks=acks).acknowledged
    crash(world, ZERO)
    assert takes_writes(world, acks)
    come_back(world, ZERO)
    assert "w1" not in values(world, world.leader)
    assert world.lost() == [], "acks=1 promised nothing"


# ------------------------------------------------------------------------------------------- watermarks and epochs


def test_s4_9_the_watermark_8_is_not_the_largest_committed_offset_but_the_one_behind_it() -> None:
    world = cluster()
    for number in range(8):
        world.produce(ZERO, f"m{number}")
    replicate(world)
    for number in range(8, 15):
        world.produce(ZERO, f"m{number}", acks=1)
    assert ends(world, ZERO) == (15, 8)
    assert world.replica(ZERO).read_bound(None) == 8


@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_s4_10_a_new_leader_keeps_its_log_whatever_its_watermark_says(generation: str) -> None:
    replica = a_replica(knobs_of(generation), end=2, watermark=0, epochs=[EpochEntry(0, 0)])
    effects = replica.handle(leads(ZERO, ZERO, epoch=1))
    assert not [effect for effect in effects if isinstance(effect, Truncate)]
    assert replica.log_end_offset == 2


def test_s4_10_the_one_that_cuts_is_the_follower() -> None:
    heard = Heard()
    lost = restart_then_leader_death("0.10", tell=heard)
    assert [(who, effect.to_offset) for who, effect in heard.of(Truncate)] == [("1", 1)]
    assert lost.lost() == ["m2"]
    differs = power_loss_of_both("0.10")
    assert logs(differs)[0] == ["m1@0", "m2@0"], "it returns, and keeps what its own watermark covers"
    assert differs.diverged() == [1]


def test_s4_11_an_epoch_from_0_followed_by_one_from_100_ends_at_99_in_the_checkpoint_too() -> None:
    cache = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 100)])
    assert cache.end_offset_for(0, 150) == EpochEnd(0, 100)
    text = format_epochs(cache.entries)
    assert text == "0\n2\n0 0\n1 100\n"
    assert tuple(parse_epochs(text)) == cache.entries


# -------------------------------------------------------------------------------------------------- what epochs left


@pytest.mark.parametrize(
    ("schedule", "safe_since"),
    [
        (fast_failover, "2.0.0"),
        (take_turns, "2.0.1"),
        (join_at_a_stale_watermark, "2.0.1"),
        (zombie_follower, "2.1"),
        (last_replica_standing, "4.1"),
    ],
)
def test_s4_12_what_leader_epochs_left_does_harm_until_it_was_mended(
    schedule: Callable[[str], World], safe_since: str
) -> None:
    worlds = {generation: schedule(generation) for generation in ALL_GENERATIONS}
    harmed = [generation for generation, world in worlds.items() if world.lost() or world.diverged()]
    assert harmed == [*ALL_GENERATIONS[: ALL_GENERATIONS.index(safe_since)]]
