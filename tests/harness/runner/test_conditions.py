from __future__ import annotations

from dataclasses import replace

import pytest

from harness.controls import CONTROLS
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.runner.conditions import leaderless, out_of_sync, unmet, unsettled
from harness.steps import Committed, ReplicaState, Until
from harness.target import QuorumView, ReplicaView
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view

LEDGER = TopicPartition("ledger", 0)
AUDIT = TopicPartition("audit", 0)


def replica(role: str = "follower", end: int = 5, high_watermark: int = 5) -> ReplicaView:
    return ReplicaView(role, NodeId(1), 3, high_watermark, end, 0, (NodeId(1), NodeId(2)), {})


@pytest.fixture
def target() -> ScriptedTarget:
    view = cluster_view(3, {LEDGER: partition_view(1, [1, 2], 3), AUDIT: partition_view(2, [2, 1], 8)})
    made = ScriptedTarget(shown=view)
    made.replicas = {("1", LEDGER): replica("leader"), ("2", LEDGER): replica()}
    return made


def missing(until: Until, target: ScriptedTarget) -> list[str]:
    return unmet(until, target, [LEDGER, AUDIT], {LEDGER: 4})


def test_what_is_so_is_not_missing(target: ScriptedTarget) -> None:
    until = Until(topic="ledger", leader=1, leader_epoch=3, isr=(2, 1), polled=4)
    assert not missing(until, target)
    assert not missing(Until(topic="ledger", replicas=(ReplicaState(node=2, role="follower"),)), target)


def test_what_is_not_so_is_said_with_what_was_seen_instead(target: ScriptedTarget) -> None:
    assert missing(Until(leader=1), target) == ["audit-0: the leader is 2, not 1"]
    assert missing(Until(topic="ledger", leader_epoch=4), target) == ["ledger-0: the leader epoch is 3, not 4"]
    assert missing(Until(topic="ledger", isr=(1,)), target) == ["ledger-0: the ISR is [1, 2], not [1]"]
    assert missing(Until(topic="ledger", polled=5), target) == ["ledger-0: polled to 4, not 5"]
    behind = Until(topic="ledger", replicas=(ReplicaState(node=2, high_watermark=4),))
    assert missing(behind, target) == ["ledger-0: on broker 2 high_watermark is 5, not 4"]


def test_a_controller_that_cannot_be_reached_meets_no_condition(target: ScriptedTarget) -> None:
    target.shown = cluster_view(0)
    assert len(missing(Until(leader=1), target)) == 2


def test_a_dead_broker_meets_no_condition(target: ScriptedTarget) -> None:
    target.kill("2")
    until = Until(topic="ledger", replicas=(ReplicaState(node=2, role="follower"),))
    assert missing(until, target) == ["ledger-0: node 2 does not answer"]


def test_a_whole_cluster_is_settled(target: ScriptedTarget) -> None:
    assert not unsettled(target, [LEDGER])


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"log_end_offset": 4}, "the log ends at 4"),
        ({"high_watermark": 4}, "high watermark 4"),
        ({"leader": NodeId(0)}, "takes 0 for the leader, not 1"),
    ],
)
def test_a_replica_that_lags_is_not_settled(target: ScriptedTarget, change: dict[str, int], phrase: str) -> None:
    target.replicas["2", LEDGER] = replace(replica(), **change)  # type: ignore[arg-type]
    [said] = unsettled(target, [LEDGER])
    assert phrase in said


def test_where_brokers_do_not_say_what_they_hold_a_full_isr_is_settled(
    target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.replicas["2", LEDGER] = replica(end=4)
    assert unsettled(target, [LEDGER])
    monkeypatch.setattr(ScriptedTarget, "controls", CONTROLS)
    assert unsettled(target, [LEDGER]) == []
    target.shown = cluster_view(3, {LEDGER: replace(partition_view(1, [1, 2]), isr=(NodeId(1),))})
    assert unsettled(target, [LEDGER]) == ["ledger-0: the ISR is [1], not [1, 2]"]


def test_a_small_isr_and_a_dead_replica_are_not_settled(target: ScriptedTarget) -> None:
    target.kill("2")
    assert unsettled(target, [LEDGER]) == ["ledger-0: node 2 does not answer"]
    state = partition_view(1, [1, 2])
    target.shown = cluster_view(3, {LEDGER: replace(state, isr=(NodeId(1),))})
    assert unsettled(target, [LEDGER]) == ["ledger-0: the ISR is [1], not [1, 2]"]


def test_what_the_controller_says_of_sessions_and_eligible_replicas_is_awaited(target: ScriptedTarget) -> None:
    ledger = replace(partition_view(1, [1]), elr=(NodeId(2), NodeId(0)))
    target.shown = replace(target.shown, live=(NodeId(1),), partitions={LEDGER: ledger})
    assert not missing(Until(topic="ledger", live=(1,), elr=(0, 2)), target)
    assert missing(Until(topic="ledger", live=(0, 1)), target) == ["the brokers with a session are [1], not [0, 1]"]
    assert missing(Until(topic="ledger", elr=()), target) == ["ledger-0: the ELR is [2, 0], not []"]


def test_where_a_log_starts_is_awaited(target: ScriptedTarget) -> None:
    target.replicas["2", LEDGER] = replace(replica(), log_start_offset=3)
    assert not missing(Until(topic="ledger", replicas=(ReplicaState(node=2, log_start_offset=3),)), target)
    late = Until(topic="ledger", replicas=(ReplicaState(node=2, log_start_offset=4),))
    assert missing(late, target) == ["ledger-0: on broker 2 log_start_offset is 3, not 4"]


def test_brokers_that_end_themselves_are_awaited_by_name(target: ScriptedTarget) -> None:
    target.exited.add("2")
    assert not missing(Until(exited=(2,)), target)
    assert missing(Until(exited=(1, 2)), target) == ["node 1 has not ended itself"]


def test_what_a_group_has_committed_is_awaited(target: ScriptedTarget) -> None:
    target.commits["g"] = {LEDGER: 3}
    assert not missing(Until(committed=Committed(group="g", offsets={"ledger-0": 3})), target)
    more = Committed(group="g", offsets={"ledger-0": 4, "audit-0": 1})
    assert missing(Until(committed=more), target) == [
        "ledger-0: group g has committed 3, not 4",
        "audit-0: group g has committed nothing, not 1",
    ]


def test_nobody_waits_for_a_broker_that_has_ended_itself(target: ScriptedTarget) -> None:
    state = replace(partition_view(1, [1, 2]), isr=(NodeId(1),))
    target.shown = replace(cluster_view(3, {LEDGER: state}), live=(NodeId(0), NodeId(1)))
    target.exited.add("2")
    assert not unsettled(target, [LEDGER])
    target.shown = replace(target.shown, partitions={LEDGER: replace(state, isr=(NodeId(1), NodeId(2)))})
    assert unsettled(target, [LEDGER]) == ["ledger-0: the ISR is [1, 2], not [1]"]


def test_a_partition_without_a_leader_is_not_settled_and_is_leaderless(target: ScriptedTarget) -> None:
    assert leaderless(target, [LEDGER]) == ["ledger-0: the leader is 1"]
    target.shown = cluster_view(3, {LEDGER: replace(partition_view(1, [1, 2]), leader=NO_LEADER)})
    assert unsettled(target, [LEDGER]) == ["ledger-0: there is no leader"]
    assert leaderless(target, [LEDGER]) == []
    assert leaderless(target, [AUDIT]) == ["audit-0: the controller says nothing of it"]


def test_a_controller_that_does_not_follow_the_active_one_is_out_of_sync(target: ScriptedTarget) -> None:
    quorum = QuorumView(3, 40, {"controller-1": 41, "controller-2": 39, "controller-3": -1})
    target.shown = replace(target.shown, quorum=quorum)
    assert out_of_sync(target, [LEDGER]) == [
        "node controller-2: its metadata log ends at 39, and 40 is decided",
        "node controller-3: its metadata log ends at -1, and 40 is decided",
    ]
    target.shown = replace(
        target.shown, quorum=replace(quorum, log_end_offsets={"controller-1": 41, "controller-2": 40})
    )
    assert not out_of_sync(target, [LEDGER])
