"""Whole runs, on real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partialmethod
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest

from checkers import check
from harness import scenario
from harness.errors import EnvironmentFault, ExitCode, Interrupted, InvalidRun
from harness.history.arrow import write_file
from harness.history.blocks import Block
from harness.history.recorder import Recorder
from harness.history.run_directory import RunDirectory
from harness.history.schema import Table
from harness.runner import heal_leftovers, plan, run
from harness.runner.journal import Journal, journal_directory
from harness.runner.run_lifecycle import RunLifecycle
from harness.targets.simulated import SimulatedTarget
from harness.unwritable import unwritable

HARNESS = Path(__file__).parent / "harness_to_be_ended.py"

HEAD = """\
id: small
title: A small scenario
source: a test
cluster: {brokers: 3, settings: {min.insync.replicas: 2, replica.fetch.wait.max.ms: 100}}
topics: [{name: ledger, partitions: 2, replicas: [0, 1, 2]}]
workload: {name: unique_sends, producers: 2, consumers: 1, rate: 60, delivery_timeout_s: 1}
"""

EVERY_KIND = (
    HEAD
    + """\
chaos:
  interval_s: [0, 0.1]
  for_s: [0.1, 0.4]
  faults:
    - {fault: kill, node: leader}
    - {fault: pause, node: any}
    - {fault: partition, isolate: any}
    - {fault: disk_full, node: any, free_bytes: 0}
    - {fault: clock, node: any, offset_ms: -60000}
"""
)

IN_THE_MIDDLE = (
    HEAD
    + """\
schedule:
  - send: {per_partition: 1}
  - inject: {fault: partition, isolate: 1, as: apart}
  - inject: {fault: disk_full, node: 2, free_bytes: 0, as: tight}
  - inject: {fault: pause, node: 0, as: frozen}
  - wait_s: 60
"""
)


ON_EITHER = pytest.mark.parametrize(
    "target",
    [
        "simulated",
        pytest.param(
            "builtin", marks=pytest.mark.nightly("by day other runs on real brokers fail and leave no process")
        ),
    ],
)


def lost_offsets(directory: RunDirectory) -> set[tuple[int, int]]:
    """(partition, offset) of every acknowledged record that the final read did not find."""
    history = directory.read_table("history")
    found = {row["value"] for row in history if row["final"] and row["value"] is not None}
    acknowledged = [row for row in history if row["f"] == "send" and row["type"] == "ok"]
    assert acknowledged
    return {(row["partition"], row["offset"]) for row in acknowledged if row["value"] not in found}


def diverged_offsets(directory: RunDirectory) -> set[tuple[int, int]]:
    """(partition, offset) wherever two replicas hold different batches."""
    batches: dict[tuple[int, int], set[int]] = {}
    for row in directory.read_table("replica_logs"):
        batches.setdefault((row["partition"], row["offset"]), set()).add(row["batch_crc"])
    return {place for place, seen in batches.items() if len(seen) > 1}


@pytest.mark.parametrize(
    ("generation", "lost"),
    [
        ("0.10", {(0, 4), (1, 4), (2, 4)}),
        pytest.param(
            "4.1", set(), marks=pytest.mark.nightly("by day real brokers lose what they should; test_matrix has both")
        ),
    ],
)
def test_the_double_failover_of_kip_101_loses_exactly_what_it_should(
    tmp_path: Path, generation: str, lost: set[tuple[int, int]]
) -> None:
    directory = run(plan(scenario.load("kip-101-double-failover"), generation=generation, seed=1), tmp_path)
    assert lost_offsets(directory) == lost
    assert diverged_offsets(directory) == lost
    assert all(row["heal_proven_ns"] for row in directory.read_table("faults"))


def test_random_chaos_injects_every_kind_proves_it_and_loses_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    directory = run(plan(scenario.parse(EVERY_KIND), seed=5, duration_s=1), tmp_path, lines.append)
    manifest = directory.manifest()
    assert manifest.state == "complete"
    assert manifest.guarantees["min_insync_replicas"] == 2
    assert "--seed 5" in manifest.configuration["reproduce"]
    assert {"seawall", "librdkafka", "python", "kernel"} <= set(manifest.versions)
    faults = directory.read_table("faults")
    assert {row["kind"] for row in faults} == {"kill", "pause", "partition", "disk_full", "clock"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in faults)
    assert not lost_offsets(directory)
    assert not diverged_offsets(directory)
    assert directory.read_table("history")[-1]["f"] == "close"
    assert {row["node"] for row in directory.read_table("timeline") if row["kind"] == "final"} == {0, 1, 2, 100}
    assert (directory.broker_logs / "broker-0.log").exists()
    assert (tmp_path / "latest").resolve() == directory.path.resolve()
    assert any(line.startswith("f001: proven") for line in lines)


def test_a_fault_that_did_nothing_is_in_the_table_without_proof(tmp_path: Path) -> None:
    text = HEAD + "chaos: {interval_s: [0, 0], for_s: [0, 0], faults: [{fault: clock, node: 1, offset_ms: 0}]}\n"
    directory = run(plan(scenario.parse(text), "simulated", duration_s=0.1), tmp_path)
    row = directory.read_table("faults")[0]
    assert row["injected_ns"] is not None
    assert row["proven_ns"] is None


def test_a_step_that_does_not_come_true_ends_the_run_with_its_evidence_and_without_a_process(tmp_path: Path) -> None:
    text = HEAD + "schedule: [{inject: {fault: kill, node: 2, as: dead}}, {until: {leader: 2, within_s: 0.2}}]\n"
    with pytest.raises(
        InvalidRun, match=r"schedule\[1\]\.until: did not come true within 0\.2 s: ledger-0: the leader"
    ):
        run(plan(scenario.parse(text)), tmp_path)
    directory = RunDirectory.open(tmp_path / "latest")
    assert directory.manifest().state == "abandoned"
    assert "schedule[1].until" in directory.manifest().why
    assert directory.manifest().guarantees["settles"] is False, "it had no time to"
    assert directory.read_table("faults")[0]["heal_proven_ns"]
    assert directory.read_table("history")[-1]["f"] != "close"
    assert not nodes_left()


@ON_EITHER
def test_a_run_is_marked_although_writing_its_evidence_down_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunLifecycle, "collect", full)
    with pytest.raises(
        EnvironmentFault, match=rf"{tmp_path}/small/.* cannot be written: No space left on device\. Make"
    ):
        run(plan(scenario.parse(HEAD + "schedule: [{send: {per_partition: 1}}]\n"), target), tmp_path)
    assert RunDirectory.open(tmp_path / "latest").manifest().state == "abandoned"
    assert not list(journal_directory().iterdir())
    assert not nodes_left()


def test_a_history_that_cannot_be_written_ends_the_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    refused: list[Path] = []

    def full(table: Table, path: Path, blocks: Sequence[Block]) -> None:
        if not any(line.startswith("p: proven") for line in told):
            write_file(table, path, blocks)
            return
        refused.append(path)
        raise unwritable(path, OSError(28, "No space left on device"))

    monkeypatch.setattr("harness.history.recorder.write_file", full)
    monkeypatch.setattr(Recorder, "__init__", partialmethod(Recorder.__init__, part_seconds=0.2))
    with pytest.raises(EnvironmentFault, match=r"part-\d{5}\.parquet cannot be written: No space left .* --out\."):
        run(
            plan(scenario.parse(HEAD + "schedule: [{inject: {fault: pause, node: 0, as: p}}, {wait_s: 86400}]\n")),
            tmp_path,
            told.append,
        )
    directory = RunDirectory.open(tmp_path / "latest")
    assert directory.manifest().state == "abandoned"
    assert directory.manifest().why.startswith(f"{refused[0]} cannot be written")
    assert directory.read_table("faults")[0]["heal_proven_ns"]
    assert not list(directory.path.glob(".*"))
    assert not list(journal_directory().iterdir())
    assert not nodes_left()


@ON_EITHER
def test_a_run_directory_that_is_removed_during_the_run_is_named_and_nothing_points_to_it(
    tmp_path: Path, target: str
) -> None:
    def remove(line: str) -> None:
        if line.startswith("stopping the load"):
            shutil.rmtree((tmp_path / "latest").resolve(), ignore_errors=True)

    with pytest.raises(EnvironmentFault, match=r"run directory .* was removed during the run"):
        run(plan(scenario.parse(HEAD + "schedule: [{send: {per_partition: 1}}]\n"), target), tmp_path, remove)
    assert not nodes_left()


def nodes_left() -> list[str]:
    """The nodes that this process has started and that have not ended; other tests may have started other things."""
    children = psutil.Process().children(recursive=True)
    return [child.name() for child in children if child.name().startswith(("broker-", "controller"))]


@contextmanager
def in_the_middle_of_a_run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A harness with a partition, a full disk and a paused broker in force, and the ids of its nodes."""
    (tmp_path / "scenario.yaml").write_text(IN_THE_MIDDLE)
    command = [sys.executable, str(HARNESS), str(tmp_path / "scenario.yaml"), str(tmp_path / "runs")]
    harness = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert harness.stdout is not None
    try:
        for line in harness.stdout:
            if line.startswith("frozen: proven"):
                break
        [journal] = journal_directory().glob("*.json")
        nodes: dict[str, Any] = json.loads(journal.read_text())["nodes"]
        assert set(nodes) == {"0", "1", "2", "controller"}
        yield harness, [node["pid"] for node in nodes.values()]
    finally:
        harness.kill()
        harness.stdout.close()
        harness.wait()


def test_ctrl_c_pressed_again_and_again_heals_and_stops_everything(tmp_path: Path) -> None:
    with in_the_middle_of_a_run(tmp_path) as (harness, pids):
        harness.send_signal(signal.SIGINT)
        time.sleep(0.1)
        harness.send_signal(signal.SIGINT)
        harness.send_signal(signal.SIGTERM)
        output, _ = harness.communicate(timeout=300)
        assert harness.returncode == ExitCode.INTERRUPTED
        assert not any(map(is_alive, pids))
    assert "SIGINT ended the run. Everything was healed and stopped" in output
    assert "already healing and stopping" in output
    directory = RunDirectory.open(tmp_path / "runs" / "latest")
    assert directory.manifest().state == "interrupted"
    assert all(row["heal_proven_ns"] for row in directory.read_table("faults"))
    history = directory.read_table("history")
    assert history[-1]["f"] != "close"
    assert [row["index"] for row in history] == list(range(len(history)))
    assert not list(journal_directory().iterdir())


@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize("target", ["builtin", "simulated"])
def test_an_interruption_before_anything_has_started_is_written_down_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    begin = Journal.__init__

    def interrupted(journal: Journal, path: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        begin(journal, path)

    monkeypatch.setattr(Journal, "__init__", interrupted)
    with pytest.raises(Interrupted, match="SIGINT ended the run"):
        run(plan(scenario.parse(HEAD + "schedule: [{wait_s: 60}]\n"), target=target), tmp_path)
    assert RunDirectory.open(tmp_path / "latest").manifest().state == "interrupted"
    assert not list(journal_directory().iterdir())
    assert not nodes_left()


def test_what_a_killed_harness_left_is_healed_by_the_next_one_which_says_so(tmp_path: Path) -> None:
    with in_the_middle_of_a_run(tmp_path) as (harness, pids):
        os.kill(harness.pid, signal.SIGKILL)
        harness.wait()
        [line] = heal_leftovers()
        assert not any(map(is_alive, pids))
    assert "apart (partition), tight (disk_full), frozen (pause)" in line
    assert line.endswith("; what its nodes left is in broker_logs/, timeline/, replica_logs/.")
    directory = RunDirectory.open(tmp_path / "runs" / "latest")
    assert directory.manifest().state == "abandoned"
    printed = {"broker-0.log", "broker-1.log", "broker-2.log", "controller.log"}
    assert printed <= {path.name for path in directory.broker_logs.iterdir() if path.stat().st_size}
    assert [len(sent) for sent in directory.read_schedule_log()["values"].values()] == [1, 1]
    sent = {value for values in directory.read_schedule_log()["values"].values() for value in values.values()}
    assert sent <= {row["value"] for row in directory.read_table("replica_logs")}
    told = {(row["node"], row["kind"]) for row in directory.read_table("timeline")}
    assert told >= {*product((0, 1, 2, 100), ["started"]), (100, "election"), *product((0, 1, 2), ["state", "final"])}
    [verdict] = check([directory.path], "reference")
    assert verdict.exit_code == ExitCode.INVALID
    assert "it did not come to its end. seawall itself was killed" in verdict.reasons[0]
    faults = directory.read_table("faults")
    assert [(row["fault"], row["proven_ns"] is None, row["healed_ns"]) for row in faults] == [
        ("apart", False, None),
        ("tight", False, None),
        ("frozen", False, None),
    ]
    assert not list(directory.path.glob(".*"))
    assert heal_leftovers() == []


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_runs_that_start_in_the_same_second_do_not_share_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["harness.runner.run"], "now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    made = plan(scenario.parse(HEAD + "schedule: [{send: {per_partition: 1}}]\n"), "simulated", seed=3)
    first, second = run(made, tmp_path), run(made, tmp_path)
    assert [one.path.name for one in (first, second)] == ["20260101T000000-3", "20260101T000000-3-2"]
    assert first.manifest().run != second.manifest().run
    assert (tmp_path / "latest").resolve() == second.path


@pytest.mark.usefixtures("without_nohup")
def test_what_is_left_of_an_interrupted_run_is_named_and_stays_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(target: SimulatedTarget) -> None:
        del target
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SimulatedTarget, "start", interrupted)
    monkeypatch.setattr(SimulatedTarget, "remains", lambda _: ["container seawall-1-kafka"])
    with pytest.raises(EnvironmentFault, match="there is still container seawall-1-kafka"):
        run(plan(scenario.parse(HEAD + "schedule: [{wait_s: 60}]\n"), target="simulated"), tmp_path)
    assert RunDirectory.open(tmp_path / "latest").manifest().state == "interrupted"
    [journal] = journal_directory().glob("*.json")
    journal.unlink()
