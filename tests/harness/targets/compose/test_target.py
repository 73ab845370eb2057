"""Kafka of a user's compose file: whole runs, and what is left of them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import runner, scenario
from harness.cli.verdicts import Engine as Judge
from harness.cli.verdicts import judge
from harness.clock import SystemClock
from harness.errors import EnvironmentFault
from harness.model import CLIENTS, NodeId
from harness.runner import plan
from harness.runner.journal import heal_leftovers
from harness.target import TopicSpec
from harness.targets.compose.inspected_stack import find
from harness.targets.compose.project import TOOLS_IMAGE
from harness.targets.compose.target import ComposeTarget
from harness.targets.compose.written_stack import read
from harness.targets.kafka.server_properties import understood
from harness.wire.messages.quorum import METADATA_TOPIC
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine
from tests.harness.targets.contract import LEDGER, Trial, send_once
from tests.replica_rows import held

HARNESS = Path(__file__).parent / "compose_to_be_killed.py"
IMAGE = "kafka:4.1.0"
STARTED_TIMEOUT_S = 300
LEADER_IS_ALONE = """\
id: leader-is-alone
title: The leader is cut off from everybody under load and comes back
source: a test
cluster: {settings: {min.insync.replicas: 2}}
topics: [{name: ledger, partitions: 2, replicas: [0, 1, 2]}]
workload: {name: unique_sends, consumers: 1}
settle_s: 90
schedule:
  - send: {per_partition: 10}
  - inject: {fault: partition, isolate: 0, as: alone}
  - until: {leader: 1, isr: [1, 2], replicas: [{node: 1, role: leader}], within_s: 60}
  - send: {per_partition: 10}
  - heal: alone
  - until: {isr: [0, 1, 2], within_s: 60}
  - send: {per_partition: 10}
"""


def combined(directory: Path, ids: tuple[int, ...], **more: str) -> Path:
    """A file whose brokers are the controllers, with these ids; ``more`` are further variables."""
    voters = ",".join(f"{one}@kafka-{one}:9093" for one in ids)
    file = directory / "stack.yml"
    file.write_text(yaml.safe_dump({"services": {f"kafka-{one}": _service(one, voters, more) for one in ids}}))
    return file


def _service(kafka_id: int, voters: str, more: Mapping[str, str]) -> dict[str, Any]:
    environment = {
        "CLUSTER_ID": "c2Vhd2FsbC1jbHVzdGVyIQ",
        "KAFKA_HEAP_OPTS": "-Xmx256m",
        "KAFKA_NODE_ID": kafka_id,
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        **more,
    }
    return {"image": f"seawall/{IMAGE}", "restart": "always", "environment": environment}


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """The engine, where there is all that a target needs beside it."""
    engine.need_compose()
    engine.need("tools", "toxiproxy", IMAGE)
    return engine


def left_of(engine: Engine, project: str) -> list[object]:
    ours = {"label": f"com.docker.compose.project={project}"}
    client = engine.client
    return [
        *client.containers.list(all=True, filters=ours),
        *client.volumes.list(filters=ours),
        *client.networks.list(filters=ours),
    ]


@ANOTHER_PROJECT
@pytest.mark.parametrize("gone", [("run",), ("run", "journals")], ids=", ".join)
def test_heal_removes_what_a_harness_that_was_killed_has_left_whatever_else_is_gone(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    run = tmp_path / "run"
    run.mkdir()
    words = [sys.executable, str(HARNESS), str(combined(tmp_path, (5,))), str(run)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]) as harness:
        assert harness.stdout is not None
        project = harness.stdout.readline().strip()
        harness.send_signal(signal.SIGKILL)
    assert left_of(engine, project)
    for directory in gone:
        shutil.rmtree(tmp_path / directory)
    (line,) = (said for said in heal_leftovers(["compose"]) if project in said)
    assert ("no journal names it" in line) is ("journals" in gone)
    assert not left_of(engine, project)
    assert not any(project in said for said in heal_leftovers(["compose"]))


@ANOTHER_PROJECT
def test_a_project_that_does_not_come_up_leaves_nothing(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = combined(tmp_path, (5,), KAFKA_LOG_RETENTION_MS="never")
    kafka = find(read(str(file)))
    target = ComposeTarget(tmp_path / "cluster", kafka, understood({}, kafka.release, 1))
    try:
        with pytest.raises(EnvironmentFault, match=r"node 0 ended at once: .*log\.retention\.ms"):
            target.start()
        project = target.project.name
    finally:
        target.stop()
    target.stop()
    assert not left_of(engine, project)
    assert "log.retention.ms" in (tmp_path / "cluster" / "kafka-5" / "output.log").read_text()
    monkeypatch.setenv(TOOLS_IMAGE, "seawall/no-such-image")
    with pytest.raises(EnvironmentFault, match="image seawall/no-such-image, of what runs beside the brokers"):
        (again := ComposeTarget(tmp_path / "again", kafka, understood({}, kafka.release, 1))).start()
    assert not [*again.timeline("r"), *held(again)]


def test_a_broker_is_cut_off_and_killed_and_what_is_the_users_stays_as_it_was(engine: Engine, tmp_path: Path) -> None:
    file = combined(tmp_path, (5,))
    stack = yaml.safe_load(file.read_text())
    stack["services"]["kafka-5"] |= {
        "container_name": "first",
        "deploy": {"restart_policy": {"condition": "on-failure"}},
        "volumes": ["data:/var/lib/kafka/data", "./certs:/certs"],
    }
    (tmp_path / "certs").mkdir()
    precious = engine.client.volumes.create(f"precious-{tmp_path.name}")
    file.write_text(yaml.safe_dump({**stack, "volumes": {"data": {"name": precious.name}}}))
    kafka = find(read(str(file)))
    target = ComposeTarget(tmp_path / "cluster", kafka, understood({}, kafka.release, 1))
    target.tap()
    try:
        target.start()
        project = target.project.name
        about = target.project.container("kafka-5").attrs
        written_to = {(one["Type"], one.get("Name") or one["Source"]) for one in about["Mounts"] if one["RW"]}
        trial = Trial(target, SystemClock(), partial(send_once, target), patience_s=90.0)
        target.create_topic(TopicSpec(LEDGER.topic, 1, 1, ((NodeId(0),),)))
        assert trial.send().offset == 0
        with trial.in_effect(fault="partition", links=[["clients", 0]]) as cut:
            assert trial.holds(cut.probe)
        assert not trial.asked(cut.probe).holds
        assert not target.is_dead("0").holds
        target.kill("0")
        assert target.is_dead("0").holds
        target.stop()
        assert {row["node"] for row in target.timeline("r") if row["kind"] == "final"} == {0, 100}
        assert [row["offset"] for row in held(target) if row["topic"] == LEDGER.topic] == [0]
        produced = [row for row in target.wire() if row["api"] == "PRODUCE"]
        assert [(row["node"], row["peer"], row["topic"], row["error"], row["base_offset"]) for row in produced] == [
            (0, CLIENTS, LEDGER.topic, 0, 0)
        ]
        assert precious in engine.client.volumes.list()
    finally:
        target.stop()
        precious.remove()
    assert written_to
    for kind, place in written_to:
        assert place.startswith(project if kind == "volume" else str(tmp_path / "cluster"))
    assert about["HostConfig"]["RestartPolicy"]["Name"] in ("", "no")
    assert "first" in about["NetworkSettings"]["Networks"][f"{project}_default"]["Aliases"]
    assert not left_of(engine, project)


@pytest.mark.nightly("a whole run in containers")
def test_a_quorum_of_brokers_elects_another_leader_and_keeps_everything(engine: Engine, tmp_path: Path) -> None:
    file = combined(tmp_path, (7, 3, 5))
    made = plan(scenario.parse(LEADER_IS_ALONE), f"compose:{file}", seed=1, tap=True)
    directory = runner.run(made, tmp_path / "runs")
    verdict = judge([directory.path], Judge.REFERENCE)[0].verdict
    assert verdict.outcome.value == "pass", verdict.reasons
    assert directory.manifest().configuration["compose"]["brokers"]["0"]["service"] == "kafka-3"
    elected = {
        (row["leader"], row["leader_epoch"]) for row in directory.read_table("timeline") if row["kind"] == "election"
    }
    assert (0, 0) in elected
    assert (1, 1) in elected
    logs = directory.read_table("replica_logs")
    assert {row["node"] for row in logs if row["topic"] == METADATA_TOPIC} == {0, 1, 2}
    assert all(row["intact"] for row in logs)
    acknowledged = {
        row["node"] for row in directory.read_table("wire") if row["api"] == "PRODUCE" and row["error"] == 0
    }
    assert acknowledged == {0, 1}
