from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest
from py4j.protocol import Py4JNetworkError

from checkers.registry import RULES
from harness.errors import EnvironmentFault
from spark_analysis import session, warmup
from tests.harness.fake_java import fake_java

_PATIENCE_S = 60.0

# The module's own JVM is not started here: these are the ways in which it does not start.


def reason(master: str = "local[1]") -> str:
    """Why the session does not start."""
    with warnings.catch_warnings():
        # Spark forgets to close its pipe to a JVM that did not start.
        warnings.simplefilter("ignore", ResourceWarning)
        message = ""
        try:
            session._start(master)
        except EnvironmentFault as error:
            message = str(error)
        gc.collect()
    return message


def test_no_java_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert re.search(rf"none in JAVA_HOME \({tmp_path}\).*--engine reference", reason())


def test_no_java_on_the_path_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.search("none on the PATH", reason())


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, """[ "$1" = -version ] || exit 1; echo 'openjdk version "1.8.0_402"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert re.search(r"Java 8 \(.*\) is too old for Spark\..*--engine reference", reason())


def test_why_the_jvm_did_not_start_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, "echo 'no room in here' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert re.search(r"did not start: no room in here\.", reason())


def test_that_java_was_given_options_is_no_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, "echo 'Picked up JAVA_TOOL_OPTIONS: -Xint' >&2; echo 'no room in here' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert re.search(r"did not start: no room in here\.", reason())


def test_every_jar_that_is_to_be_looked_into_first_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in session._OF_OWN_SPARK:
        monkeypatch.delenv(name, raising=False)
    names = [Path(path).name.rpartition("-")[0] for path in session._busiest_jars()]
    assert names == list(session._BUSIEST_JARS)


def test_whose_spark_is_their_own_has_the_class_path_that_they_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert session._busiest_jars() == []


def test_what_spark_threw_is_said_and_not_what_it_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    said = r"did not start: When running with master 'yarn' either HADOOP_CONF_DIR .* Set up what that master needs"
    assert re.search(said, reason("yarn"))


@pytest.mark.parametrize(
    ("master", "reason"),
    [("spark://127.0.0.1:1", "Connection refused"), ("spark://127.0.0.1:1,127.0.0.1:2", "Connection refused"),
     ("spark://nowhere", "'nowhere' is not host:port"), ("spark://127.0.0.1:99999", "is not host:port")],
)  # fmt: skip
def test_a_master_that_does_not_answer_is_not_waited_for(master: str, reason: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"Spark master {master} does not answer: .*{reason}"):
        session._start(master)


def test_an_interrupted_start_leaves_no_jvm_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, f"touch {tmp_path}/started; exec sleep 600")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    def interrupt() -> None:
        until = time.monotonic() + _PATIENCE_S
        while not (tmp_path / "started").exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = psutil.Process().children(recursive=True)
    thread = threading.Thread(target=interrupt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Spark forgets to close its pipe
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session._start("local[1]")
        gc.collect()
        subprocess.run(["true"], check=True)  # every new process drops the forgotten ones, pipe and all
    thread.join()
    born = [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert [child for child in born if child.status() != psutil.STATUS_ZOMBIE] == []


def test_warming_up_without_java_is_harmless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(session, "_state", {})
    thread = warmup.warm_up(RULES)
    thread.join()
    assert not session._state


def test_a_jvm_that_is_ended_while_it_warms_up_is_no_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    monkeypatch.setattr(session, "session", Mock(side_effect=ConnectionRefusedError))
    warmup.warm_up(RULES).join()
    assert not complaints


@pytest.mark.parametrize("error", [ConnectionRefusedError(), Py4JNetworkError()])
def test_a_session_whose_jvm_has_gone_is_stopped_without_a_complaint(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    ended, spark = Mock(), Mock()
    spark.stop.side_effect = error
    monkeypatch.setattr(session, "_end", ended)
    monkeypatch.setitem(session._state, "session", spark)
    session.stop()
    ended.assert_called_once_with(spark.sparkContext._gateway)


@pytest.mark.parametrize(
    "after_s",
    [
        1.0,
        *(pytest.param(one, marks=pytest.mark.nightly("by day a command ends after a second")) for one in (0.0, 4.0)),
    ],
)
def test_a_command_that_ends_soon_ends_what_warms_spark_up_without_a_word(after_s: float) -> None:
    script = (
        "import time; from checkers.registry import RULES; from spark_analysis import session, warmup\n"
        f"warmup.warm_up(RULES); time.sleep({after_s}); session.end()\n"
        "import psutil; print(len(psutil.Process().children()))\n"
    )
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_a_jvm_that_has_no_session_yet_is_ended_too() -> None:
    script = (
        "import subprocess, sys; from spark_analysis import session\n"
        "jvm = subprocess.Popen((sys.executable, '-c', 'import time; time.sleep(600)', 'pyspark-shell'))\n"
        "session.end(); print(jvm.wait(60))\n"
    )
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("-9\n", "")


def test_what_the_jvm_dies_of_is_known_while_its_session_is_there() -> None:
    script = (
        "from spark_analysis import session\n"
        "spark = session.session(); print(repr(session.fatal_error()))\n"
        "for one in ('ERROR Executor: x', 'java.lang.OutOfMemoryError: Java heap space', 'java.lang.InternalError'):\n"
        "    spark._jvm.java.lang.System.err.println(one)\n"
        "print(session.fatal_error()); session.stop(); print(repr(session.fatal_error()))\n"
    )
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)
    assert done.stdout == "''\njava.lang.OutOfMemoryError: Java heap space\n''\n", done.stderr
