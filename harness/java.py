"""Finds the Java of this machine and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from harness.errors import EnvironmentFault

OLDEST_JAVA = 17
"""The oldest that Spark 4 and the newest releases of Kafka run on."""

_TIMEOUT_S = 30.0

_VERSION = re.compile(r'^\S+ version "(?:1\.)?(?P<feature>\d+).*', re.MULTILINE)
"""Java 8 and older call themselves 1.8."""


def find_java(needed_by: str, remedy: str) -> str:
    """The Java to run: ``$JAVA_HOME/bin/java``, or else the one on the PATH.

    Args:
        needed_by: the program that needs it.
        remedy: what to do where there is none.

    Raises:
        EnvironmentFault: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        place = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise EnvironmentFault(f"{needed_by} needs Java {OLDEST_JAVA} or newer, and there is none {place}.", remedy)
    return found


def refuse_old(java: str, needed_by: str, remedy: str) -> None:
    """Raise an :class:`EnvironmentFault` when ``java`` is too old; an unknown version is accepted."""
    feature = feature_version(java)
    if feature is not None and feature < OLDEST_JAVA:
        raise EnvironmentFault(f"Java {feature} ({java}) is too old for {needed_by}.", remedy)


def feature_version(java: str) -> int | None:
    """17 of ``openjdk version "17.0.15"`` and 8 of ``java version "1.8.0_402"``; None when ``java`` prints none."""
    said = _VERSION.match(version_line(java) or "")
    return int(said["feature"]) if said else None


@cache
def version_line(java: str) -> str | None:
    """The version line of ``java``, as ``openjdk version "17.0.15" 2025-04-15``.

    None when it prints none: it crashes or hangs, or is no Java.
    """
    command = (java, "-version")
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    said = _VERSION.search(done.stderr)
    return said[0] if said else None
