"""Decides whether the machine, and not the program, caused a node's exit that the harness did not order."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from harness.target import Ending

OUT_OF_MEMORY = 3
"""The exit status that ``-XX:+ExitOnOutOfMemoryError`` brings; Kafka's own are 1 and 2."""

SHIM_FAILED = 70
"""The exit status of a process whose disk shim failed."""

JVM_STATUSES: Mapping[int, str] = MappingProxyType(
    {
        OUT_OF_MEMORY: "its heap, which seawall keeps small, was full",
        SHIM_FAILED: "its disk shim could not write what it keeps of the disk",
    }
)
"""The exit statuses of a JVM that are no fault of Kafka, and their causes."""

_MACHINE = re.compile("address already in use|cannot allocate memory|no space left on device", re.IGNORECASE)
"""Log messages of a node about what the machine refused. Too many open files is none: leaking them is a defect."""


def judged(ending: Ending, statuses: Mapping[int, str] = JVM_STATUSES) -> Ending:
    """``ending`` with its cause; ``statuses`` are those that are no fault of the program."""
    if ending.status < 0:  # a signal, and not the harness's
        return replace(ending, blames=f"{signal.Signals(-ending.status).name} came from elsewhere")
    refused = _MACHINE.search(ending.said)
    usual = f"the machine refused it ({refused[0]})" if refused else ""
    return replace(ending, blames=statuses.get(ending.status, usual))
