"""Runs other programs and waits for them: the compose tool, Maven, the C compiler.

Each has a session of its own, so that Ctrl-C does not reach it. On a signal or a timeout seawall ends every process of
that session before it goes on: ``docker compose`` is two processes, in two process groups.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from harness.signals import postponed

_TERM_TIMEOUT_S = 5.0
_KILL_TIMEOUT_S = 10.0


def run(
    words: Sequence[str],
    timeout_s: float | None = None,
    *,
    given: str = "",
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; returns its exit status and output.

    Args:
        words: the command line.
        timeout_s: for how long it may run; None: without limit.
        given: its standard input.
        directory: its working directory; None: this process's.
        environment: of the program; None: this process's.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer, and was ended.
    """
    with ExitStack() as stack:
        process: subprocess.Popen[str] | None = None
        try:
            with postponed():
                process = stack.enter_context(
                    subprocess.Popen(
                        words,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                        errors="replace",
                        cwd=directory,
                        env=environment,
                        start_new_session=True,
                    )
                )
            stdout, stderr = process.communicate(given, timeout_s)
        except BaseException:
            if process is not None:
                end_session(process.pid)
                process.wait()
            raise
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def end_session(leader: int) -> None:
    """End every process of the session that ``leader`` has begun; ``leader`` itself may be gone."""
    end([one for one in psutil.process_iter() if _is_member(one, leader)])


def end(processes: Sequence[psutil.Process]) -> None:
    """End processes by SIGTERM, and after 5 s by SIGKILL, and wait for their end."""
    for number, timeout_s in ((signal.SIGTERM, _TERM_TIMEOUT_S), (signal.SIGKILL, _KILL_TIMEOUT_S)):
        for one in processes:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)
        _, processes = psutil.wait_procs(processes, timeout_s)


def _is_member(one: psutil.Process, leader: int) -> bool:
    with suppress(OSError, psutil.Error):
        return os.getsid(one.pid) == leader and one.status() != psutil.STATUS_ZOMBIE
    return False
