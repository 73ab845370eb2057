"""Three controllers and three combined nodes, for real: what becomes of them, and that what is told of it is so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import runner, scenario
from harness.cli.verdicts import Engine, judge
from harness.clients.conversation import Conversation
from harness.history.run_directory import RunDirectory
from harness.model import node_id
from harness.runner import plan
from harness.target import QuorumView
from harness.targets.kafka.layout import Listener
from harness.targets.kafka.metadata_log import DIRECTORY
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.quorum_log import QuorumLog
from harness.targets.kafka.server_properties import metadata_dir
from harness.wire.messages.quorum import (
    METADATA_TOPIC,
    DescribedPartition,
    DescribedTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from tests.harness.targets.contract import Trial, fetched_or_skip, on_trial

NOT_LEADER = 6
REAL_QUORUM = pytest.mark.nightly("starts three real controllers; by day test_process runs the newest release with one")
LOAD = """\
id: headless
title: Who controls dies, is cut off and loses power under load
source: a test
cluster: {settings: {min.insync.replicas: 2}}
topics: [{name: ledger, partitions: 3, replication_factor: 3}]
workload: {name: unique_sends, producers: 6, consumers: 1, rate: 100, delivery_timeout_s: 5}
settle_s: 90
duration_s: 2
chaos:
  interval_s: [1.0, 1.2]  # until every partition has been sent to
  faults:
"""


def under_load(target: str, directory: Path, *faults: str) -> tuple[RunDirectory, list[dict[str, Any]]]:
    """A run with each of these faults once, which has passed, and what the controllers have said of themselves."""
    fetched_or_skip(target.partition("#")[0].removeprefix("process:"))
    text = LOAD + "".join(f"    - {{{fault}}}\n" for fault in faults)
    run = runner.run(plan(scenario.parse(text), target, seed=1), directory)
    verdict = judge([run.path], Engine.REFERENCE)[0].verdict
    assert verdict.outcome.value == "pass", verdict.reasons
    elected = [row for row in run.read_table("timeline") if row["kind"] == "controller"]
    return run, [json.loads(row["detail"]) for row in sorted(elected, key=lambda row: row["time_ns"])]


@REAL_QUORUM
def test_a_node_that_is_a_broker_and_the_active_controller_dies_and_nothing_is_lost(tmp_path: Path) -> None:
    run, elected = under_load("process:4.1.0#combined", tmp_path, "fault: kill, node: controller, for_s: [4, 4]")
    [fault] = run.read_table("faults")
    assert fault["nodes"] == [str(elected[0]["controller"])]
    assert json.loads(fault["aim"])["quorum"]["leader_epoch"] == elected[0]["controller_epoch"]
    assert elected[-1]["controller_epoch"] > elected[0]["controller_epoch"]
    assert {tuple(one["voters"]) for one in elected} == {(0, 1, 2)}
    lives = {(row["node"], row["incarnation"]) for row in run.read_table("timeline") if row["kind"] == "started"}
    assert lives == {(0, 0), (1, 0), (2, 0), (int(fault["nodes"][0]), 1)}


@REAL_QUORUM
@pytest.mark.parametrize("version", ["3.9.1", "4.1.0"])
def test_a_quorum_outlives_its_active_controller_however_that_goes(version: str, tmp_path: Path) -> None:
    run, elected = under_load(
        f"process:{version}#quorum",
        tmp_path,
        "fault: kill, node: controller, for_s: [3, 4]",
        "fault: partition, isolate: controller, for_s: [5, 6]",
        "fault: power_loss, node: controller, for_s: [1, 2]",
        "fault: pause, node: controller, for_s: [5, 6]",
    )
    faults = run.read_table("faults")
    assert all(fault["nodes"][0].startswith("controller-") for fault in faults if fault["kind"] != "partition")
    [cut] = [json.loads(fault["parameters"])["links"] for fault in faults if fault["kind"] == "partition"]
    assert len(cut) == 10
    assert len({one["controller"] for one in elected}) > 1
    assert {tuple(one["voters"]) for one in elected} == {(101, 102, 103)}


# ------------------------------------------------------------------------------------------- one cluster for several


@pytest.fixture(scope="module", params=["process:4.1.0#quorum", "process:4.1.0#combined"])
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """A running cluster; each test leaves it whole."""
    with on_trial(request.param, tmp_path_factory.mktemp("cluster")) as one:
        yield one


def cluster(trial: Trial) -> ProcessTarget:
    assert isinstance(trial.target, ProcessTarget)
    return trial.target


def active(trial: Trial) -> tuple[str, QuorumView]:
    """Who controls, as soon as somebody does."""
    assert trial.eventually(lambda: trial.target.view().quorum is not None)
    view = trial.target.view()
    assert view.controller is not None
    assert view.quorum is not None
    return view.controller, view.quorum


def leads(trial: Trial, controller: str) -> bool:
    """Whether it takes itself for the active one."""
    address = cluster(trial).layout.real(controller, Listener.CONTROLLER)
    with closing(Conversation(node_id(controller), address, 5.0)) as talk:
        request = DescribeQuorumRequest([DescribedTopic(METADATA_TOPIC, [DescribedPartition(0)])])
        [topic] = talk.ask(request, DescribeQuorumResponse, 1).topics
    return topic.partitions[0].error_code != NOT_LEADER


@REAL_QUORUM
def test_the_active_controller_is_cut_off_resigns_and_is_succeeded(trial: Trial) -> None:
    deposed, before = active(trial)
    assert leads(trial, deposed)
    with trial.in_effect(fault="partition", isolate="controller") as cut:
        assert trial.holds(cut.probe)
        assert trial.eventually(lambda: active(trial)[0] != deposed)
        assert active(trial)[1].leader_epoch > before.leader_epoch
        assert trial.eventually(lambda: not leads(trial, deposed))
    assert trial.send().kind == "ok"


@REAL_QUORUM
def test_nobody_controls_when_two_of_three_are_dead(trial: Trial) -> None:
    first, _ = active(trial)
    with trial.in_effect(fault="kill", node="controller"):
        assert trial.eventually(lambda: trial.target.view().controller not in (None, first))
        with trial.in_effect(fault="power_loss", node="controller") as second:
            assert trial.holds(second.probe)
            assert trial.eventually(lambda: trial.target.view().controller is None)
            assert not trial.target.view().partitions
            trial.target.restart(first)
            assert trial.eventually(lambda: trial.target.view().controller is not None)


@REAL_QUORUM
def test_controllers_that_have_all_lost_power_come_back_one_after_the_other(trial: Trial) -> None:
    """The first of them is alone, and nobody can be elected yet."""
    controllers = cluster(trial).layout.controllers
    for name in controllers:
        trial.target.lose_power(name)
    assert trial.target.view().controller is None
    for name in controllers:
        trial.target.restart(name)
        assert trial.target.is_running(name).holds
    assert trial.settles()


@REAL_QUORUM
def test_what_is_told_as_decided_is_what_the_quorum_says_it_is(trial: Trial) -> None:
    """The harness reads disks, and the active controller tells its watermark: they meet."""
    running = cluster(trial)
    places = [metadata_dir(name, running._node(name).data_dir) for name in running.layout.controllers]
    log = QuorumLog([place / DIRECTORY for place in places])

    def meet() -> bool:
        controller, quorum = active(trial)
        log.read_on()
        told = log._readable_end
        controller_now, later = active(trial)
        same = controller == controller_now and log.controller == node_id(controller)
        return same and quorum.high_watermark <= told <= max(later.log_end_offsets.values())

    assert trial.eventually(meet)
    assert set(active(trial)[1].log_end_offsets) == set(running.layout.controllers)


@REAL_QUORUM
def test_no_connection_between_nodes_passes_the_proxies(trial: Trial) -> None:
    with trial.in_effect(fault="kill", node="controller"):
        active(trial)
    running = cluster(trial)
    real = {running.layout.host(name): name for name in running.nodes()}
    pids = {pid: name for name, ids in running.pids().items() for pid in ids}
    direct = [
        (name, real[one.raddr.ip])
        for pid, name in pids.items()
        for one in psutil.Process(pid).net_connections(kind="tcp")
        if one.raddr and real.get(one.raddr.ip, name) != name
    ]
    assert len(pids) == len(running.nodes())
    assert not direct


@REAL_QUORUM
def test_what_of_the_metadata_log_a_power_loss_would_take_is_known(trial: Trial) -> None:
    running = cluster(trial)
    for name in running.layout.controllers:
        place = metadata_dir(name, running._node(name).data_dir) / DIRECTORY
        segment = min(place.glob("*.log"))
        assert f"flushed {segment.stat().st_ino} " in running._shims[name].ledger.read_text()
