"""A Spark standalone cluster on this machine, a master and workers, from the jars of the installed PySpark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from harness.cli.origin import PACKAGES

SPARK_HOME = Path(pyspark.__file__).parent

_DEADLINE_S = 120.0


class Cluster:
    """Running daemons; ``master`` is the URL to submit to."""

    def __init__(self, master: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.master = master
        self._workers = workers

    def kill_worker(self) -> None:
        """Kill a worker and its executors, without a chance to say goodbye."""
        _kill(self._workers.pop())


@contextmanager
def cluster(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster whose logs and work are below ``directory``; end it afterwards."""
    with ExitStack() as daemons:
        _started(daemons, directory, "master", "master.Master", "--host", "127.0.0.1")
        url = _said(directory / "master.log", r"Starting Spark master at (spark://\S+)")
        running = []
        for number in range(workers):
            options = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work"))
            running.append(_started(daemons, directory, f"worker-{number}", "worker.Worker", *options, url))
            _said(directory / f"worker-{number}.log", r"Successfully registered with (master)")
        yield Cluster(url, running)


def bare_python(directory: Path) -> Path:
    """A Python for executors: this one, with all that is installed but seawall itself."""
    library, others = Path(sysconfig.get_path("purelib")), directory / "library"
    others.mkdir()
    for package in library.iterdir():
        if package.suffix != ".pth" and package.name not in PACKAGES:
            (others / package.name).symlink_to(package)
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{others}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python


def _started(daemons: ExitStack, directory: Path, name: str, daemon: str, *options: str) -> subprocess.Popen[bytes]:
    command = ["java", "-Xmx256m", "-cp", f"{SPARK_HOME}/jars/*", f"org.apache.spark.deploy.{daemon}", "--port", "0"]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # nothing of the driver's
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *options], stdout=log, stderr=log, env=environment, start_new_session=True
        )
    daemons.callback(_kill, process)
    return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _said(log: Path, pattern: str) -> str:
    """What ``pattern`` finds in a log that is still being written."""
    deadline = time.monotonic() + _DEADLINE_S
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline, f"{log} never said {pattern}:\n{log.read_text()}"
        time.sleep(0.05)
    return found[1]
