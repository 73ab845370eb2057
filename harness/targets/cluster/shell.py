"""Runs a script on a node of a running cluster, or on this machine, and tells what it printed."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from harness.errors import EnvironmentFault
from harness.targets.cluster.cluster_file import Transport

TIMEOUT_S = 60.0
"""For how long one command may run."""

_MOST_CHARS = 200


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


def run(command: Sequence[str]) -> Ran:
    """Run a command line to its end.

    Its output goes to files: a node that it starts may keep it open.

    Raises:
        EnvironmentFault: it cannot be started, or has not ended within :data:`TIMEOUT_S`.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained:
        try:
            ended = subprocess.run(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                start_new_session=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise EnvironmentFault(f"{command[0]} cannot be started: {error.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise EnvironmentFault(f"{command[0]} has not ended within {TIMEOUT_S:g} s.") from None
        texts = []
        for output in (printed, complained):
            output.seek(0)
            texts.append(output.read().decode(errors="replace"))
    return Ran(ended.returncode, *texts)
