"""A node that cannot do its work: its own files cannot be written, or it is not told the secret of its run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.broker.controller_node import SNAPSHOT
from harness.broker.ledger import ledger_path
from harness.errors import ExitCode
from harness.model import CONTROLLER_ID, NodeId
from harness.targets.forked import fork_server
from tests.harness.broker.cluster import Cluster


def test_a_node_that_cannot_write_its_timeline_says_so_in_a_line_and_has_not_halted(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, brokers=1)
    try:
        cluster.configs[NodeId(0)] = replace(cluster.configs[NodeId(0)], timeline="/dev/full")
        assert cluster.spawn(0).wait(60) == ExitCode.ENVIRONMENT
        assert cluster.log(0).splitlines()[-1] == "FATAL: Node 0 cannot write its timeline: No space left on device."
        assert "Traceback" not in cluster.log(0)
    finally:
        cluster.stop()


def test_a_node_that_is_told_no_secret_does_not_start(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, brokers=1)
    try:
        cluster.spawn(0)
        cluster.kill(0)
        log = tmp_path / "log"
        with open(os.devnull, "rb") as nothing, log.open("wb") as stderr:
            ended = fork_server().fork(NodeId(0), tmp_path / "node-0.json", nothing, stderr)
            assert ended.wait(60) == ExitCode.ENVIRONMENT
        assert "Node 0 cannot start: standard input does not begin with the secret of a run." in log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        cluster.stop()


DEEP = b"[" * 100_000 + b"\n"


@pytest.mark.parametrize("garbage", [b"\xfe\xff\n", b"3\n", DEEP], ids=["no text", "a number", "deep"])
def test_a_broker_whose_ledger_is_garbled_names_it(tmp_path: Path, garbage: bytes) -> None:
    cluster = Cluster(tmp_path, brokers=1)
    try:
        root = Path(cluster.configs[NodeId(0)].data_dir)
        root.mkdir()
        ledger_path(root).write_bytes(garbage)
        assert cluster.spawn(0).wait(60) == ExitCode.ENVIRONMENT
        assert f"Node 0 cannot start: the ledger {ledger_path(root)} is garbled." in cluster.log(0)
    finally:
        cluster.stop()


@pytest.mark.parametrize("garbage", [b"\xfe\xff\n", DEEP], ids=["no text", "deep"])
def test_a_controller_whose_snapshot_is_garbled_names_it(tmp_path: Path, garbage: bytes) -> None:
    cluster = Cluster(tmp_path, brokers=1)
    try:
        root = Path(cluster.configs[CONTROLLER_ID].data_dir)
        root.mkdir()
        (root / SNAPSHOT).write_bytes(garbage)
        assert cluster.spawn(CONTROLLER_ID).wait(60) == ExitCode.ENVIRONMENT
        assert f"cannot start: the snapshot {SNAPSHOT} is garbled." in cluster.log(CONTROLLER_ID)
    finally:
        cluster.stop()
