"""The Spark session: one JVM per process, quiet, small, and started before it is needed."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path
from typing import IO, Any

import psutil
import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from harness.errors import EnvironmentFault
from harness.java import OLDEST_JAVA, find_java, refuse_old
from spark_analysis.java_classes import remember_classes

_NEEDED_BY = "Spark"
_REMEDY = f"Install Java {OLDEST_JAVA} or newer and set JAVA_HOME, or check without Spark: --engine reference."

_CONNECT_TIMEOUT_S = 5.0
_END_TIMEOUT_S = 10.0
_LAST_PORT = 65535

_HUGE_BYTES = 64 << 20
"""The size of Parquet files, in bytes, from which on the JVM gets more than the least memory."""

_LONG_BYTES = 2560 << 20
"""The size of Parquet files, in bytes, from which on the JVM gets its second compiler."""

_BUSIEST_JARS = (
    *(f"spark-{part}_2.13" for part in ("catalyst", "core", "sql-api", "sql")),
    *("commons-compiler", "scala-library", "parquet-column", "janino", "log4j-core", "hadoop-client-api"),
)
_OF_OWN_SPARK = frozenset({"SPARK_HOME", "SPARK_CONF_DIR"})

_JOIN_S = 0.1
_OF_SPARK = "pyspark-shell"
"""The end of the command line of every JVM that PySpark starts, and of the processes that start them."""

_FATAL = re.compile(r"\bjava\.lang\.(?:\w+Memory|StackOverflow|Internal|Unknown)Error\b.*")

_MOST_OUTPUT = 1 << 20

_starting = threading.Lock()
_ending = threading.Event()
_warming: list[threading.Thread] = []
_state: dict[str, SparkSession] = {}
_output: list[IO[str]] = []
"""What the JVM of the session writes to its standard error; at most one file."""


def session(master: str | None = None, size: int = 0) -> SparkSession:
    """The process's session; the first call starts the JVM, and decides.

    Args:
        master: a Spark master's URL; None means all processors of this machine.
        size: the bytes of Parquet files to read, if those are large runs; 0: small ones.

    Raises:
        EnvironmentFault: there is no Java, it is too old, the JVM or Spark does not start, or no server answers at
            ``master``.
    """
    with _starting:
        if _ending.is_set():
            raise EnvironmentFault("Spark is not started any more: this process ends.")
        if "session" not in _state:
            _state["session"] = _start(master or "local[*]", size)
            atexit.register(stop)
        return _state["session"]


def running() -> SparkSession | None:
    """The process's session if it has been started; starts none, and waits for none."""
    return _state.get("session")


def in_background(work: Callable[[], None]) -> threading.Thread:
    """Start ``work``, which uses the :func:`session`, early, in a thread that :func:`end` ends, too.

    Where ``work`` fails because of the environment, the next use of the session fails again, so it is not reported.
    Returns the thread.
    """
    thread = threading.Thread(target=_attempt, args=(work,), name="spark-warm-up", daemon=True)
    _warming.append(thread)
    thread.start()
    return thread


def end() -> None:
    """As :func:`stop`, and end the warm-up, too, however far that has come; for the end of this process.

    The thread would otherwise go on until Python takes away what it needs, and complain. py4j logs, with the root
    logger, that the JVM is gone, and PySpark warns of it in the thread; both are expected here.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    _ending.set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            while any(thread.is_alive() for thread in _warming):
                _kill_jvms()
                for thread in _warming:
                    thread.join(_JOIN_S)
        stop()
    finally:
        _kill_jvms()  # one that was started is without a session where a signal came in between
        _warming.clear()
        _ending.clear()
        logging.disable(disabled)


def stop() -> None:
    """Stop the session and its JVM; harmless when there is none."""
    spark = _state.pop("session", None)
    if spark is not None:
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way to end its JVM
        try:
            # Py4JError, OSError: the JVM has gone already, as when a signal has ended all processes of a group.
            with contextlib.suppress(Py4JError, OSError), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                spark.stop()
        finally:
            _end(gateway)
            while _output:
                _output.pop().close()


def _attempt(work: Callable[[], None]) -> None:
    try:
        work()
    except (EnvironmentFault, Py4JError, OSError):
        pass  # OSError: the JVM has been ended meanwhile
    except Exception:
        if not _ending.is_set():
            raise


def _kill_jvms() -> None:
    """Kill every JVM of this process, also one that is only being started."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if _OF_SPARK in child.cmdline():
                child.kill()


def _start(master: str, size: int = 0) -> SparkSession:
    conf = _configuration(master, size)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    java = find_java(_NEEDED_BY, _REMEDY)
    _require_answer(master)
    with contextlib.ExitStack() as unless_started:
        stderr = unless_started.enter_context(tempfile.TemporaryFile(mode="w+"))
        started = _session(master, conf, _launch(conf, stderr, java))
        unless_started.pop_all()
    _output.append(stderr)
    return started


def _session(master: str, conf: SparkConf, gateway: Any) -> SparkSession:
    interrupts = signal.getsignal(signal.SIGINT)
    try:
        remember_classes(gateway.jvm)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Py4JJavaError as error:
        reason = innermost(error.java_exception)  # while the JVM is there to ask
        _end(gateway)
        raise EnvironmentFault(f"Spark does not start on master {master}: {reason}.", _remedy(master)) from None
    except BaseException:
        _end(gateway)
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupts)  # Spark takes it over without asking


def _require_answer(master: str) -> None:
    """Check that a server listens behind a ``spark://host:port,...``; Spark itself would try for very long."""
    if not master.startswith("spark://"):
        return
    reasons = [_refusal(address) for address in master.removeprefix("spark://").split(",")]
    if all(reasons):
        raise EnvironmentFault(
            f"Spark master {master} does not answer: {reasons[0]}.", "Start it, or leave --master out."
        )


def _refusal(address: str) -> str:
    """Why no server answers at ``host:port``; empty when one does."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        return f"{address!r} is not host:port"
    try:
        socket.create_connection((host, int(port)), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _configuration(master: str, size: int) -> SparkConf:
    log4j = resources.files("spark_analysis") / "log4j2.properties"
    large = size > 0
    huge = size >= _HUGE_BYTES
    # The serial collector and the first compiler alone: most verdicts take seconds, and the brokers share the host.
    # The second compiler takes more than it gives until there are some ten million operations.
    # It alone has a fifth of the usual room for its code, which is too little: what was thrown away is compiled again.
    first_alone = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    java = f"-XX:+Use{'Parallel' if large else 'Serial'}GC{'' if size >= _LONG_BYTES else first_alone}"
    java += f" -Djava.io.tmpdir='{tempfile.gettempdir()}'"
    # Where the driver of a cluster listens, and how much memory it has, is Spark's own to configure.
    own = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # On these ports Spark reads Java objects; every user of the machine can connect. Spark makes its own secret.
        "spark.authenticate": "true",
        "spark.driver.memory": "2560m" if huge else "1g",
        "spark.driver.extraClassPath": ":".join(_busiest_jars()),
        "spark.local.dir": tempfile.gettempdir(),
    }
    settings = {
        **(own if master.startswith("local") else {}),
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile={log4j}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark records every plan for its web pages, which are off.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "1000",
        "spark.sql.debug.maxToStringFields": "1",
        # Of the last thousand queries it keeps what was planned, too.
        "spark.sql.ui.retainedExecutions": "1",
        **dict.fromkeys(("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks"), "100"),
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        # What the machine learning library adds to SQL costs seconds, mostly for reflecting on Scala.
        "spark.sql.extensions.test.loadFromCp": "false",
        "spark.sql.session.timeZone": "UTC",
        # Most histories are small: compiling code and re-planning between stages cost more than they save.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "true" if large else "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Looking at a file takes microseconds, and starting a task for it milliseconds.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # Each file read would be given the filter as a string to decode, and has no row group that one could leave out.
        "spark.sql.parquet.filterPushdown": "false",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        # Everything is partitioned by (run, topic, partition) once; joins on more columns need no other partitioning.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
    }
    return SparkConf().setMaster(master).setAppName("seawall").setAll(list(settings.items()))


def _busiest_jars() -> list[str]:
    """The jars that most classes come from: the JVM looks for each class in one jar after the other, of some 280.

    None where Spark is the user's own: its configuration may put others first.
    """
    if not _OF_OWN_SPARK.isdisjoint(os.environ):
        return []
    jars = Path(pyspark.__path__[0]) / "jars"
    return [str(path) for name in _BUSIEST_JARS for path in jars.glob(f"{name}-[0-9]*.jar")]


def _end(gateway: Any) -> None:
    """End the JVM behind ``gateway``, also one that is stuck, or in the middle of a call."""
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    with contextlib.suppress(Exception):
        gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_TIMEOUT_S)
    except BaseException as error:
        gateway.proc.kill()
        gateway.proc.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _kill_born_since(before: Collection[psutil.Process]) -> None:
    """Kill the children that were not there ``before``, and wait for their end.

    An interrupted launch removes the file by which the JVM would report its port, whereupon the JVM never listens for
    the end of its parent, and lives forever.
    """
    born = [child for child in psutil.Process().children(recursive=True) if child not in before]
    for child in born:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(born, _END_TIMEOUT_S)


def _launch(conf: SparkConf, stderr: IO[str], java: str) -> Any:
    before = psutil.Process().children(recursive=True)
    try:
        return launch_gateway(conf, {"stderr": stderr, "stdout": stderr})  # type: ignore[no-untyped-call]
    except KeyboardInterrupt:
        # It only comes in the main thread, which is also the only one to start nodes: what is new is the JVM.
        _kill_born_since(before)
        raise
    except (PySparkException, OSError) as error:
        stderr.seek(0)
        output = stderr.read()
        refuse_old(java, _NEEDED_BY, _REMEDY)
        reason = _complaint(output) or str(error)
        raise EnvironmentFault(
            f"the JVM for Spark did not start: {reason}.", _remedy(conf.get("spark.master"))
        ) from error


def _complaint(output: str) -> str:
    """Why a JVM ended, by its output: what Spark threw, else its first line that is no warning."""
    thrown = re.search(r'^Exception in thread "\S+" [\w.$]+: (.+)', output, re.MULTILINE)
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(("WARNING", "Picked up "))]
    return (thrown[1] if thrown else lines[0] if lines else "").rstrip(".")


def fatal_error() -> str:
    """The first error from which a JVM does not recover that the session's has written about; empty: it has not.

    Of memory that ran out, say, a thread of Spark's dies, and callers get exceptions of something else.
    """
    for stderr in _output:
        written = os.pread(stderr.fileno(), _MOST_OUTPUT, 0)  # the JVM goes on writing where the file's position is
        if found := _FATAL.search(written.decode(errors="replace")):
            return found[0].rstrip(".")
    return ""


def innermost(thrown: Any) -> str:
    """The message of the innermost of a chain of Java's exceptions."""
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.toString()).partition("\n")[0].rstrip(".")


def _remedy(master: str | None) -> str:
    if master is None or master.startswith("local"):
        return _REMEDY
    return "Set up what that master needs (docs/scale.md), or leave --master out."
