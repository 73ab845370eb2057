from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import TopicPartition, is_broker, node_id, node_name
from harness.selection import NothingToAimAt, aim, brokers, nodes
from harness.target import ClusterView
from harness.testing.scripted_target import cluster_view, partition_view

LEDGER = TopicPartition("ledger", 0)
AUDIT = TopicPartition("audit", 0)
VIEW = cluster_view(3, {LEDGER: partition_view(0, [0, 1, 2]), AUDIT: partition_view(2, [2, 1])})
SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS)
def test_a_leader_is_a_leader_and_a_follower_is_in_sync_and_does_not_lead(seed: int) -> None:
    assert aim("leader", VIEW, seed) in ("0", "2")
    assert aim("leader", VIEW, seed, "audit") == "2"
    assert aim("follower", VIEW, seed, "audit", 0) == "1"
    assert aim("follower", VIEW, seed, "ledger") in ("1", "2")


@given(SEEDS)
def test_what_is_to_be_avoided_is_not_picked(seed: int) -> None:
    assert aim("any", VIEW, seed, avoid=["0", "2"]) == "1"


def test_different_seeds_pick_different_nodes() -> None:
    assert {aim("any", VIEW, seed) for seed in range(50)} == {"0", "1", "2"}


def test_an_id_and_the_controller_mean_themselves() -> None:
    assert aim(7, VIEW, 0) == "7"
    assert aim("controller", VIEW, 0) == "controller"


def test_of_a_quorum_the_controller_is_the_active_one_and_each_can_be_named() -> None:
    quorum = replace(VIEW, controller="controller-2", controllers=("controller-1", "controller-2", "controller-3"))
    assert aim("controller", quorum, 0) == "controller-2"
    assert aim("controller-1", quorum, 0) == "controller-1"
    assert nodes(quorum) == ["0", "1", "2", "controller-1", "controller-2", "controller-3"]
    with pytest.raises(NothingToAimAt, match="active controller"):
        aim("controller", replace(quorum, controller=None), 0)


def test_a_combined_node_is_one_node() -> None:
    combined = replace(VIEW, controller="1", controllers=("0", "1", "2"))
    assert aim("controller", combined, 0) == "1"
    assert nodes(combined) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["0", "17", "controller", "controller-1", "controller-3"])
def test_a_node_s_name_is_told_by_its_id(name: str) -> None:
    assert node_name(node_id(name)) == name
    assert is_broker(name) == name.isdecimal()


def test_a_cluster_without_a_leader_has_nothing_to_aim_at() -> None:
    headless = cluster_view(3, {LEDGER: partition_view(-1, [0])})
    with pytest.raises(NothingToAimAt, match="leader of ledger-any"):
        aim("leader", headless, 0, "ledger")
    with pytest.raises(NothingToAimAt, match="live broker"):
        aim("any", ClusterView(0, (), {}), 0)


def test_a_dead_broker_that_holds_a_replica_is_still_a_broker() -> None:
    assert brokers(ClusterView(0, (), {LEDGER: partition_view(0, [0, 1])})) == ["0", "1"]


def test_the_aim_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from harness.selection import aim; from harness.model import TopicPartition as T;"
        "from harness.testing.scripted_target import cluster_view, partition_view as p;"
        "v = cluster_view(5, {T('a', i): p(i % 5, [i % 5, (i + 1) % 5]) for i in range(20)});"
        "print([aim(s, v, n) for n in range(20) for s in ('leader', 'follower', 'any')])"
    )
    picked = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(picked) == 1
