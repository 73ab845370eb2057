"""Runs a Java program of a Kafka distribution as a child process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from harness.java import find_java, refuse_old, version_line
from harness.targets.kafka import launcher
from harness.targets.kafka.fetching import Distribution
from harness.targets.node_process import ChildProcess, Spawned

_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "-Djava.awt.headless=true",
)
"""Small, fast-starting JVMs, for many run on few cores. Kafka up to 1.0 unmaps its index files through packages that
newer Java closes (the two ``add``)."""

_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.logger.state.change.logger=TRACE
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

"""Only this log has the controller's requests and when a broker applies them (:mod:`.logged_roles`)."""

LOG4J_2 = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
"""


_NEEDED_BY = "Kafka"
_REMEDY = "Install Java 17 (Debian: openjdk-17-jre-headless), or name one in JAVA_HOME."


TERMINATED = 128 + signal.SIGTERM
"""The exit status of a JVM that SIGTERM has ended, after its shutdown hooks."""


class Program(NamedTuple):
    """What a JVM runs: a main class with its arguments, in a heap of so many MiB."""

    main: str
    arguments: Sequence[str]
    heap_mib: int


class Jvm(ChildProcess):
    """The process of one Java program, over all its incarnations.

    Args:
        name: see :class:`~harness.targets.node_process.ChildProcess`.
        directory: its files; ``hosts`` is its view of the network, see :mod:`harness.targets.kafka.layout`.
        spawned: called with its process ids.
        distribution: where its classes are.
    """

    _TERMINATED: ClassVar[int] = TERMINATED

    def __init__(self, name: str, directory: Path, spawned: Spawned, distribution: Distribution) -> None:
        super().__init__(name, directory, spawned)
        self._distribution = distribution

    @property
    def hosts(self) -> Path:
        """Its hosts file."""
        return self.directory / "hosts"

    def run(self, program: Program, environment: Mapping[str, str]) -> None:
        """Start the next incarnation."""
        self._temporary.mkdir(exist_ok=True)
        parent = (sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()))
        self.start((*parent, *self._command(program)), environment)

    def forget(self) -> None:
        """Remove the native libraries that the program has unpacked."""
        shutil.rmtree(self._temporary, ignore_errors=True)

    @property
    def _temporary(self) -> Path:
        return self.directory / "tmp"

    def _command(self, program: Program) -> Sequence[str]:
        return (
            java(),
            *_OPTIONS,
            f"-Xmx{program.heap_mib}m",
            f"-Djava.io.tmpdir={self._temporary}",
            f"-Djdk.net.hosts.file={self.hosts}",
            self._logging(),
            *("-cp", self._distribution.classpath),
            program.main,
            *program.arguments,
        )

    def _logging(self) -> str:
        modern = self._distribution.release.family.log4j == 2
        path = self.directory / ("log4j2.properties" if modern else "log4j.properties")
        path.write_text(LOG4J_2 if modern else _LOG4J)
        return f"-Dlog4j2.configurationFile={path}" if modern else f"-Dlog4j.configuration={path.resolve().as_uri()}"


def java() -> str:
    """The Java to run.

    Raises:
        EnvironmentFault: there is none.
    """
    return find_java(_NEEDED_BY, _REMEDY)


def refuse_old_java() -> None:
    """Raise as :func:`java`, and when the Java to run is too old.

    All releases start with the same options, so all need what the newest needs.
    """
    refuse_old(java(), _NEEDED_BY, _REMEDY)


def java_version() -> str:
    """The version line of the Java to run: ``openjdk version "17.0.15" 2025-04-15``. Raises as :func:`java`."""
    return version_line(java()) or "(says nothing)"
