"""The same verdict from a cluster, from any file system that Hadoop knows, and when a machine dies meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.errors import ExitCode
from tests.checkers.story import Story
from tests.spark_analysis.cluster import Cluster, cluster


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def running(root: Path) -> Any:
    with cluster(root) as started:
        yield started


def lossy(path: Path) -> Path:
    """A run in which acknowledged writes are lost."""
    story = Story(path.name)
    for _ in range(6):
        story.send()
    story.poll(5, range(6))
    story.cut(1, 3)
    story.elect(1)
    return story.finish().write(path)


def submit(master: str, root: Path, name: str) -> subprocess.Popen[str]:
    """``seawall check`` of a run below ``root``, which is mounted on a file system of Hadoop's."""
    mounted = f"spark.hadoop.fs.viewfs.mounttable.here.link./runs={root.as_uri()}"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"--conf {mounted} --conf spark.executor.memory=512m pyspark-shell",
    }
    command = [
        str(Path(sys.executable).with_name("seawall")),
        "check",
        "--master",
        master,
        f"viewfs://here/runs/{name}",
    ]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said(path: Path) -> Any:
    return json.loads((path / "verdict.json").read_text())


def expected(path: Path) -> Any:
    """What the reference says."""
    check([path], engine="reference")
    document = said(path)
    (path / "verdict.json").unlink()
    return document | {"engine": "spark"}


def test_a_worker_that_dies_meanwhile_changes_nothing(root: Path, running: Cluster) -> None:
    path = lossy(root / "lossy")
    wanted = expected(path)
    process = submit(running.master, root, "lossy")
    while not list(path.glob(".scratch-*/2/_SUCCESS")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    running.kill_worker()
    output, _ = process.communicate()
    assert process.returncode == ExitCode.VIOLATION, output
    assert said(path) == wanted
    assert not list(path.glob(".scratch-*"))


def test_a_damaged_file_behind_a_uri_is_named(root: Path, running: Cluster) -> None:
    path = lossy(root / "damaged")
    [file] = (path / "replica_logs").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 8] ^= 1
    file.write_bytes(content)
    (path / "timeline" / "part-00000.parquet").write_bytes(b"PAR1")
    process = submit(running.master, root, "damaged")
    output, _ = process.communicate()
    assert process.returncode == ExitCode.INVALID, output
    reasons = " ".join(said(path)["reasons"])
    assert "viewfs://here/runs/damaged/replica_logs/part-00000.parquet cannot be read" in reasons
    assert "viewfs://here/runs/damaged/timeline/part-00000.parquet is truncated" in reasons


def test_a_uri_without_a_run_is_one_sentence(root: Path, running: Cluster) -> None:
    output, _ = (process := submit(running.master, root, "nothing")).communicate()
    assert process.returncode == ExitCode.INVALID
    assert "viewfs://here/runs/nothing/run.json is missing: this is not a run directory." in " ".join(output.split())
