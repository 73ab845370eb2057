"""``seawall cluster up`` as its user sees it: a first line, a cluster behind it, and nothing left after Ctrl-C."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from harness import model
from harness.cli import cluster
from harness.errors import ExitCode
from harness.runner import heal_leftovers
from harness.runner.journal import journal_directory
from harness.target import ClusterView, PartitionView, TopicSpec
from harness.targets.builtin import BuiltinTarget
from tests.harness.cli.calling import Seawall

ANOTHER_CLUSTER = pytest.mark.nightly("starts a cluster for a case like another, which has one by day")
CODE = "import sys; from harness.cli import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def journals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of this test alone: others kill harnesses, too, and a cluster says whose leftovers it has healed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))


class Up:
    """A running ``seawall cluster up``."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-c", CODE, "cluster", "up", *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, umask=0)
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().strip()
        self.bootstrap = self.first_line.removeprefix("bootstrap=")

    @property
    def nodes(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def send(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@contextmanager
def up(*words: object) -> Iterator[Up]:
    running = Up(*words)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def write(bootstrap: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("ledger", value, partition=0)
    assert producer.flush(30) == 0


def read(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition("ledger", 0, 0)])
    messages = consumer.consume(count, 30)
    consumer.close()
    return [message.value() for message in messages]


def test_kafka_clients_use_the_address_of_the_first_line_and_kept_data_is_found_again_and_refused_if_in_use_or_other(
    tmp_path: Path, seawall: Seawall
) -> None:
    options = ("--topic", "ledger:1:3", "--data", tmp_path / "data")
    with up(*options) as first:
        assert first.first_line.startswith("bootstrap=127.")
        assert len(first.bootstrap.split(",")) == 3
        write(first.bootstrap, b"one")
        nodes = first.nodes
        assert len(nodes) == 5  # one is the parent of the others
        assert not [path for path in (tmp_path / "data").rglob("*") if path.stat().st_mode & stat.S_IWOTH]
        assert first.send(signal.SIGINT) == (0, "")
        assert not [node for node in nodes if node.is_running()]
    with up(*options) as second:
        write(second.bootstrap, b"two")
        assert read(second.bootstrap, 2) == [b"one", b"two"]
        assert seawall("cluster", "up", *options).code == ExitCode.ENVIRONMENT
        second.send(signal.SIGINT)
    other = seawall("cluster", "up", "--topic", "ledger:2:3", "--data", tmp_path / "data")
    assert (other.code, other.out) == (ExitCode.USAGE, "")


@ANOTHER_CLUSTER
def test_a_single_broker_of_an_old_generation_will_do(tmp_path: Path) -> None:
    with up("--brokers", 1, "--generation", "0.10", "--topic", "ledger:1:1") as running:
        write(running.bootstrap, b"one")
        assert read(running.bootstrap, 1) == [b"one"]
        assert running.send(signal.SIGTERM) == (0, "")


def test_a_topic_is_not_taken_for_missing_because_the_controller_is_late_to_tell_of_it() -> None:
    broker = model.NodeId(0)
    whole = PartitionView(broker, 0, (broker,), (broker,))
    views = iter([ClusterView(0, (), {}), ClusterView(1, (broker,), {model.TopicPartition("ledger", 0): whole})])
    late = SimpleNamespace(view=lambda: next(views))  # and creates no topic
    cluster._ensure(cast("BuiltinTarget", late), TopicSpec("ledger", 1, 1))
    assert not list(views)


def test_data_of_more_brokers_than_asked_for_is_refused(seawall: Seawall, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"broker-{number}" / "data").mkdir(parents=True)
    said = seawall("cluster", "up", "--brokers", 2, "--data", tmp_path)
    assert said.code == 64
    assert f"--data {tmp_path} was written by 3 brokers, which is more than --brokers 2." in said.complaint


@pytest.mark.parametrize("victim", ["broker-0", pytest.param("controller", marks=ANOTHER_CLUSTER)])
def test_a_node_that_is_killed_ends_the_cluster_with_4_and_is_named(victim: str) -> None:
    with up("--brokers", 1) as running:
        (node,) = [one for one in running.nodes if one.name() == victim]
        node.kill()
        _, err = running.process.communicate(timeout=60)
    name = victim.removeprefix("broker-")
    assert running.process.returncode == 4
    assert f"seawall: node {name} has ended: process {node.pid} is gone, by SIGKILL." in err


def test_a_node_that_ends_itself_ends_the_cluster_with_4_and_the_reason_in_its_log(tmp_path: Path) -> None:
    with up("--brokers", 1, "--data", tmp_path) as running:
        data = tmp_path / "controller" / "data"
        data.rename(tmp_path / "aside")
        data.touch()
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("ledger", 1, 1)])
        _, err = running.process.communicate(timeout=60)
    assert running.process.returncode == 4
    assert "seawall: node controller has ended: process " in err
    assert "Halting: the state cannot be written: Not a directory." in err


def test_killing_the_harness_takes_its_nodes_along_and_what_the_cluster_leaves_is_healed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "kept" / "mine").mkdir(parents=True)
    for options, what in (((), "Temporary cluster "), (("--data", tmp_path / "kept"), "Cluster ")):
        with up("--brokers", 1, *options) as running:
            nodes = running.nodes
            running.process.kill()
            running.process.communicate()
            _, alive = psutil.wait_procs(nodes, timeout=30)
            assert not alive
        [line] = heal_leftovers()
        assert line.startswith(what)
        assert f"process {running.process.pid}" in line
    assert (tmp_path / "kept" / "mine").exists()
    assert not list(tmp_path.glob("seawall-cluster-*"))


@ANOTHER_CLUSTER
def test_a_cluster_first_heals_what_a_killed_one_left() -> None:
    with up("--brokers", 1) as running:
        running.process.kill()
        running.process.communicate()
    with up("--brokers", 1) as next_one:
        assert f"abandoned by process {running.process.pid}" in next_one.send(signal.SIGINT)[1]
    assert heal_leftovers() == []


def test_ctrl_c_again_and_again_right_after_the_first_line_ends_with_0_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with up("--brokers", 1) as running:
        nodes = running.nodes
        for _ in range(3):
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        code, err = running.send(signal.SIGTERM)
    assert (code, "Traceback" in err) == (0, False)
    assert not [node for node in nodes if node.is_running()]
    assert not list(tmp_path.glob("seawall-cluster-*"))
    assert not list(journal_directory().iterdir())


def test_a_pipe_where_the_lock_should_be_is_the_environments_fault(seawall: Seawall, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    said = seawall("cluster", "up", "--data", tmp_path)
    assert said.code == ExitCode.ENVIRONMENT
    assert f"--data {tmp_path} cannot be written: No such device or address." in said.err


def test_data_that_cannot_be_written_is_the_environments_fault(seawall: Seawall) -> None:
    assert seawall("cluster", "up", "--data", "/dev/null/data").code == ExitCode.ENVIRONMENT
