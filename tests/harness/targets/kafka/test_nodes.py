"""How the processes of a node end, and what that means."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka import nodes
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.nodes import KafkaNode, KraftNode
from harness.targets.kafka.real import RealKafka


def ended(directory: Path, status: int) -> KafkaNode:
    """A node whose process has ended with the exit status ``status``."""
    node = KafkaNode("1", directory, cast("Distribution", None), lambda *_: None)
    [process] = node.processes
    process.start(("/bin/sh", "-c", f"exit {status}"), {})
    assert process.wait(60)
    return node


def test_a_broker_that_ends_with_an_error_has_exited_by_itself(tmp_path: Path) -> None:
    assert ended(tmp_path, 1).has_exited


@pytest.mark.parametrize(("status", "why"), [(3, "has run out of memory"), (70, "was ended by its disk shim")])
def test_what_no_release_is_to_blame_for_is_not_a_broker_s_own_end(tmp_path: Path, status: int, why: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"node 1 {why}"):
        _ = ended(tmp_path, status).has_exited


def sleeping(directory: Path) -> KafkaNode:
    """A node whose process goes on."""
    node = KafkaNode("1", directory, cast("Distribution", None), lambda *_: None)
    node.processes[0].start(("/bin/sleep", "600"), {})
    return node


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_broker_that_a_signal_ends_which_nobody_sent_is_the_environment_s(
    tmp_path: Path, number: signal.Signals
) -> None:
    node = sleeping(tmp_path)
    os.kill(node.pids[0], number)
    assert node.processes[0].wait(60)
    with pytest.raises(EnvironmentFault, match=f"node 1 was ended by {number.name}, which seawall has not sent"):
        _ = node.has_exited
    with pytest.raises(EnvironmentFault, match=number.name):
        _ = node.was_killed


def test_a_broker_that_was_killed_has_not_exited_by_itself(tmp_path: Path) -> None:
    node = sleeping(tmp_path)
    node.kill()
    assert node.was_killed
    assert not node.has_exited


class Formatted(KraftNode):
    """A controller whose disk some program formats."""

    def __init__(self, directory: Path, program: str) -> None:
        super().__init__("controller-3", directory, cast("Distribution", None), lambda *_: None, controls=True)
        self._cluster_id = "cluster"
        [jvm] = self.processes
        cast("Any", jvm).run = lambda *_: jvm.start(("/bin/sh", "-c", program), {})


def test_that_a_disk_was_not_formatted_in_time_is_no_fault_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_FORMAT_TIMEOUT_S", 0.0)
    slow = Formatted(tmp_path, "sleep 600")
    with pytest.raises(EnvironmentFault, match="controller-3 was not formatted within 0 s: Java was too slow"):
        slow._format_by_kafka()
    assert not slow.exists


def test_why_a_disk_was_not_formatted_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"was not formatted: exit status 2: no such cluster$"):
        Formatted(tmp_path, "echo no such cluster; exit 2")._format_by_kafka()


def test_what_a_node_said_that_ended_at_once_is_told_once(tmp_path: Path) -> None:
    node = KafkaNode("1", tmp_path, cast("Distribution", None), lambda *_: None)
    node.processes[0].start(("/bin/sh", "-c", "echo shutting down to exit.; exit 1"), {})
    assert node.processes[0].wait(60)
    cluster = cast("RealKafka[KafkaNode]", SimpleNamespace(_nodes={"1": node}))
    with pytest.raises(EnvironmentFault, match=r"is gone, exit status 1: shutting down to exit\.$"):
        RealKafka._all_answer(cluster)
