"""Processes that a target has started and not noted: a signal may arrive between the birth of one and its note."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

_PATIENCE_S = 1.0
_POLL_S = 0.002


def kill_strays(directory: Path) -> None:
    """Kill the children of this process whose command lines name something in ``directory``.

    A child that was born a moment ago is waited for: until it becomes a program of its own it has the command line of
    this process, and while it does it has none.
    """
    parent = psutil.Process()
    for child in parent.children():
        with suppress(psutil.Error):
            if any(f"{directory}{os.sep}" in word for word in _command_line(child, parent.cmdline())):
                child.kill()


def _command_line(child: psutil.Process, of_parent: list[str]) -> list[str]:
    deadline = time.monotonic() + _PATIENCE_S
    while (words := child.cmdline()) in ([], of_parent) and time.monotonic() < deadline:
        if child.status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(_POLL_S)
    return words
