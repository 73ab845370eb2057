"""Steps the wall clocks of real Kafka nodes through the shim, and reads them back from the Java processes.

The attach mechanism of a JVM (``jcmd PID VM.uptime -date``) returns the same clock as ``System.currentTimeMillis``.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from harness.errors import EnvironmentFault
from harness.targets.kafka.disks import KafkaDisks

_TIMEOUT_S = 5.0
_POLL_S = 0.002
_NS_PER_MS = 1_000_000
_JVM_TEMPORARY = Path("/tmp")  # noqa: S108 (for every JVM on Linux, whatever java.io.tmpdir says)
_QUESTION = b"1\0jcmd\0VM.uptime -date\0\0\0"
_MAX_ANSWER_BYTES = 4096
_SIGQUIT_BIT = 1 << signal.SIGQUIT - 1


class KafkaClocks(KafkaDisks):
    """The clock faults of :class:`harness.controls.WallClocks`."""

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`."""
        self._shim(node).clock_offset_ms = offset_ms

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`. Of several processes, the offset farthest from the wanted one."""
        process, wanted = self._node(node), self._shims[node].clock_offset_ms
        if not process.is_whole or any(jvm.is_stopped for jvm in process.processes):
            raise EnvironmentFault(f"node {node} does not tell the time: {process.in_words()}.")
        return max(map(clock_offset_ms, process.pids), key=lambda seen: abs(seen - wanted))


def clock_offset_ms(pid: int) -> int:
    """The wall clock of a Java process minus this process's, in milliseconds; exact to half the request's round trip.

    Raises:
        EnvironmentFault: it does not answer.
    """
    with _attached(pid) as connection:
        before = time.time_ns()
        answer = _ask(connection)
        after = time.time_ns()
    try:
        seen = datetime.fromisoformat(answer.split(b"\n")[1].split(b": ")[0].decode())
    except (ValueError, IndexError):
        raise EnvironmentFault(f"process {pid} does not tell the time: it says {answer[:80]!r}.") from None
    return round(seen.timestamp() * 1000) - (before + after) // 2 // _NS_PER_MS


@contextmanager
def _attached(pid: int) -> Iterator[socket.socket]:
    """An attach connection: on SIGQUIT the JVM finds a trigger file and listens. All files are removed afterwards."""
    trigger, place = _JVM_TEMPORARY / f".attach_pid{pid}", _JVM_TEMPORARY / f".java_pid{pid}"
    deadline = time.monotonic() + _TIMEOUT_S
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_TIMEOUT_S)
    try:
        while not place.exists():
            if not trigger.exists():
                _await_handler(pid, deadline)
                trigger.touch()
                os.kill(pid, signal.SIGQUIT)
            _pause(pid, deadline)
        connection.connect(str(place))
        yield connection
    except OSError as error:
        raise EnvironmentFault(f"process {pid} does not tell the time: {error.strerror or error}.") from None
    finally:
        connection.close()
        trigger.unlink(missing_ok=True)
        place.unlink(missing_ok=True)


def _await_handler(pid: int, deadline: float) -> None:
    """Wait until the process handles SIGQUIT, which would end it before."""
    while not _caught(pid) & _SIGQUIT_BIT:
        _pause(pid, deadline)


def _caught(pid: int) -> int:
    """The signals that the process handles, as bits: ``SigCgt`` in ``proc(5)``."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))


def _pause(pid: int, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise EnvironmentFault(f"process {pid} does not tell the time within {_TIMEOUT_S:g} s.")
    time.sleep(_POLL_S)


def _ask(connection: socket.socket) -> bytes:
    connection.sendall(_QUESTION)
    answer = b""
    while len(answer) < _MAX_ANSWER_BYTES and (more := connection.recv(_MAX_ANSWER_BYTES)):
        answer += more
    return answer
