"""HDFS and YARN on this machine, in one process, from jars that Maven fetches."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

_HERE = Path(__file__).parent / "hadoop"
SPARKS = Path(pyspark.__file__).parent / "jars"
_DEADLINE_S = 120.0
_FETCH_TIMEOUT_S = 600.0


class Hadoop:
    """A running one; ``conf`` is the directory that its clients read."""

    def __init__(self, conf: Path, class_path: str) -> None:
        self.conf = conf
        self._class_path = class_path

    def shell(self, *words: str) -> str:
        """Do ``hdfs dfs WORDS``, and return what it prints."""
        command = ["java", "-Xmx256m", "-cp", f"{self.conf}:{self._class_path}", "org.apache.hadoop.fs.FsShell", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def mini_hadoop(directory: Path) -> Iterator[Hadoop]:
    """Start HDFS and YARN, with two nodes each, below ``directory``; end them afterwards.

    Where its jars are not to be had, the test is skipped.
    """
    class_path = f"{_fetched(directory)}/*:{':'.join(map(str, SPARKS.glob('log4j-*.jar')))}"
    command = ["java", "-Xmx768m", "-cp", class_path, str(_HERE / "MiniHadoop.java"), str(directory)]
    log = directory / "hadoop.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=output, stderr=output)
    with process:
        try:
            deadline = time.monotonic() + _DEADLINE_S
            while not (directory / "conf" / "core-site.xml").exists():
                assert "Exception in" not in log.read_text(), log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield Hadoop(directory / "conf", class_path)
        finally:
            process.kill()


def _fetched(directory: Path) -> Path:
    """Where the jars are that go with Spark's own of Hadoop."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("there is no Maven (mvn) to fetch HDFS and YARN with")
    [client] = SPARKS.glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    jars = directory / "jars"
    shutil.copy(_HERE / "pom.xml", directory)
    done = subprocess.run(
        [maven, "-B", "-q", "dependency:copy-dependencies", f"-Dhadoop.version={version}", f"-DoutputDirectory={jars}"],
        cwd=directory, capture_output=True, text=True, check=False, timeout=_FETCH_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"Maven did not fetch HDFS and YARN: {done.stdout.strip().partition(chr(10))[0]}")
    return jars
