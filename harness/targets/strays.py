"""Finds and kills the processes of a target that it has started but not yet recorded when a signal arrived."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

_PATIENCE_S = 1.0
_POLL_S = 0.002


def kill_strays(directory: Path) -> None:
    """Kill the children of this process whose command lines name something in ``directory``, and await their end.

    It waits for a new child to execute its program: until then the child has the command line of this process, or none.
    """
    strays = _strays(directory)
    for stray in strays:
        with suppress(psutil.NoSuchProcess):
            stray.kill()
    deadline = time.monotonic() + _PATIENCE_S
    while any(map(_lives, strays)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def processes_left(directory: Path) -> list[str]:
    """The children of this process whose command lines name something in ``directory``, as text."""
    return [f"process {stray.pid}" for stray in _strays(directory) if _lives(stray)]


def _lives(process: psutil.Process) -> bool:
    """Whether the process runs; an exit status is left to the code that started it."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _strays(directory: Path) -> list[psutil.Process]:
    parent = psutil.Process()
    return [child for child in parent.children() if _is_below(directory, child, parent.cmdline())]


def _is_below(directory: Path, child: psutil.Process, of_parent: list[str]) -> bool:
    with suppress(psutil.Error):
        return any(f"{directory}{os.sep}" in word for word in _command_line(child, of_parent))
    return False


def _command_line(child: psutil.Process, of_parent: list[str]) -> list[str]:
    deadline = time.monotonic() + _PATIENCE_S
    while (words := child.cmdline()) in ([], of_parent) and time.monotonic() < deadline:
        if child.status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(_POLL_S)
    return words
