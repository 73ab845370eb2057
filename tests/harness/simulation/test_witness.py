"""The witness sees what is wrong: protocols with one rule broken, and sound worlds in which one thing is falsified."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from harness.checker import Verdict
from harness.model import NodeId
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.replication.leadership import Leadership
from harness.replication.messages import BatchSpan, EpochEntry, NextFetch, Truncate
from harness.simulation.core.broker import Broker
from harness.simulation.core.clients import Produce
from harness.simulation.core.configuration import Configuration, setup
from harness.simulation.core.disk import Batch, Record
from harness.simulation.core.world import World
from harness.simulation.explore import run_seed
from harness.simulation.violations import gravest

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
QUIET = Configuration(horizon_ms=100, send_every_ms=10, records_per_send=1)

MUTANTS = [
    ("diverging_fetch_is_progress", "true", {"T7", "T9", "T10"}),
    ("stale_truncation_applied", "true", {"R10", "C1", "R3", "T13"}),
    ("isr_update", "naive", {"T7", "T10"}),
    ("isr_join", "hw", {"T10"}),
    ("hw_from_diverging", "true", {"R1"}),
    ("empty_isr_retry", "true", {"T5", "T13"}),
    ("truncation", "hw", {"C1", "C8", "R3"}),
    ("truncation", "leader_hw", {"R1", "R1b", "C1"}),
    ("elections", "isr", {"C1"}),
    ("broker_bounce", "unnoticed", {"R1b", "C1", "R1"}),
    ("lookup_below_first", "undefined", {"T13"}),
]


@pytest.mark.parametrize(("knob", "value", "invariants"), MUTANTS, ids=[f"{k}={v}" for k, v, _ in MUTANTS])
def test_a_protocol_with_one_rule_broken_is_caught(knob: str, value: str, invariants: set[str]) -> None:
    chosen = setup("4.1", SAFE | {f"replication.{knob}": value})
    found = (run_seed(seed, chosen).violation for seed in range(500))
    assert next(one for one in found if one is not None).invariant in invariants


@pytest.mark.parametrize(("knob", "value"), [("hw_rule", "min_of_all"), ("follower_hw_rule", "own")])
def test_a_watermark_that_never_rises_is_no_rest(knob: str, value: str) -> None:
    violation = run_seed(0, setup("4.1", SAFE | {f"replication.{knob}": value})).violation
    assert violation is not None
    assert (violation.invariant, violation.kind) == ("T13", "stuck")


def test_a_watermark_that_rises_below_the_minimal_isr_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "_frozen", lambda _: False)
    chosen = setup("4.1", SAFE | {"faults": "isolate,pause", "acks": "1"})
    worlds = [World(seed, chosen) for seed in range(60)]
    assert "T8" in {violation.invariant for world in worlds for violation in world.run().violations}


# -------------------------------------------------------------------------------------------- one thing falsified


def sound() -> World:
    """A world without any fault, at rest, with some committed records."""
    world = World(0, setup("4.1", {}), configuration=QUIET, troubles=())
    finished = world.run()
    assert finished.converged
    assert not finished.violations
    assert len(world.witness.truth) > 5
    return world


def leader(world: World) -> Broker:
    assert world.controller.partition is not None
    return world.brokers[world.controller.partition.leader]


def follower(world: World) -> Broker:
    return next(broker for broker in world.brokers if broker is not leader(world))


def partition(world: World) -> PartitionState:
    return cast("PartitionState", world.controller.partition)


def append(broker: Broker, span: BatchSpan, values: tuple[int, ...]) -> None:
    broker.disk.batches.append(Batch(span, values))


def gap(world: World) -> None:
    broker = leader(world)
    span = BatchSpan(broker.disk.end + 1, broker.disk.end + 2, 0)
    append(broker, span, (99,))
    world.witness.appended(broker, (span,), ((99,),))


def older_epoch_after_a_newer(world: World) -> None:
    broker = leader(world)
    end = broker.disk.end
    newer, older = BatchSpan(end, end + 1, 7), BatchSpan(end + 1, end + 2, 6)
    append(broker, newer, (98,))
    append(broker, older, (99,))
    world.witness.appended(broker, (newer, older), ((98,), (99,)))


def batch_after_the_wrong_one(world: World) -> None:
    broker = follower(world)
    last = broker.disk.batches.pop()
    broker.disk.batches[-1] = Batch(broker.disk.batches[-1].span._replace(leader_epoch=5), (99,))
    broker.disk.batches.append(last._replace(span=last.span._replace(leader_epoch=5)))
    key = (5, last.span.base_offset)
    world.witness._lineage[key] = (last.values, (0, last.span.base_offset - 1))
    world.witness.appended(broker, (broker.disk.batches[-1].span,), (last.values,))


def committed_record_cut(world: World) -> None:
    broker = follower(world)
    end = broker.disk.end
    cut = broker.disk.truncate(end - 1)
    world.witness.truncated(broker, Truncate(end - 1, "nothing"), cut)


def epochs_out_of_order(world: World) -> None:
    world.witness.epochs_changed(leader(world), (EpochEntry(3, 0), EpochEntry(2, 1)))


def other_record_below_the_watermark(world: World) -> None:
    broker = follower(world)
    broker.disk.records[2] = Record(0, 1234)
    world.witness._seen[broker.node] = 0
    world.witness.watermark_advanced(broker, broker.disk.end)


def acknowledged_above_the_watermark(world: World) -> None:
    broker = leader(world)
    produce = Produce(world.producers[0], 99, -1, (4321,))
    world.witness.acknowledged(broker, produce, broker.disk.end)


def acknowledged_with_one_copy(world: World) -> None:
    broker = leader(world)
    for other in world.brokers:
        if other is not broker:
            other.disk.truncate(1)
    at = broker.disk.end - 1
    produce = Produce(world.producers[0], 99, -1, (broker.disk.records[at].value,))
    world.witness.acknowledged(broker, produce, at)


def follower_of_another_epoch_served(world: World) -> None:
    world.witness.fetch_served(leader(world), NextFetch(leader(world).node, 17, 0, -1))


def two_leaders_in_one_epoch(world: World) -> None:
    broker = leader(world)
    assert broker.replica is not None
    world.witness._leaders[broker.replica.leader_epoch] = follower(world).node
    world.witness.state_applied(broker, (-1, -1))


def leader_without_a_committed_record(world: World) -> None:
    broker = leader(world)
    broker.disk.truncate(3)
    world.witness.state_applied(broker, (-1, -1))


def controller_that_falls_back(world: World) -> None:
    state = partition(world)
    world.witness.elected(Elected(state, True, True, NodeId(-1), 1, ""))
    world.witness.elected(Elected(state._replace(partition_epoch=-1), True, True, NodeId(-1), 1, ""))


def leader_outside_the_isr(world: World) -> None:
    state = partition(world)
    outside = state._replace(isr=(follower(world).node,))
    world.witness.isr_changed(IsrChanged(outside, state.isr, 1, ""))


def isr_that_the_leader_does_not_wait_for(world: World) -> None:
    state = partition(world)
    replica = leader(world).replica
    assert replica is not None
    replica._isr.commit((leader(world).node,), 99)
    world.witness.isr_changed(IsrChanged(state, state.isr, 1, ""))


def member_without_a_committed_record(world: World) -> None:
    state, broker = partition(world), follower(world)
    broker.disk.truncate(3)
    before = tuple(node for node in state.isr if node != broker.node)
    world.witness.isr_changed(IsrChanged(state, before, 1, ""))


def final_log_without_an_acknowledged_record(world: World) -> None:
    leader(world).disk.records[3] = Record(0, 777)
    world.witness.finish(converged=True)


FALSIFIED: list[tuple[Callable[[World], None], str]] = [
    (gap, "R5"),
    (older_epoch_after_a_newer, "R6"),
    (batch_after_the_wrong_one, "R1b"),
    (committed_record_cut, "R10"),
    (epochs_out_of_order, "R7"),
    (other_record_below_the_watermark, "R1"),
    (acknowledged_above_the_watermark, "T9"),
    (acknowledged_with_one_copy, "T9"),
    (follower_of_another_epoch_served, "T11"),
    (two_leaders_in_one_epoch, "T3"),
    (leader_without_a_committed_record, "R3"),
    (controller_that_falls_back, "T4"),
    (leader_outside_the_isr, "T5"),
    (isr_that_the_leader_does_not_wait_for, "T6"),
    (member_without_a_committed_record, "T10"),
    (final_log_without_an_acknowledged_record, "C1"),
]


@pytest.mark.parametrize(("falsify", "invariant"), FALSIFIED, ids=[falsify.__name__ for falsify, _ in FALSIFIED])
def test_one_thing_that_is_wrong_is_seen(falsify: Callable[[World], None], invariant: str) -> None:
    world = sound()
    falsify(world)
    assert invariant in {violation.invariant for violation in world.witness.violations}


def test_a_violation_names_the_invariant_the_offset_the_replica_and_the_event() -> None:
    world = sound()
    committed_record_cut(world)
    violation = world.witness.violations[0]
    broker = follower(world)
    assert (violation.invariant, violation.offset, violation.nodes) == ("R10", broker.disk.end, (broker.node,))
    assert violation.event == world.events
    assert str(violation).startswith(f"R10 danger at offset {broker.disk.end}, broker {broker.node}, ")


# ------------------------------------------------------------------------------------------------ what is excused


def test_what_an_unclean_election_gives_up_is_documented() -> None:
    chosen = setup("4.1", {"unclean.leader.election.enable": "true", "acks": "all", "faults": "pause,isolate,kill"})
    seen = [violation for seed in range(250) for violation in World(seed, chosen).run().violations]
    assert {violation.verdict for violation in seen if violation.kind == "lost-write"} == {Verdict.DOCUMENTED}
    assert gravest(tuple(seen)) is None


def test_what_was_acknowledged_with_acks_1_and_never_committed_is_weak() -> None:
    chosen = setup("4.1", SAFE | {"acks": "1", "faults": "kill,pause,isolate"})
    lost = [one for seed in range(120) for one in World(seed, chosen).run().violations if one.kind == "lost-write"]
    assert {one.verdict for one in lost} == {Verdict.WEAK}
