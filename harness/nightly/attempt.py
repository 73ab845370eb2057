"""One try of a cell: a process in a session of its own, which is interrupted at its time limit, and then killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from harness import program
from harness.births import boot, start_time
from harness.nightly.cells import OUT, Cell
from harness.nightly.launch import command
from harness.runner import heal_leftovers
from harness.scratch import outside
from harness.targets.kinds import kind_of

LOG = "output.log"
"""The file with what a try printed, in its directory."""

GRACE_S = 30.0
"""How long an interrupted try has to heal its cluster before it is killed."""

_MOST_LOG_BYTES = 256 << 10


class _Stage(IntEnum):
    RUNS = 0
    INTERRUPTED = 1
    KILLED = 2


class Attempt:
    """A try of ``cell`` that has been started.

    Args:
        cell: what to run.
        directory: of this try; it is made.
        number: from 1.

    Attributes:
        is_late: whether it passed its time limit.
    """

    def __init__(self, cell: Cell, directory: Path, number: int) -> None:
        self.cell = cell
        self.directory = directory
        self.number = number
        self.is_late = False
        self._stage = _Stage.RUNS
        self._began = self._asked = time.monotonic()
        directory.mkdir(parents=True, exist_ok=True)
        words = [word.replace(OUT, str(directory)) for word in cell.argv]
        with (directory / LOG).open("wb") as log:
            self._process = subprocess.Popen(
                command(words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(outside()), "NO_COLOR": "1"},
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        """Since its start."""
        return time.monotonic() - self._began

    def mark(self) -> dict[str, str | int]:
        """What identifies its process, whose id may be reused."""
        pid = self._process.pid
        return {"cell": self.cell.cell, "pid": pid, "start_time": start_time(pid), "boot": boot()}

    def interrupt(self) -> None:
        """Ask it to heal and stop."""
        if self._stage is _Stage.RUNS:
            self._stage, self._asked = _Stage.INTERRUPTED, time.monotonic()
            self._signal(signal.SIGTERM)

    def ended(self) -> int | None:
        """Its exit code, with nothing left of it; None while it runs. The time limit is kept by calling this often."""
        if self._has_ended():
            program.end_session(self._process.pid)
            code = self._process.wait()
            if self._stage is _Stage.KILLED and self.cell.kind == "run":
                heal_leftovers([kind_of(self.cell.target).name])
            _keep_the_end(self.directory / LOG)
            return code
        if self._stage is _Stage.RUNS and self.seconds > self.cell.time_limit_s:
            self.is_late = True
            self.interrupt()
        elif self._stage is _Stage.INTERRUPTED and time.monotonic() - self._asked > GRACE_S:
            self._stage = _Stage.KILLED
            self._signal(signal.SIGKILL)
        return None

    def _has_ended(self) -> bool:
        """Whether its process has; it stays a zombie, so that no other session gets its number meanwhile."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def end_leftover(pid: int, start: str, booted: str) -> bool:
    """End what is left of a try whose nightly process was killed; returns whether there was anything."""
    if booted != boot() or start_time(pid) not in ("", start):
        return False
    before = start_time(pid) == start
    program.end_session(pid)
    return before


def _keep_the_end(log: Path) -> None:
    with suppress(OSError):
        size = log.stat().st_size
        if size > _MOST_LOG_BYTES:
            with log.open("rb") as file:
                file.seek(size - _MOST_LOG_BYTES)
                end = file.read()
            log.write_bytes(b"[the beginning was cut off]\n" + end)
