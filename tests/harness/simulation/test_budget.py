"""The fault budget: a fault that asks for more than replication promises does not happen, and no other is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model import NodeId
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import MS, Configuration, setup
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.core.planned import Planned

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
CALM = Configuration(horizon_ms=1_000, poll_every_ms=1_000_000)
LONG = 2_000


def strike(kind: str, aim: int, at_ms: int, for_ms: int = LONG) -> Planned:
    return Planned(at_ms * MS, for_ms * MS, kind, aim)


def play(*faults: Planned, configuration: Configuration = CALM, until_ms: int = 990) -> CoreSimulation:
    """A world up to a time in its safety phase."""
    world = CoreSimulation(1, setup("4.1", SAFE), faults=faults, configuration=configuration)
    world.begin()
    world.run_until(until_ms * MS)
    return world


def happened(world: CoreSimulation) -> list[tuple[str, int]]:
    return [(fault.kind, fault.aim) for fault in world.in_force.happened]


def dirty(world: CoreSimulation) -> set[NodeId]:
    return {broker.node for broker in world.brokers if broker.dirty}


def lossy(world: CoreSimulation) -> set[NodeId]:
    return {broker.node for broker in world.brokers if broker.lossy}


@pytest.mark.parametrize("second", ["kill", "power_loss", "disk_full"])
def test_while_one_is_back_from_a_power_loss_no_other_may_stop_uncleanly(second: str) -> None:
    world = play(strike("power_loss", 1, 100), strike(second, 2, 150))
    assert happened(world) == [("power_loss", 1)]


@pytest.mark.parametrize("first", ["kill", "disk_full"])
def test_while_one_has_stopped_uncleanly_or_may_no_other_loses_power(first: str) -> None:
    world = play(strike(first, 1, 100), strike("power_loss", 2, 101))
    assert happened(world) == [(first, 1)]


def test_a_broker_whose_disk_had_room_again_before_it_was_needed_never_counted() -> None:
    idle = replace(CALM, producers=0)
    world = play(strike("disk_full", 1, 100, 50), strike("power_loss", 2, 200), configuration=idle)
    assert happened(world) == [("disk_full", 1), ("power_loss", 2)]


def test_a_broker_that_halts_because_its_disk_is_full_counts_when_there_is_room_again() -> None:
    world = play(strike("disk_full", 1, 100, 20), strike("power_loss", 2, 125))
    assert happened(world) == [("disk_full", 1)]
    assert 1 in dirty(play(strike("disk_full", 1, 100, 20), until_ms=125))


def test_crashes_alone_are_not_limited() -> None:
    world = play(*(strike("kill", node, 100 + node) for node in range(3)))
    assert happened(world) == [("kill", 0), ("kill", 1), ("kill", 2)]


def test_the_broker_that_lost_power_may_lose_it_again() -> None:
    world = play(strike("power_loss", 1, 100, 50), strike("power_loss", 1, 200, 50))
    assert happened(world) == [("power_loss", 1)] * 2


def test_a_broker_that_has_caught_up_again_leaves_the_budget_to_others() -> None:
    world = play(strike("power_loss", 1, 100, 20), until_ms=400)
    assert (dirty(world), lossy(world)) == (set(), set())
    world = play(strike("power_loss", 1, 100, 20), strike("power_loss", 2, 600), strike("kill", 0, 601))
    assert happened(world) == [("power_loss", 1), ("power_loss", 2)]


def test_a_broker_that_is_in_sync_only_as_far_as_the_controller_has_not_heard_of_its_end_has_not_caught_up() -> None:
    world = play(strike("power_loss", 1, 100, 20), until_ms=140)
    partition = world.controller.partition
    assert partition is not None
    assert 1 in partition.isr
    assert world.brokers[1].alive
    world.budget.review()
    assert lossy(world) == {1}


def test_a_broker_in_sync_that_lacks_a_committed_record_has_not_caught_up() -> None:
    world = play(until_ms=300)
    broker: Broker = world.brokers[1]
    broker.dirty = broker.lossy = True
    broker.disk.truncate(2)
    world.budget.review()
    assert lossy(world) == {1}


def test_a_larger_budget_affords_more() -> None:
    world = play(
        strike("power_loss", 1, 100), strike("power_loss", 2, 150), configuration=replace(CALM, lossy_budget=2)
    )
    assert happened(world) == [("power_loss", 1), ("power_loss", 2)]
