"""A running cluster whose nodes are in containers, and are harmed there by ``docker exec``."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checker import Outcome
from harness.targets.cluster.cluster_file import Transport
from harness.targets.cluster.shell import run, words
from tests.harness.targets.cluster.plain_cluster import ROOT, PlainCluster, described
from tests.harness.targets.cluster.test_commanded_cluster import MISCHIEF, judged, with_faults
from tests.harness.targets.compose.conftest import Engine

PYTHON = Path(sys.executable).resolve()
SHARED = sorted({"/usr", str(ROOT), str(PYTHON.parents[1])})
"""What the containers read of this machine, for their image has no Python."""


def started(name: str, directory: Path) -> None:
    """Start a container that does nothing by itself; its addresses are this machine's."""
    mounts = [f"--volume={path}:{path}:ro" for path in SHARED] + [f"--volume={directory}:{directory}"]
    options = ["--detach", "--name", name, "--network=host", *mounts]
    subprocess.run(("docker", "run", *options, "seawall/base", "sleep", "infinity"), check=True, capture_output=True)


def removed(name: str) -> None:
    subprocess.run(("docker", "rm", "--force", name), check=False, capture_output=True)


@contextmanager
def in_containers(directory: Path) -> Iterator[PlainCluster]:
    """Start a cluster with a container for each node."""
    prefix = f"seawall-test-{uuid.uuid4().hex[:8]}"
    with described(directory) as cluster, ExitStack() as containers:
        nodes: list[Mapping[str, Any]] = []
        for node in reversed(cluster.file["nodes"]):
            name = f"{prefix}-{node['id']}"
            containers.callback(removed, name)
            started(name, directory)
            ran = run(words(Transport(docker=name), node["commands"]["start"]))
            assert ran.status == 0, ran
            nodes.append({**node, "transport": {"docker": name}})
        cluster.await_brokers()
        yield replace(cluster, file={**cluster.file, "nodes": nodes})


@pytest.mark.nightly("containers of its own; by day plain processes are harmed by the same commands")
def test_nodes_in_containers_are_killed_paused_and_shut_down_by_docker_exec(engine: Engine, tmp_path: Path) -> None:
    engine.need("base")
    given = [*MISCHIEF[:2], {"fault": "stop", "node": "any"}]
    with in_containers(tmp_path / "cluster") as cluster:
        target = cluster.written()
        directory, verdict = judged(target, tmp_path / "runs", with_faults(*given, at_once=1), 12)
    rows = directory.read_table("faults")
    assert verdict.outcome is Outcome.PASS, (verdict, rows)
    assert {row["kind"] for row in rows} == {fault["fault"] for fault in given}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
