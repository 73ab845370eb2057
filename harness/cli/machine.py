"""Probes this machine for everything that a part of seawall needs or can use.

A probe tries the thing: it binds the address, runs the program, asks the engine. It leaves nothing behind.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from harness import program
from harness.errors import EnvironmentFault
from harness.java import OLDEST_JAVA, feature_version, find_java, version_line
from harness.plugins import Plugin, Registry, installed

_PROBE_TIMEOUT_S = 20
_ENOUGH_MEMORY_BYTES = 2 * 1024**3
_ENOUGH_DISK_BYTES = 1024**3
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Escape sequences for colours, which some programs print into a pipe, too."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a probe.

    Attributes:
        present: whether it is there and works.
        required: whether the built-in cluster, or the Spark check where PySpark is installed, cannot work without it.
        seen: the version, the path or the failure.
        needed_for: the parts that use it.
        remedy: how to get it; only shown where it is missing.
        else_it_is: what it is if it is not present, in a word; empty: missing, or absent where it is not required.
    """

    subject: str
    present: bool
    required: bool
    seen: str
    needed_for: str
    remedy: str
    else_it_is: str = ""


def findings(directory: Path) -> Iterator[Finding]:
    """Probe everything, the required things first; ``directory`` is where runs would be written."""
    yield python()
    yield java()
    yield spark()
    yield loopback()
    yield pidfd()
    yield resources(directory)
    yield leftovers()
    yield maven()
    yield compiler()
    yield kcat()
    yield browser()
    yield docker()
    yield compose()
    yield from plugins()


def python() -> Finding:
    """This interpreter."""
    seen = f"{sys.version.split()[0]} ({sys.executable})"
    return Finding("Python", sys.version_info >= (3, 11), True, seen, "everything", "Install Python 3.11 or newer.")


def java() -> Finding:
    """The Java that PySpark would start."""
    from spark_analysis.installed import has_spark

    remedy = (
        f"Install Java {OLDEST_JAVA} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME."
    )
    try:
        found = find_java("Spark", remedy)
        seen, feature = f"{version_line(found) or 'it does not say its version'} ({found})", feature_version(found)
    except EnvironmentFault as problem:
        seen, feature = problem.sentence, None
    present = feature is not None and feature >= OLDEST_JAVA
    return Finding("Java", present, has_spark(), seen, "the Spark check; the reference engine works without", remedy)


def spark() -> Finding:
    """PySpark, which is an extra."""
    from spark_analysis.installed import has_spark

    present = has_spark()
    seen = version("pyspark") if present else "not installed: the reference engine decides"
    return Finding("PySpark", present, False, seen, "the Spark check", "Install 'seawall[spark]'.")


def loopback() -> Finding:
    """Whether all of 127.0.0.0/8 is usable, not just 127.0.0.1 (macOS)."""
    try:
        with socket.socket() as listener:
            listener.bind(("127.77.88.99", 0))
        seen = "127.77.88.99 can be bound"
    except OSError as problem:
        seen = f"127.77.88.99: {problem.strerror}"
    return Finding(
        "loopback 127.0.0.0/8",
        "can be bound" in seen,
        True,
        seen,
        "the built-in cluster: each broker has an address of its own",
        "Run seawall on Linux, where the whole network is loopback.",
    )


def pidfd() -> Finding:
    """Whether the end of a process can be awaited that another one has started."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        seen = ""
    except (OSError, AttributeError) as problem:
        seen = str(problem)
    return Finding(
        "pidfd_open",
        not seen,
        True,
        seen or f"Linux {os.uname().release}",
        "the built-in cluster and Kafka's processes: their ends are seen",
        "Run seawall on Linux 5.3 or newer; a container's seccomp profile must allow pidfd_open.",
    )


def resources(directory: Path) -> Finding:
    """Memory, disk and processors."""
    existing = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    memory, disk = psutil.virtual_memory().available, shutil.disk_usage(existing).free
    return Finding(
        "memory, disk, cores",
        memory >= _ENOUGH_MEMORY_BYTES and disk >= _ENOUGH_DISK_BYTES,
        False,
        f"{memory / 1024**3:.1f} GiB free, {disk / 1024**3:.1f} GiB free at {existing}, {os.cpu_count()} cores",
        "a run with its Spark check takes about 2 GiB of memory and some MiB of disk",
        "Free some, or check with --engine reference.",
    )


def leftovers() -> Finding:
    """What killed harnesses left behind, until the next run or ``seawall heal`` removes it."""
    from harness.runner.journal import abandoned

    left = abandoned()
    seen = f"{len(left)} abandoned: {', '.join(path.stem for path in left)}" if left else "none"
    return Finding("leftovers of killed runs", not left, False, seen, "a clean machine", "Run `seawall heal`.")


def maven() -> Finding:
    """Maven, which fetches the jars of Kafka's releases."""
    return _program("mvn", ("--version",), "fetching old releases of real Kafka", "Debian: apt install maven.", "Maven")


def compiler() -> Finding:
    """The C compiler that would compile the shim for real Kafka."""
    from harness.targets.kafka.shim import compiler_name

    needed_for = "disks that fill or lose power, and clocks that are wrong, of real Kafka"
    return _program(compiler_name(os.environ), ("--version",), needed_for, "Debian: apt install gcc libc6-dev.")


def kcat() -> Finding:
    """The command-line Kafka client."""
    return _program(
        "kcat", ("-V",), "looking into a cluster by hand; any Kafka client does", "Debian: apt install kcat."
    )


def browser() -> Finding:
    """A browser: reports are single HTML files."""
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "firefox"))), None)
    return Finding(
        "browser", found is not None, False, found or "not found", "opening a report here", "Copy the report elsewhere."
    )


_CONTAINERS = "real Kafka in containers: --target compose:FILE"


def docker() -> Finding:
    """The Docker engine that DOCKER_HOST names, or the one of this machine."""
    from contextlib import closing

    from harness.targets.compose.project import connected

    try:
        with closing(connected()) as client:
            seen, present = f"engine {client.version()['Version']}", True
    except EnvironmentFault as problem:
        seen, present = problem.sentence, False
    remedy = "Debian: apt install docker.io; start it, and let this user use it."
    return Finding("Docker engine", present, False, seen, _CONTAINERS, remedy)


def compose() -> Finding:
    """Docker Compose, as the plugin (v2) or the old program (v1)."""
    plugin = _first_line(("docker", "compose", "version"))
    standalone = _first_line(("docker-compose", "--version"))
    seen = plugin or standalone or "neither `docker compose` (v2) nor `docker-compose` (v1)"
    remedy = "Install the compose plugin of Docker (Debian: apt install docker-compose)."
    return Finding("Docker Compose", bool(plugin or standalone), False, seen, _CONTAINERS, remedy)


def _program(name: str, arguments: Sequence[str], needed_for: str, remedy: str, subject: str = "") -> Finding:
    line = _first_line((name, *arguments))
    seen = (
        f"{line} ({shutil.which(name)})"
        if line
        else "found, but it does not answer"
        if shutil.which(name)
        else "not found"
    )
    return Finding(subject or name, line is not None, False, seen, needed_for, remedy)


def _first_line(command: Sequence[str]) -> str | None:
    """The first line that ``command`` prints; None when it is missing, fails or hangs."""
    try:
        done = program.run(command, _PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    lines = _COLOURS.sub("", done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else None


def plugins() -> Iterator[Finding]:
    """Every installed plugin, loaded."""
    import faults
    import workloads
    from checkers.registry import CHECKERS
    from harness.targets import kinds

    registries: list[Registry[Any]] = [faults.KINDS, workloads.KINDS, kinds.KINDS, CHECKERS]
    for registry in registries:
        for plugin in installed(registry.group):
            yield _plugin(plugin, registry, for_all=registry is CHECKERS)


def _plugin(plugin: Plugin, registry: Registry[Any], *, for_all: bool) -> Finding:
    """``for_all``: whether every check uses it, named or not."""
    subject, needed_for = f"plugin {plugin.name}", "every check" if for_all else f"what names {plugin.name!r}"
    if unused := registry.unused(plugin):
        return Finding(subject, False, False, unused, needed_for, "Rename it, or uninstall one of the two.", "unused")
    try:
        registry[plugin.name]
        seen, works = plugin.distribution, True
    except EnvironmentFault as broken:
        seen, works = broken.sentence, False
    return Finding(subject, works, for_all, seen, needed_for, "Mend it, or uninstall it.", "broken")
