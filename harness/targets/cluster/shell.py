"""Runs a script on a node of a running cluster, or on this machine, and tells what it printed."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from harness.errors import EnvironmentFault
from harness.targets.cluster.cluster_file import Transport

TIMEOUT_S = 60.0
"""For how long one command may run."""

_MOST_CHARS = 200
_AFTER_A_LINE = 'read -r _ && exec "$@" </dev/null'
"""Becomes the command that is its arguments when its input has a line; ends when that ends without one."""


class Ran(NamedTuple):
    """How a command ended: its exit status, and what it printed to each stream."""

    status: int
    printed: str
    complained: str

    @property
    def in_words(self) -> str:
        """The end of what it said, on one line."""
        said = (self.complained.strip() or self.printed.strip()).splitlines()
        return f"exit status {self.status}{': ' + said[-1][-_MOST_CHARS:] if said else ''}"


def words(transport: Transport, script: str) -> Sequence[str]:
    """The command line that runs ``script`` by ``sh`` on the far side of ``transport``."""
    shell = ("sh", "-c", script)
    if transport.ssh is not None:  # it joins words by spaces, for the login shell of the other side
        return "ssh", "-o", "BatchMode=yes", *transport.options, transport.ssh, shlex.join(shell)
    if transport.docker is not None:
        return "docker", "exec", *transport.options, transport.docker, *shell
    if transport.kubectl is not None:
        return "kubectl", "exec", *transport.options, transport.kubectl, "--", *shell
    return *(transport.argv or ()), *shell


def save(command: Sequence[str], path: Path, timeout_s: float) -> Ran:
    """Run a command line to its end, and keep what it prints in a file, as it is; otherwise as :func:`run`."""
    with path.open("wb") as printed, tempfile.TemporaryFile() as complained:
        process = _ended(command, (printed, complained), timeout_s)
        complained.seek(0)
        return Ran(process.returncode, "", complained.read().decode(errors="replace"))


def run(command: Sequence[str], started: Callable[[int], None] | None = None) -> Ran:
    """Run a command line to its end, also while a signal interrupts this.

    Its output goes to files: a node that it starts may keep it open.

    Args:
        command: the words.
        started: is called with the id of its process before the command does anything, which it never does if this
            process ends in that call; None: none is to know.

    Raises:
        EnvironmentFault: it cannot be started, or has not ended within :data:`TIMEOUT_S`.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained:
        process = _ended(command, (printed, complained), TIMEOUT_S, started)
        texts = []
        for output in (printed, complained):
            output.seek(0)
            texts.append(output.read().decode(errors="replace"))
    return Ran(process.returncode, *texts)


def _ended(
    command: Sequence[str],
    outputs: tuple[IO[bytes], IO[bytes]],
    timeout_s: float,
    started: Callable[[int], None] | None = None,
) -> subprocess.Popen[bytes]:
    """The process of a command line, which has ended; its output went to files."""
    printed, complained = outputs
    try:
        process = subprocess.Popen(
            command if started is None else ("sh", "-c", _AFTER_A_LINE, "sh", *command),
            stdin=subprocess.DEVNULL if started is None else subprocess.PIPE,
            stdout=printed,
            stderr=complained,
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentFault(f"{command[0]} cannot be started: {error.strerror}.") from None
    try:
        if started is not None:
            started(process.pid)
        process.communicate(None if started is None else b"\n", timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise EnvironmentFault(f"{command[0]} has not ended within {timeout_s:g} s.") from None
    finally:
        _await_end(process)
    return process


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a command that was started, also when a signal ended the wait: its undo comes later."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
