"""What only the built-in target can be asked, beside what :mod:`test_contract` asks: about its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.broker.settings import Settings
from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.targets.forked import Forked, ForkServer, fork_server

LEDGER = TopicPartition("ledger", 0)
HARNESS = Path(__file__).parent / "harness_to_be_killed.py"


def eventually(look: Callable[[], bool], within_s: float = 15.0) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


def test_a_node_that_somebody_else_ended_was_not_killed(cluster: BuiltinTarget) -> None:
    os.kill(cluster.pids()["1"], signal.SIGTERM)
    assert eventually(lambda: "1" not in cluster.pids())
    assert not cluster.is_dead("1").holds
    cluster.restart("1")
    assert eventually(lambda: not unsettled(cluster, [LEDGER]))


class LateToHear(BuiltinTarget):
    """A cluster whose broker 1 has registered, but is told of nobody until it was looked at four times."""

    looks = 0

    def _look(self, node: str) -> dict[str, Any]:
        status = super()._look(node)
        if node == "1" and status["known_brokers"]:
            self.looks += 1
            status["known_brokers"] = status["known_brokers"] if self.looks > 3 else []
        return status


def test_a_cluster_has_started_when_every_broker_has_heard_of_all(tmp_path: Path) -> None:
    # A client that asks before is told of no controller, and librdkafka asks again only when it gives up.
    target = LateToHear(tmp_path, 2, generation(CURRENT_GENERATION), Settings())
    try:
        target.start()
        assert target.looks == 4
    finally:
        target.stop()


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
    fork = ForkServer.fork

    def interrupted(*arguments: Any) -> Forked:
        forked = fork(*arguments)
        signal.raise_signal(signal.SIGINT)
        return forked

    monkeypatch.setattr(ForkServer, "fork", interrupted)
    target = BuiltinTarget(tmp_path, 1, generation(CURRENT_GENERATION), Settings())
    with pytest.raises(KeyboardInterrupt):
        target.start()
    pids = target.pids()
    assert set(pids) == {"controller"}
    target.stop()
    assert not psutil.pid_exists(pids["controller"])


def test_nodes_outlive_no_process_that_has_forked_them_and_the_next_cluster_has_another(tmp_path: Path) -> None:
    target = BuiltinTarget(tmp_path / "first", 1, generation(CURRENT_GENERATION), Settings())
    target.start()
    pids = target.pids()
    os.kill(fork_server().pid, signal.SIGKILL)
    assert eventually(lambda: not target.pids())
    assert set(target.ended().values()) == {f"process {pid} is gone, by SIGKILL" for pid in pids.values()}
    target.stop()
    following = BuiltinTarget(tmp_path / "second", 1, generation(CURRENT_GENERATION), Settings())
    try:
        following.start()
        assert set(following.pids()) == {"0", "controller"}
    finally:
        following.stop()


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
