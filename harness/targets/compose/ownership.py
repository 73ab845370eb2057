"""Says which process of seawall has made a thing on the engine, and whether that process is gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from harness.births import boot, start_time

_NAMESPACE = Path("/proc/self/ns/pid")


def owner() -> str:
    """This process, as a label has it: user, host, boot, namespace of process ids, id, time of start."""
    pid = os.getpid()
    return " ".join((str(os.getuid()), socket.gethostname(), boot(), _namespace(), str(pid), start_time(pid)))


def is_gone(written: str, *, runs: bool) -> bool:
    """Whether the process that a label names was one of this user's and has certainly ended.

    A process that is invisible from here, in another container or on another host with the same engine, counts as
    running.

    Args:
        written: the label, see :func:`owner`.
        runs: whether a container of its runs; none from before the machine's last boot does.
    """
    match written.split():
        case [user, host, *_] if (user, host) != (str(os.getuid()), socket.gethostname()):
            return False
        case [_, _, booted, _, _, _] if booted != boot():
            return not runs
        case [_, _, _, namespace, pid, started]:
            return namespace == _namespace() and started != start_time(pid)
        case _:
            return False


def _namespace() -> str:
    return str(_NAMESPACE.readlink())
