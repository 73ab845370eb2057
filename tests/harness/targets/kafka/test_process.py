"""Whole runs on real Kafka, and what is left of them. All releases but the newest are for the night."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import runner, scenario
from harness.cli.verdicts import Engine, judge
from harness.errors import EnvironmentFault
from harness.model import CONTROLLER
from harness.outcome import Word
from harness.runner import plan
from harness.runner.matrix import cell
from harness.runner.observation import Gathered, observe
from harness.targets.addresses import Address
from harness.targets.kafka import cluster
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.jvm import Jvm
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.releases import TRIED, release
from harness.targets.kafka.server_properties import understood
from harness.targets.kafka.zookeeper import vacate_control
from tests.harness.targets.contract import all_but, fetched_or_skip
from tests.replica_rows import held

HARNESS = Path(__file__).parent / "kafka_to_be_killed.py"
QUICK, NEWEST = "0.10.2.2", TRIED[-1]
WITH_ZOOKEEPER = pytest.mark.nightly("starts Kafka for a case of its own; by day the newest release is run and killed")
LEADER_DIES = """\
id: leader-dies
title: The leader dies under load and comes back
source: a test
cluster: {settings: {min.insync.replicas: 2}}
topics: [{name: ledger, partitions: 2, replicas: [0, 1, 2]}]
workload: {name: unique_sends, consumers: 1}
settle_s: 60
schedule:
  - send: {per_partition: 10}
  - inject: {fault: kill, node: 0, as: dead}
  - until: {leader: 1, isr: [1, 2], replicas: [{node: 1, role: leader}]}
  - send: {per_partition: 10}
  - heal: dead
  - until: {isr: [0, 1, 2], within_s: 40}
  - send: {per_partition: 10}
"""
BY_DAY = (
    LEADER_DIES.replace("fault: kill", "fault: power_loss")
    + """\
  - inject: {fault: partition, links: [[1, 2]], as: cut}
  - inject: {fault: clock, node: 0, offset_ms: 60000, as: early}
  - inject: {fault: disk_full, node: 0, free_bytes: 60000, as: limited}
  - heal: cut
  - heal: early
  - heal: limited
"""
)
"""For the newest release: links, the clock and the disk are bent, too, each with its probe."""


@pytest.mark.parametrize("version", all_but(NEWEST))
def test_a_release_is_started_loaded_killed_and_found_to_have_kept_everything(version: str, tmp_path: Path) -> None:
    fetched_or_skip(version)
    steps = BY_DAY if version == NEWEST else LEADER_DIES
    directory = runner.run(plan(scenario.parse(steps), f"process:{version}", seed=1), tmp_path)
    verdict = judge([directory.path], Engine.REFERENCE)[0].verdict
    assert verdict.outcome.value == "pass", verdict.reasons
    rows = [row for row in directory.read_table("replica_logs") if row["topic"] == "ledger"]
    on_disk = {(row["node"], row["partition"]): 0 for row in rows}
    for row in rows:
        on_disk[row["node"], row["partition"]] += 1
    assert on_disk == {(node, partition): 30 for node in (0, 1, 2) for partition in (0, 1)}
    assert directory.manifest().versions["kafka"] == version
    for fault in directory.read_table("faults"):
        assert fault["proof"], fault["kind"]
        assert fault["heal_proof"], fault["kind"]
    elected = [
        row for row in directory.read_table("timeline") if row["kind"] == "election" and row["topic"] == "ledger"
    ]
    assert {(row["partition"], row["leader"], row["leader_epoch"]) for row in elected if row["leader"] == 1} == {
        (partition, 1, elected[-1]["leader_epoch"]) for partition in (0, 1)
    }


@pytest.mark.nightly("a run for each of many releases")
@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.10.2.2", (Word.LOST, Word.DIVERGED)),
        ("0.11.0.3", (Word.SAFE,)),
        ("2.8.1", (Word.SAFE,)),
        ("4.1.0", (Word.SAFE,)),
    ],
)
def test_the_double_failover_loses_acknowledged_records_on_the_release_that_had_it_and_on_no_later_one(
    version: str, words: tuple[Word, ...], tmp_path: Path
) -> None:
    fetched_or_skip(version)
    made = plan(scenario.load("kip-101-double-failover"), f"process:{version}", seed=1)
    directory = runner.run(made, tmp_path)
    judge([directory.path], Engine.REFERENCE)
    found = cell(made, observe(Gathered.recorded(directory.path)))
    assert not found.differences
    assert found.observed == words


@pytest.mark.parametrize(
    ("kafka", "processes"),
    [
        (QUICK, 4),  # the proxies, ZooKeeper, the controller's broker, and broker 0
        # the proxies, three controllers, and broker 0
        pytest.param("4.1.0#quorum", 5, marks=pytest.mark.nightly("three controllers; by day with ZooKeeper")),
    ],
)
def test_nothing_is_left_of_real_kafka_whose_harness_was_killed(kafka: str, processes: int, tmp_path: Path) -> None:
    fetched_or_skip(kafka.partition("#")[0])
    harness = subprocess.Popen([sys.executable, str(HARNESS), str(tmp_path), kafka], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    pids = [int(word) for word in harness.stdout.readline().split()]
    try:
        assert sum(map(psutil.pid_exists, pids)) == processes  # Kafka's tool for formatting has ended
        os.kill(pids[-1], signal.SIGSTOP)
        harness.kill()
        deadline = time.monotonic() + 60
        while any(map(is_alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(map(is_alive, pids))
    finally:
        harness.stdout.close()
        harness.wait()


def test_a_cluster_that_was_not_started_is_stopped_all_the_same(tmp_path: Path) -> None:
    distribution = fetched_or_skip(QUICK)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    assert target.nodes() == ["0", "1", "controller"]
    target.stop()
    target.stop()
    assert not target.pids()["0"]


def deposed_soon(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """Have controllers without effect deposed after a second; returns where ZooKeeper is, once for each deposed."""
    vacated: list[Address] = []

    def recorded(address: Address) -> None:
        vacated.append(address)
        vacate_control(address)

    monkeypatch.setattr(cluster, "vacate_control", recorded)
    monkeypatch.setattr(cluster, "_HEARD_TIMEOUT_S", 1.0)
    return vacated


@WITH_ZOOKEEPER
def test_a_controller_from_which_the_brokers_hear_nothing_is_elected_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = fetched_or_skip(QUICK)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    know = ProcessTarget._all_know_each_other
    vacated = deposed_soon(monkeypatch)
    monkeypatch.setattr(ProcessTarget, "_all_know_each_other", lambda one: bool(vacated) and know(one))
    try:
        target.start()
        assert vacated
    finally:
        target.stop()


@WITH_ZOOKEEPER
def test_a_controller_that_does_not_act_is_elected_anew_at_every_election(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = fetched_or_skip(QUICK)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    acts = ProcessTarget._controller_acts
    try:
        target.start()
        target.kill(CONTROLLER)
        vacated = deposed_soon(monkeypatch)
        monkeypatch.setattr(ProcessTarget, "_controller_acts", lambda one: bool(vacated) and acts(one))
        target.restart(CONTROLLER)
        assert vacated
        assert target._controller_acts()
    finally:
        target.stop()


def test_a_node_that_ends_by_itself_in_the_moment_of_the_stop_keeps_no_other_from_being_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = Distribution(release(QUICK), tmp_path)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    for name in ("0", "1"):
        target._node(name).processes[0].start(("sleep", "600"), {})
    resume = Jvm.resume

    def resumed_too_late(jvm: Jvm) -> None:
        if jvm.name == "0":
            jvm.kill()
        resume(jvm)

    monkeypatch.setattr(Jvm, "resume", resumed_too_late)
    target.stop()
    assert not target._node("1").exists


@pytest.mark.parametrize("version", [QUICK, "4.1.0"])
def test_a_cluster_that_was_not_started_has_nothing_to_tell(version: str, tmp_path: Path) -> None:
    distribution = Distribution(release(version), tmp_path)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    assert not list(target.timeline("r"))
    assert not list(held(target))


def test_a_broker_whose_heap_was_full_has_not_ended_for_a_reason_of_its_own(tmp_path: Path) -> None:
    distribution = Distribution(release(QUICK), tmp_path)
    target = ProcessTarget(tmp_path, 2, LocalKafka(distribution), understood({}, distribution.release, 2))
    (jvm,) = target._node("0").processes
    jvm.start(("sh", "-c", "exit 1"), {})
    assert jvm.wait(60)
    assert target.has_exited("0").holds
    jvm.start(("sh", "-c", "exit 3"), {})
    assert jvm.wait(60)
    with pytest.raises(EnvironmentFault, match="node 0 has run out of memory"):
        target.has_exited("0")


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
