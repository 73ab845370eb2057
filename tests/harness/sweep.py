"""A command of seawall's that gets a signal at some moment: how it ends, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

COMMAND = (sys.executable, "-c", "import sys; from harness.entry import main; sys.exit(main())")
_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 180.0
_MARK = "SEAWALL_SWEPT_IN"


@dataclass(frozen=True)
class Ended:
    """What came of it.

    Attributes:
        status: its exit status.
        said: what it wrote to standard error.
        processes: the command lines of the processes that it has left.
        files: what it has left in the temporary directory, and the unfinished files in its directory.
    """

    status: int
    said: str
    processes: Sequence[str]
    files: Sequence[str]


def interrupted(words: Sequence[str], after_s: float, signals: Sequence[signal.Signals], directory: Path) -> Ended:
    """Run a command in ``directory``, with a temporary directory of its own; send it these signals, after so long."""
    (temporary := directory / "tmp").mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(directory / "state"),
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(_ROOT),
        _MARK: str(directory),
    }
    process = subprocess.Popen(
        (*COMMAND, *words), cwd=directory, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    time.sleep(after_s)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.02)
    _, said = process.communicate(timeout=_TIMEOUT_S)
    return Ended(process.returncode, said, left_running(directory), left_behind(directory))


def left_running(directory: Path, within_s: float = 10.0) -> list[str]:
    """The command lines of the processes that a command has started in ``directory`` and that do not end."""
    deadline = time.monotonic() + within_s
    while (found := _running(directory)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _running(directory: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == str(directory) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def left_behind(directory: Path) -> list[str]:
    """Temporary files, journals, and files that were not finished."""
    of_jvms = [path for path in (directory / "tmp").glob("hsperfdata_*") if path.is_dir()]
    temporary = [path for path in (directory / "tmp").iterdir() if path not in of_jvms]
    kept = [path for path in (directory / "state").rglob("*") if path.is_file()]
    return sorted(map(str, [*temporary, *kept, *directory.rglob(".*.partial"), *directory.rglob(".latest-*")]))
