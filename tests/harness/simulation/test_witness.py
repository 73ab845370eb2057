"""The witness sees what is wrong: protocols with one rule broken, and sound worlds in which one thing is falsified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest

from harness.checker import Verdict
from harness.error_codes import ErrorCode
from harness.exploration.explore import run_seed
from harness.model import NodeId
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.replication.leadership import Leadership
from harness.replication.messages import (
    BatchSpan,
    EpochEntry,
    NextEpochLookup,
    NextFetch,
    RaiseLogStart,
    StartLogAt,
    Truncate,
)
from harness.replication.replica import Replica
from harness.simulation.core.broker import Broker
from harness.simulation.core.clients import Produce
from harness.simulation.core.configuration import Configuration, setup
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.core.disk import Batch, Record, laid_out
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.invariants.leaders import LeaderHoldsCommitted, OneLeaderPerEpoch
from harness.simulation.trace import Trace
from harness.simulation.violations import gravest
from tests.by_night import seeds

InvariantT = TypeVar("InvariantT", bound=Invariant)

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
QUIET = Configuration(horizon_ms=100, send_every_ms=10, records_per_send=1)

MUTANTS = [
    ("diverging_fetch_is_progress", "true", {"T7", "T9", "T10"}, 165),
    ("stale_truncation_applied", "true", {"R10", "C1", "R3", "T13"}, 243),
    ("isr_update", "naive", {"T7", "T10"}, 191),
    ("isr_join", "hw", {"T10"}, 65),
    ("hw_from_diverging", "true", {"R1"}, 51),
    ("empty_isr_retry", "true", {"T5", "T13"}, 1),
    ("truncation", "hw", {"C1", "C8", "R3"}, 71),
    ("truncation", "leader_hw", {"R1", "R1b", "C1"}, 98),
    ("elections", "isr", {"C1"}, 106),
    ("broker_bounce", "unnoticed", {"R1b", "C1", "R1"}, 35),
    ("lookup_below_first", "undefined", {"T13"}, 98),
]
"""Knobs, the invariants that one of them may break first, and the first seed that breaks one."""


REMEDIES = {"replication.reelected_leader": "forgets", "replication.straddled_batch": "cut"}


@pytest.mark.parametrize(
    "seed",
    [
        # Broker 1 loses its session before it confirms that broker 0 has one, and returns.
        1501971108,
        # Broker 0 lost its log, and begins anew where its leader's log begins.
        1502017646,
    ],
)
def test_a_seed_that_was_accused_by_mistake_is_safe(seed: int) -> None:
    assert run_seed(seed, setup("4.1", {"min.insync.replicas": "2", **REMEDIES})).violation is None


@pytest.mark.parametrize(("knob", "value", "invariants", "first"), MUTANTS, ids=[f"{k}={v}" for k, v, *_ in MUTANTS])
def test_a_protocol_with_one_rule_broken_is_caught(knob: str, value: str, invariants: set[str], first: int) -> None:
    chosen = setup("4.1", SAFE | {f"replication.{knob}": value})
    found = (run_seed(seed, chosen).violation for seed in range(first, 500))
    assert next(one for one in found if one is not None).invariant in invariants


@seeds(day=6, night=40)
def test_nobody_in_sync_is_legal_where_the_last_member_leaves_too(seeds: range) -> None:
    settings = {"unclean.leader.election.enable": "true", "faults": "kill:3,power_loss,partition", "fault.count": "16"}
    found: set[str] = set()
    for rule in ("leaves_if_unclean", "stays"):
        chosen = setup("0.11", {**settings, "replication.last_isr_member": rule})
        found |= {one.invariant for seed in seeds for one in CoreSimulation(seed, chosen).run().violations}
    assert "T5" not in found


def test_a_controller_that_lets_in_who_has_no_session_is_caught_where_leaders_do_not_know_better() -> None:
    chosen = setup("4.1", SAFE | {"replication.fenced_replicas_join": "true", "replication.newcomers": "anybody"})
    found = (run_seed(seed, chosen).violation for seed in range(94, 200))
    assert next(one for one in found if one is not None).invariant == "T5"


@pytest.mark.parametrize(("knob", "value"), [("hw_rule", "min_of_all"), ("follower_hw_rule", "own")])
def test_a_watermark_that_never_rises_is_no_rest(knob: str, value: str) -> None:
    violation = run_seed(0, setup("4.1", SAFE | {f"replication.{knob}": value})).violation
    assert violation is not None
    assert (violation.invariant, violation.kind) == ("T13", "stuck")


def test_a_watermark_that_rises_below_the_minimal_isr_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "_frozen", lambda _: False)
    chosen = setup("4.1", SAFE | {"faults": "partition,pause", "acks": "1"})
    worlds = (CoreSimulation(seed, chosen) for seed in range(60))
    assert any(violation.invariant == "T8" for world in worlds for violation in world.run().violations)


def test_an_epoch_end_that_is_told_to_a_follower_of_another_epoch_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Replica, "judge_lookup", lambda self, _, requested: (ErrorCode.NONE, self.end_offset_for(requested))
    )
    mix = {"faults": "partition,pause", "disturbances": "elect"}
    chosen = setup("2.8", SAFE | mix | {"replication.truncation": "epoch_pair"})
    worlds = (CoreSimulation(seed, chosen) for seed in range(60))
    assert any(violation.invariant == "T11" for world in worlds for violation in world.run().violations)


# -------------------------------------------------------------------------------------------- one thing falsified


def sound(**changes: Any) -> CoreSimulation:
    """A run without any fault, at rest, with some committed records."""
    world = CoreSimulation(0, setup("4.1", {}), configuration=replace(QUIET, **changes), faults=())
    finished = world.run()
    assert finished.converged
    assert not finished.violations
    assert len(world.witness.committed.records) > 5
    return world


def watching(world: CoreSimulation, kind: type[InvariantT]) -> InvariantT:
    return next(one for one in world.witness.invariants if isinstance(one, kind))


def leader(world: CoreSimulation) -> Broker:
    assert world.controller.partition is not None
    return world.brokers[world.controller.partition.leader]


def follower(world: CoreSimulation) -> Broker:
    return next(broker for broker in world.brokers if broker is not leader(world))


def partition(world: CoreSimulation) -> PartitionState:
    return cast("PartitionState", world.controller.partition)


def append(world: CoreSimulation, broker: Broker, *batches: Batch) -> None:
    broker.disk.batches += batches
    world.witness.appended(broker, list(batches))


def gap(world: CoreSimulation) -> None:
    broker = leader(world)
    append(world, broker, laid_out(BatchSpan(broker.disk.end + 1, broker.disk.end + 2, 0), (99,)))


def older_epoch_after_a_newer(world: CoreSimulation) -> None:
    broker = leader(world)
    end = broker.disk.end
    newer, older = BatchSpan(end, end + 1, 7), BatchSpan(end + 1, end + 2, 6)
    append(world, broker, laid_out(newer, (98,)), laid_out(older, (99,)))


def batch_after_the_wrong_one(world: CoreSimulation) -> None:
    broker = follower(world)
    last = broker.disk.batches.pop()
    broker.disk.batches[-1] = laid_out(replace(broker.disk.batches[-1].span, leader_epoch=5), (99,))
    key = (5, last.span.base_offset)
    world.witness.lineage.batches[key] = (last.records, (0, last.span.base_offset - 1))
    append(world, broker, last._replace(span=replace(last.span, leader_epoch=5)))


def committed_record_cut(world: CoreSimulation) -> None:
    cut_last_record(world, follower(world))


def cut_last_record(world: CoreSimulation, broker: Broker) -> None:
    end = broker.disk.end
    cut = broker.disk.truncate(end - 1)
    world.witness.truncated(broker, Truncate(end - 1, "nothing"), cut)


def epochs_out_of_order(world: CoreSimulation) -> None:
    world.witness.epochs_changed(leader(world), (EpochEntry(3, 0), EpochEntry(2, 1)))


def other_record_below_the_watermark(world: CoreSimulation) -> None:
    broker = follower(world)
    broker.disk.records[2] = Record(0, 1234)
    world.witness.committed.compared[broker.node] = 0
    world.witness.watermark_advanced(broker, broker.disk.end)


def acknowledged_above_the_watermark(world: CoreSimulation) -> None:
    broker = leader(world)
    produce = Produce(world.producers[0], 99, -1, (4321,))
    world.witness.acknowledged(broker, produce, broker.disk.end)


def acknowledged_with_one_copy(world: CoreSimulation) -> None:
    broker = leader(world)
    for other in world.brokers:
        if other is not broker:
            other.disk.truncate(1)
    at = broker.disk.end - 1
    produce = Produce(world.producers[0], 99, -1, (broker.disk.records[at].value,))
    world.witness.acknowledged(broker, produce, at)


def follower_of_another_epoch_served(world: CoreSimulation) -> None:
    world.witness.fetch_served(leader(world), NextFetch(leader(world).node, 17, 0, -1))


def two_leaders_in_one_epoch(world: CoreSimulation) -> None:
    broker = leader(world)
    assert broker.replica is not None
    watching(world, OneLeaderPerEpoch).leaders[broker.replica.leader_epoch] = follower(world).node
    world.witness.state_applied(broker, (-1, -1))


def leader_without_a_committed_record(world: CoreSimulation) -> None:
    broker = leader(world)
    broker.disk.truncate(3)
    world.witness.state_applied(broker, (-1, -1))


def controller_that_falls_back(world: CoreSimulation) -> None:
    state = partition(world)
    world.witness.elected(Elected(state, True, True, NodeId(-1), 1, ""))
    world.witness.elected(Elected(state._replace(partition_epoch=-1), True, True, NodeId(-1), 1, ""))


def leader_outside_the_isr(world: CoreSimulation) -> None:
    state = partition(world)
    outside = state._replace(isr=(follower(world).node,))
    world.witness.isr_changed(IsrChanged(outside, state.isr, 1, ""))


def fewer_than_the_minimal_isr_may_be_elected(world: CoreSimulation) -> None:
    state = partition(world)
    alone = state._replace(isr=(state.leader,), elr=(), last_known_elr=())
    world.witness.isr_changed(IsrChanged(alone, state.isr, 1, ""))


def member_of_the_isr_without_a_session(world: CoreSimulation) -> None:
    state, broker = partition(world), follower(world)
    core = world.controller.core
    assert core is not None
    core._state.brokers[broker.node] = replace(core._state.brokers[broker.node], live=False)
    world.witness.isr_changed(IsrChanged(state, state.isr, 1, ""))


def isr_that_the_leader_does_not_wait_for(world: CoreSimulation) -> None:
    state = partition(world)
    replica = leader(world).replica
    assert replica is not None
    replica._isr.commit((leader(world).node,), 99)
    world.witness.isr_changed(IsrChanged(state, state.isr, 1, ""))


def member_without_a_committed_record(world: CoreSimulation) -> None:
    state, broker = partition(world), follower(world)
    broker.disk.truncate(3)
    before = tuple(node for node in state.isr if node != broker.node)
    world.witness.isr_changed(IsrChanged(state, before, 1, ""))


def records_deleted_that_are_not_committed(world: CoreSimulation) -> None:
    broker = leader(world)
    world.witness.log_start_raised(broker, RaiseLogStart(len(world.witness.committed.records) + 1, "retention"))


def follower_that_deletes_more_than_anybody_wanted(world: CoreSimulation) -> None:
    world.witness.log_start_raised(follower(world), RaiseLogStart(2, "delete_records"))
    world.witness.log_start_raised(follower(world), RaiseLogStart(3, "leader"))


def log_that_begins_anew_where_nothing_was_deleted(world: CoreSimulation) -> None:
    broker = follower(world)
    broker.disk.batches.clear()
    world.witness.wiped(broker, StartLogAt(2, "nothing"))


def leader_whose_log_ends_before_what_was_deleted(world: CoreSimulation) -> None:
    broker, witness = leader(world), world.witness
    assert broker.replica is not None
    witness.log_start_raised(follower(world), RaiseLogStart(witness.committed.end, "retention"))
    broker.disk.truncate(2)
    witness.state_applied(broker, (-1, 0))


def final_log_without_an_acknowledged_record(world: CoreSimulation) -> None:
    leader(world).disk.records[3] = Record(0, 777)
    world.witness.finish(converged=True)


def no_log_has_an_acknowledged_record_and_nobody_leads(world: CoreSimulation) -> None:
    for broker in world.brokers:
        broker.disk.truncate(3)
    world.controller.die()
    world.witness.finish(converged=False)


def epoch_end_told_to_a_follower_of_another_epoch(world: CoreSimulation) -> None:
    world.witness.lookup_served(leader(world), NextEpochLookup(leader(world).node, 17, 0))


FALSIFIED: list[tuple[Callable[[CoreSimulation], None], str]] = [
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
    (records_deleted_that_are_not_committed, "R8"),
    (follower_that_deletes_more_than_anybody_wanted, "R8"),
    (log_that_begins_anew_where_nothing_was_deleted, "R8"),
    (leader_whose_log_ends_before_what_was_deleted, "R3"),
    (final_log_without_an_acknowledged_record, "C1"),
    (no_log_has_an_acknowledged_record_and_nobody_leads, "C1"),
    (fewer_than_the_minimal_isr_may_be_elected, "T5"),
    (member_of_the_isr_without_a_session, "T5"),
    (epoch_end_told_to_a_follower_of_another_epoch, "T11"),
]


@pytest.mark.parametrize(("falsify", "invariant"), FALSIFIED, ids=[falsify.__name__ for falsify, _ in FALSIFIED])
def test_one_thing_that_is_wrong_is_seen(falsify: Callable[[CoreSimulation], None], invariant: str) -> None:
    world = sound()
    falsify(world)
    assert invariant in {violation.invariant for violation in world.witness.violations}


@pytest.mark.parametrize(("is_out", "later", "found"), [(False, True, True), (True, False, True), (True, True, False)])
def test_a_replica_outside_of_the_isr_may_cut_what_a_later_leader_committed(
    is_out: bool, later: bool, found: bool
) -> None:
    world = sound()
    state, broker = partition(world), follower(world)
    if is_out:
        rest = tuple(node for node in state.isr if node != broker.node)
        world.controller.die()
        world.witness.isr_changed(IsrChanged(state._replace(isr=rest), state.isr, 1, ""))
    world.witness.committed.epochs[-1] += later
    cut_last_record(world, broker)
    assert ("R10" in {violation.invariant for violation in world.witness.violations}) is found


def test_a_violation_names_the_invariant_the_offset_the_replica_and_the_event() -> None:
    world = sound()
    committed_record_cut(world)
    violation = world.witness.violations[0]
    broker = follower(world)
    assert (violation.invariant, violation.offset, violation.nodes) == ("R10", broker.disk.end, (broker.node,))
    assert violation.event == world.events
    assert str(violation).startswith(f"R10 danger at offset {broker.disk.end}, broker {broker.node}, ")


def test_what_some_log_still_has_is_not_lost_while_nobody_leads() -> None:
    world = sound()
    for broker in world.brokers[1:]:
        broker.disk.truncate(3)
    world.controller.die()
    world.witness.finish(converged=False)
    assert "C1" not in {violation.invariant for violation in world.witness.violations}


def test_a_broker_that_lost_power_is_excused_in_the_isr_only_as_long_as_the_controller_has_not_heard_of_it() -> None:
    world = sound()
    follower(world).lossy = True
    member_without_a_committed_record(world)
    assert [one.invariant for one in world.witness.violations] == ["T10"]
    world = sound()
    broker = follower(world)
    broker.lossy = True
    broker.life += 1
    member_without_a_committed_record(world)
    assert world.witness.violations == []


# ------------------------------------------------------------------------------------------------ what is excused


def elect_uncleanly(world: CoreSimulation) -> None:
    state = partition(world)
    newer = state._replace(leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
    world.witness.elected(Elected(newer, False, False, state.leader, 1, ""))


def test_an_excused_breach_hides_no_violation_of_the_same_replica() -> None:
    witness = sound().witness
    for verdict in (Verdict.DOCUMENTED, Verdict.DOCUMENTED, Verdict.VIOLATION):
        witness.findings.accuse("R10", "danger", "", nodes=(1,), verdict=verdict)
    assert [one.verdict for one in witness.violations] == [Verdict.DOCUMENTED, Verdict.VIOLATION]


def test_the_election_of_the_last_known_leader_excuses_nothing() -> None:
    world = sound()
    elect_uncleanly(world)
    committed_record_cut(world)
    assert [(one.invariant, one.verdict) for one in world.witness.violations] == [("R10", Verdict.VIOLATION)]


@pytest.mark.parametrize("changes", [{"unclean_leader_election_enable": True}, {"lossy_budget": 2}], ids=str)
def test_an_election_that_may_lose_records_excuses_those_committed_before_only(changes: dict[str, Any]) -> None:
    world = sound(**changes)
    elect_uncleanly(world)
    broker, witness = follower(world), world.witness
    assert broker.replica is not None
    committed_record_cut(world)
    witness.committed.epochs[-2] = witness.committed.given_up
    broker.replica.leader_epoch = witness.committed.given_up
    committed_record_cut(world)
    assert [one.verdict for one in witness.violations] == [Verdict.DOCUMENTED, Verdict.VIOLATION]


def test_the_first_leader_since_an_unclean_election_may_lack_records_and_the_next_one_may_not() -> None:
    world = sound(unclean_leader_election_enable=True)
    elect_uncleanly(world)
    broker, witness = leader(world), world.witness
    assert broker.replica is not None
    for epoch in (witness.committed.given_up + 1, witness.committed.given_up + 2):
        broker.replica.leader_epoch = epoch
        watching(world, LeaderHoldsCommitted).newest_epoch = epoch
        broker.disk.truncate(broker.disk.end - 2)
        witness.state_applied(broker, (epoch - 1, 0))
    found = [(one.invariant, one.verdict) for one in witness.violations]
    assert ("R3", Verdict.DOCUMENTED) in found
    assert ("R3", Verdict.VIOLATION) in found
    assert found.index(("R3", Verdict.DOCUMENTED)) < found.index(("R3", Verdict.VIOLATION))


@seeds(day=10, night=40, first=8)
def test_where_unclean_elections_are_disabled_nothing_is_ever_given_up(seeds: range) -> None:
    chosen = setup("4.1", SAFE | {"faults": "kill:3,kill/controller"})
    lines: list[str] = []
    worlds = [CoreSimulation(seed, chosen, trace=Trace(lines.append)) for seed in seeds]
    for world in worlds:
        world.run()
    assert any("Elected " in line and "clean=False" in line for line in lines)
    assert {world.witness.committed.given_up for world in worlds} == {-1}


@seeds(day=12, night=250, first=172)
def test_what_an_unclean_election_gives_up_is_documented(seeds: range) -> None:
    chosen = setup("4.1", {"unclean.leader.election.enable": "true", "acks": "all", "faults": "pause,partition,kill"})
    seen = [violation for seed in seeds for violation in CoreSimulation(seed, chosen).run().violations]
    assert {violation.verdict for violation in seen if violation.kind == "lost-write"} == {Verdict.DOCUMENTED}
    assert gravest(tuple(seen)) is None


@seeds(day=12, night=120, first=9)
def test_what_was_acknowledged_with_acks_1_and_never_committed_is_weak(seeds: range) -> None:
    chosen = setup("4.1", SAFE | {"acks": "1", "faults": "kill,pause,partition"})
    runs = (CoreSimulation(seed, chosen).run() for seed in seeds)
    lost = [one for run in runs for one in run.violations if one.kind == "lost-write"]
    assert {one.verdict for one in lost} == {Verdict.WEAK}
