"""Reads the start time of a process, which distinguishes it from a later process with the same id.

The time is in ticks since a boot, with the id of that boot, and so independent of the wall clock.
"""

from __future__ import annotations

from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_TIME = 18
"""The index of the start time among the fields of ``/proc/PID/stat`` after the state."""


def boot() -> str:
    """The id of this boot of the machine."""
    return _BOOT.read_text().strip()


def start_time(pid: int | str) -> str:
    """The start time in ticks since the boot; empty: there is no such process, or it has ended."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state == "Z" else fields[_START_TIME]
