"""The same verdict from a cluster, from any file system that Hadoop knows, and when a machine dies meanwhile."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harness.cli.origin import PACKAGES
from harness.errors import ExitCode
from harness.history.run_directory import RunDirectory
from tests.checkers.dealing import rewrite
from tests.spark_analysis.cluster import Cluster, bare_python, cluster
from tests.spark_analysis.submitted import expected, lossy, said, submit

STARTS = pytest.mark.nightly("starts a Spark cluster and a driver; by day URIs are read in one process")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def running(root: Path) -> Any:
    with cluster(root, workers=3) as started:
        yield started


def submit_mounted(
    master: str, root: Path, name: str, *, large: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """``seawall check`` of a run below ``root``, which is mounted on a file system of Hadoop's."""
    mounted = f"spark.hadoop.fs.viewfs.mounttable.here.link./runs={root.as_uri()}"
    return submit(master, f"viewfs://here/runs/{name}", mounted, large=large, **environment)


@STARTS
def test_a_worker_that_dies_meanwhile_changes_nothing(root: Path, running: Cluster) -> None:
    path = lossy(root / "lossy")
    wanted = expected(path)
    process = submit_mounted(running.master, root, "lossy")
    kill_worker_when(process, running, path, ".scratch-*/2/_SUCCESS")
    output, _ = process.communicate()
    assert process.returncode == ExitCode.VIOLATION, output
    assert said(path) == wanted
    assert not list(path.glob(".scratch-*"))


@STARTS
def test_a_worker_that_dies_while_a_large_run_is_digested_changes_nothing(root: Path, running: Cluster) -> None:
    """Executors lack seawall: what digests files comes with the tasks."""
    path = lossy(root / "large")
    for table in ("history", "replica_logs"):
        rows = len(RunDirectory(path).read_table(table))
        rewrite(path, table, [range(begin, min(begin + 5, rows)) for begin in range(0, rows, 5)])
    wanted = expected(path)
    python = bare_python(root)
    for known, code in (("numpy, pyarrow, pyspark", 0), *((package, 1) for package in PACKAGES)):
        assert subprocess.run([python, "-c", f"import {known}"], cwd=root, env={}, check=False).returncode == code
    process = submit_mounted(running.master, root, "large", large=True, PYSPARK_PYTHON=str(python))
    kill_worker_when(process, running, path, ".scratch-*/1/_temporary")
    output, _ = process.communicate()
    assert process.returncode == ExitCode.VIOLATION, output
    assert said(path) == wanted
    assert not list(path.glob(".scratch-*"))


def kill_worker_when(process: subprocess.Popen[str], running: Cluster, path: Path, there: str) -> None:
    """Kill a worker as soon as the check has come so far that something matches the pattern ``there``."""
    while not list(path.glob(there)):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    running.kill_worker()


@STARTS
def test_a_damaged_file_behind_a_uri_is_named(root: Path, running: Cluster) -> None:
    path = lossy(root / "damaged")
    [file] = (path / "replica_logs").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 8] ^= 1
    file.write_bytes(content)
    (path / "timeline" / "part-00000.parquet").write_bytes(b"PAR1")
    process = submit_mounted(running.master, root, "damaged")
    output, _ = process.communicate()
    assert process.returncode == ExitCode.INVALID, output
    reasons = " ".join(said(path)["reasons"])
    assert "viewfs://here/runs/damaged/replica_logs/part-00000.parquet cannot be read" in reasons
    assert "viewfs://here/runs/damaged/timeline/part-00000.parquet is truncated" in reasons


@STARTS
def test_a_uri_without_a_run_is_one_sentence(root: Path, running: Cluster) -> None:
    output, _ = (process := submit_mounted(running.master, root, "nothing")).communicate()
    assert process.returncode == ExitCode.INVALID
    assert "viewfs://here/runs/nothing/run.json is missing: this is not a run directory." in " ".join(output.split())


@pytest.mark.nightly("starts a driver; by day test_session has masters that do not answer")
def test_a_master_that_spark_cannot_use_is_said_by_its_innermost_reason(root: Path) -> None:
    path = lossy(root / "stranded")
    output, _ = (process := submit("k8s://https://127.0.0.1:1", str(path))).communicate()
    assert process.returncode == ExitCode.ENVIRONMENT, output
    said = " ".join(output.split())
    assert "Spark does not start on master k8s://https://127.0.0.1:1: " in said
    assert "Connection refused" in said
