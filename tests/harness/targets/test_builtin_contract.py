"""What every target must do, asked of the built-in one: real processes, real signals, real sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

import faults
from harness.broker.settings import Settings
from harness.errors import EnvironmentFault
from harness.fault import Fault
from harness.model import Link, NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.target import Receipt, Target, TopicSpec
from harness.targets.builtin import BuiltinTarget

LEDGER = TopicPartition("ledger", 0)
HARNESS = Path(__file__).parent / "harness_to_be_killed.py"


def eventually(look: Callable[[], bool], within_s: float = 15.0) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


def holds(probe: Callable[[Target], Receipt], target: Target) -> bool:
    def look() -> bool:
        try:
            return probe(target).holds
        except EnvironmentFault:
            return False

    return eventually(look)


def heals(fault: Fault, target: Target) -> bool:
    fault.heal(target)
    return fault.probe_healed(target).holds


@contextmanager
def in_effect(target: Target, **written: object) -> Iterator[Fault]:
    """Inject a fault, and leave the cluster whole again."""
    fault = faults.parse(written, "test").aimed(target.view(), seed=1)
    fault.inject(target)
    try:
        yield fault
    finally:
        assert eventually(partial(heals, fault, target))
        assert eventually(lambda: not unsettled(target, [LEDGER]))


@pytest.mark.parametrize(
    "written",
    [
        {"fault": "kill", "node": 2},
        {"fault": "kill", "node": "controller"},
        {"fault": "stop", "node": 2},
        {"fault": "stop", "node": "controller"},
        {"fault": "power_loss", "node": 2},
        {"fault": "power_loss", "node": "controller"},
        {"fault": "wipe_disk", "node": 2},
        {"fault": "wipe_disk", "node": 2, "clean": True},
        {"fault": "pause", "node": 2},
        {"fault": "pause", "node": "controller"},
        {"fault": "partition", "links": [[2, 1]]},
        {"fault": "partition", "isolate": 2},
        {"fault": "partition", "links": [["clients", 2]]},
        {"fault": "partition", "links": [[2, "clients"]]},
        {"fault": "partition", "links": [["clients", 2], [2, "clients"]]},
        {"fault": "disk_full", "node": 2, "free_bytes": 0},
        {"fault": "clock", "node": 2, "offset_ms": -60000},
        {"fault": "clock", "node": "controller", "offset_ms": 60000},
    ],
    ids=str,
)
def test_a_fault_is_seen_exactly_while_it_is_in_effect(cluster: BuiltinTarget, written: dict[str, object]) -> None:
    fault = faults.parse(written, "test").aimed(cluster.view(), seed=1)
    assert not fault.probe(cluster).holds
    with in_effect(cluster, **written) as injected:
        assert holds(injected.probe, cluster)
    assert not fault.probe(cluster).holds


def test_a_directed_cut_holds_one_direction_and_not_the_other(cluster: BuiltinTarget) -> None:
    with in_effect(cluster, fault="partition", links=[[2, 1]]):
        assert cluster.is_cut(Link("2", "1")).holds
        reverse = cluster.is_cut(Link("1", "2"))
        assert not reverse.holds
        assert "nothing is withheld" in reverse.seen


def test_a_cut_survives_the_restart_of_either_end(cluster: BuiltinTarget) -> None:
    with in_effect(cluster, fault="partition", links=[[2, 1]]):
        cluster.kill("1")
        cluster.restart("1")
        assert holds(lambda target: target.is_cut(Link("2", "1")), cluster)


def test_a_paused_node_can_be_killed_and_is_dead_only_then(cluster: BuiltinTarget) -> None:
    cluster.pause("1")
    with in_effect(cluster, fault="kill", node=1) as killed:
        receipt = killed.probe(cluster)
        assert receipt.holds
        assert receipt.seen.endswith("is gone, by SIGKILL")
    cluster.pause("1")
    assert not killed.probe(cluster).holds
    cluster.resume("1")


def test_a_node_that_somebody_else_ended_was_not_killed(cluster: BuiltinTarget) -> None:
    os.kill(cluster.pids()["1"], signal.SIGTERM)
    assert eventually(lambda: "1" not in cluster.pids())
    assert not cluster.is_dead("1").holds
    cluster.restart("1")
    assert eventually(lambda: not unsettled(cluster, [LEDGER]))


def test_a_cut_made_while_its_end_was_paused_is_in_force_when_it_goes_on(cluster: BuiltinTarget) -> None:
    with in_effect(cluster, fault="pause", node=1) as paused:
        cluster.cut([Link("2", "1")])
        paused.heal(cluster)
        assert holds(lambda target: target.is_cut(Link("2", "1")), cluster)
        cluster.mend([Link("2", "1")])


def test_a_clock_stays_wrong_across_a_restart_and_two_nodes_are_wrong_by_themselves(cluster: BuiltinTarget) -> None:
    with in_effect(cluster, fault="clock", node=2, offset_ms=3_600_000):
        cluster.kill("2")
        cluster.restart("2")
        assert abs(cluster.clock_offset_ms("2") - 3_600_000) < 1000
        assert abs(cluster.clock_offset_ms("1")) < 1000


def test_faults_of_a_node_that_does_not_exist_are_refused(cluster: BuiltinTarget) -> None:
    acts: list[Callable[[], None]] = [
        lambda: cluster.kill("7"),
        lambda: cluster.pause("7"),
        lambda: cluster.cut([Link("0", "7")]),
        lambda: cluster.limit_disk("7", 0),
        lambda: cluster.offset_clock("7", 5),
    ]
    for act in acts:
        with pytest.raises(EnvironmentFault, match="no node '7'"):
            act()


def test_a_running_node_is_not_started_twice(cluster: BuiltinTarget) -> None:
    with pytest.raises(EnvironmentFault, match=r"node 0 is not at rest: process \d+ is running"):
        cluster.restart("0")


def test_the_view_and_the_replicas_agree_on_who_leads(cluster: BuiltinTarget) -> None:
    view = cluster.view()
    assert view.live == (0, 1, 2)
    leader = view.partitions[LEDGER].leader
    seen = [cluster.replica(node, LEDGER) for node in ("0", "1", "2")]
    assert [replica.leader for replica in seen if replica] == [leader] * 3
    assert cluster.replica("0", TopicPartition("nothing", 0)) is None


def test_a_topic_that_cannot_be_is_refused_in_words(cluster: BuiltinTarget) -> None:
    with pytest.raises(EnvironmentFault, match="topic 'ledger' was not created"):
        cluster.create_topic(TopicSpec("ledger", 1, 3))


def test_stopping_is_idempotent_and_leaves_nothing_whatever_state_a_node_is_in(tmp_path: Path) -> None:
    target = BuiltinTarget(tmp_path, 2, generation(CURRENT_GENERATION), Settings())
    begin = time.monotonic()
    target.start()
    print(f"a cluster of 2 brokers started in {time.monotonic() - begin:.2f} s")  # noqa: T201
    target.create_topic(TopicSpec("ledger", 1, 2, ((NodeId(0), NodeId(1)),)))
    pids = target.pids()
    assert set(pids) == {"0", "1", "controller"}
    target.pause("0")
    target.kill("1")
    target.stop()
    target.stop()
    assert not any(map(psutil.pid_exists, pids.values()))
    finals = {row["node"]: row for row in target.timeline("r") if row["kind"] == "final"}
    assert '"live"' in finals[0]["detail"]
    assert '"disk"' in finals[1]["detail"]
    target.copy_logs(tmp_path)
    assert (tmp_path / "broker-0.log").read_text()


def test_a_node_that_cannot_start_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    target = BuiltinTarget(tmp_path / "cluster", 1, generation(CURRENT_GENERATION), Settings())
    (tmp_path / "cluster" / "broker-0" / "timeline.jsonl").mkdir()
    try:
        with pytest.raises(EnvironmentFault, match=r"node 0 ended at once, with exit status 4: .*Is a directory"):
            target.start()
    finally:
        target.stop()


def test_a_node_that_was_born_in_the_moment_of_an_interruption_is_stopped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen = subprocess.Popen

    def interrupted(*arguments: Any, **named: Any) -> None:
        popen(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.targets.node_process.subprocess.Popen", interrupted)
    target = BuiltinTarget(tmp_path, 1, generation(CURRENT_GENERATION), Settings())
    others = set(psutil.Process().children())
    with pytest.warns(ResourceWarning), pytest.raises(KeyboardInterrupt):
        target.start()
    [child] = set(psutil.Process().children()) - others
    target.stop()
    assert eventually(lambda: not is_alive(child.pid))


def test_nothing_is_left_of_a_cluster_whose_harness_was_killed(tmp_path: Path) -> None:
    harness = subprocess.Popen([sys.executable, str(HARNESS), str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    pids = [int(word) for word in harness.stdout.readline().split()]
    try:
        assert len(pids) == 3
        assert all(map(psutil.pid_exists, pids))
        os.kill(pids[0], signal.SIGSTOP)
        harness.kill()
        assert eventually(lambda: not any(map(is_alive, pids)))
    finally:
        harness.stdout.close()
        harness.wait()


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
