"""When a process was born, by which it is told from a later one that has its id.

In ticks since the boot, and of which boot: that is not moved when the wall clock is set.
"""

from __future__ import annotations

from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_TIME = 18
"""Where the time of start is among the fields of ``/proc/PID/stat`` that follow the state."""


def boot() -> str:
    """The id of this boot of the machine."""
    return _BOOT.read_text().strip()


def start_time(pid: int | str) -> str:
    """In ticks since the boot; empty: there is no such process, or it has ended."""
    try:
        told = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return ""
    state, *fields = told.rpartition(")")[2].split()
    return "" if state == "Z" else fields[_START_TIME]
