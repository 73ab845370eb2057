"""Starts, signals and inspects the operating system process of a node."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

from harness import signals
from harness.broker.secret import Secret
from harness.broker.settings import NodeConfig
from harness.errors import EnvironmentFault
from harness.model import NodeId, node_name
from harness.target import Ending
from harness.targets.endings import judged
from harness.targets.forked import fork_server, is_readable
from harness.targets.last_words import last_words
from harness.targets.node_evidence import NODE_DATA, NODE_TIMELINE, NODE_WIRE
from harness.targets.node_logs import NODE_LOG

_EXIT_TIMEOUT_S = 15.0
_STATE_TIMEOUT_S = 5.0
_POLL_S = 0.005

Spawned = Callable[[str, int], None]
"""Called with the node's name and process id right after each spawn."""


class Process(Protocol):
    """What :class:`subprocess.Popen` and :class:`harness.targets.forked.Forked` have in common."""

    pid: int

    def poll(self) -> int | None:
        """Its exit status, negative for the signal that ended it; None while it exists."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises :class:`subprocess.TimeoutExpired`."""
        ...


class ChildProcess:
    """The process of one node, or one of a node's, over all its incarnations.

    Attributes:
        name: the node's name as the end of a link, or the name of one of its processes.
        directory: its files; ``data/`` is its disk.
        incarnation: how often it had been started before the current process; -1 before the first.
    """

    _TERMINATED: ClassVar[int] = 0
    """The exit status of a program that ends in order on SIGTERM."""

    def __init__(self, name: str, directory: Path, spawned: Spawned) -> None:
        self.name = name
        self.directory = directory
        self.incarnation = -1
        self._spawned = spawned
        self._process: Process | None = None
        self._sent: set[signal.Signals] = set()
        self._may_end = False
        self._ended_ns = 0
        self._watcher: threading.Thread | None = None
        self._said_before = 0
        self.data_dir.mkdir(parents=True, exist_ok=True)

    @property
    def data_dir(self) -> Path:
        """The directory of its replicas."""
        return self.directory / NODE_DATA

    @property
    def log(self) -> Path:
        """Its output, over all incarnations."""
        return self.directory / NODE_LOG

    @property
    def pid(self) -> int | None:
        """The process id of the current incarnation, dead or alive; None before the first."""
        return self._process.pid if self._process else None

    @property
    def exit_status(self) -> int | None:
        """The exit status of a process that is gone (negative: the signal), None while it exists."""
        return self._process.poll() if self._process else None

    @property
    def fell_to(self) -> signal.Signals | None:
        """The signal that has ended the process, unless :meth:`signal` sent it."""
        status = self.exit_status
        ended_by = signal.Signals(-status) if status is not None and status < 0 else None
        return None if ended_by in self._sent else ended_by

    @property
    def exists(self) -> bool:
        """Whether the process exists, stopped by a signal or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped by a signal: state ``T`` in ``/proc/<pid>/stat``."""
        return self.exists and self.state() == "T"

    def state(self) -> str:
        """The state letter of the process as in ``proc(5)``; ``X`` when it is gone."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return "X"
        return stat.rpartition(")")[2].split()[0]

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the next incarnation: ``command``, with ``environment`` on top of this process's own.

        The command asks the kernel to die with the *thread* that started it (``PR_SET_PDEATHSIG``), so this must be
        the main thread: any other may end before the run does.
        """
        assert threading.current_thread() is threading.main_thread(), "nodes are started from the main thread"
        everything = {**os.environ, **environment}
        nothing = subprocess.DEVNULL
        self._begin(
            lambda log: subprocess.Popen(
                command, stdin=nothing, stdout=log, stderr=log, start_new_session=True, env=everything
            )
        )

    def _begin(self, start: Callable[[BinaryIO], Process]) -> None:
        """Start the next incarnation, which writes to the log that ``start`` is given."""
        assert not self.exists
        self.incarnation += 1
        self._sent.clear()
        self._may_end = False
        with self.log.open("ab") as log, signals.postponed():
            self._said_before = log.tell()
            self._process = start(log)
            watched = os.pidfd_open(self._process.pid)
        self._watcher = threading.Thread(target=self._note_the_end, args=(watched,), daemon=True)
        self._watcher.start()
        self._spawned(self.name, self._process.pid)

    def _note_the_end(self, watched: int) -> None:
        """Wait for the end without reaping the process."""
        is_readable(watched, None)
        self._ended_ns = time.monotonic_ns()
        os.close(watched)

    def let_end(self) -> None:
        """Count the end of the current process as ordered."""
        self._may_end = True

    def unordered(self) -> tuple[int, int] | None:
        """When the last process ended (``CLOCK_MONOTONIC``), and its status, unless it runs or the harness ended it.

        SIGTERM from outside the harness counts as that signal, even if the program then ends in order.
        """
        status = self.exit_status
        if status is None or self._may_end or -status in self._sent:
            return None
        if status in (0, self._TERMINATED):
            if signal.SIGTERM in self._sent:
                return None
            status = -signal.SIGTERM if status == self._TERMINATED else status
        assert self._watcher is not None
        self._watcher.join()
        return self._ended_ns, status

    def _send(self, number: signal.Signals) -> bool:
        # Another thread may just be learning that the process has ended.
        if not self.exists:
            return False
        assert self._process is not None
        self._sent.add(number)
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children.

        Raises:
            EnvironmentFault: the process is gone.
        """
        if not self._send(number):
            raise EnvironmentFault(f"node {self.name} cannot be sent {number.name}: its process is gone.")

    def pause(self) -> None:
        """SIGSTOP, and wait until the process is stopped: the kernel takes its time on a busy machine."""
        self.signal(signal.SIGSTOP)
        self._await_state(stopped=True)

    def resume(self) -> None:
        """SIGCONT, and wait until the process is no longer stopped."""
        self.signal(signal.SIGCONT)
        self._await_state(stopped=False)

    def strike(self) -> None:
        """SIGKILL; harmless when the process is gone."""
        self._send(signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone; harmless when it already is."""
        self.strike()
        self.wait(_EXIT_TIMEOUT_S)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end; returns whether it did within ``timeout_s``."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _await_state(self, *, stopped: bool) -> None:
        deadline = time.monotonic() + _STATE_TIMEOUT_S
        while self.exists and self.is_stopped != stopped and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def last_words(self) -> str:
        """How the process ended, and, unless it was killed, why."""
        status = self.exit_status
        if status is not None and status < 0:
            return f"by {signal.Signals(-status).name}"
        return f"exit status {status}: {last_words(self.printed(), 1)}"

    def log_tail(self) -> str:
        """The error in its output since its last start, else its last lines, for an error message."""
        return last_words(self.printed())

    def printed(self) -> str:
        """Its output since its last start."""
        text = self.log.read_bytes()[self._said_before :] if self.log.exists() else b""
        return text.decode(errors="replace")


class NodeProcess(ChildProcess):
    """One node of the built-in cluster; beside its data it has ``timeline.jsonl`` and a file of each configuration.

    It reads the secret of the run from its standard input, which other users cannot read.
    """

    def __init__(self, node: NodeId, directory: Path, secret: Secret, spawned: Spawned) -> None:
        super().__init__(node_name(node), directory, spawned)
        self.node = node
        self._secret = secret
        self._endings: list[Ending] = []

    @property
    def timeline(self) -> Path:
        """The node's timeline, as JSON lines."""
        return self.directory / NODE_TIMELINE

    @property
    def wire(self) -> Path:
        """What the node's wire tap has recorded, if it has one, as JSON lines."""
        return self.directory / NODE_WIRE

    def spawn(self, config: NodeConfig) -> None:
        """Start the next incarnation with ``config``, whose ``incarnation`` must be the next one."""
        assert config.incarnation == self.incarnation + 1
        self._endings = self.endings()
        path = self.directory / f"config-{config.incarnation}.json"
        config.write(path)
        with self._secret.told() as stdin:
            self._begin(lambda log: fork_server().fork(self.node, path, stdin, log))

    def endings(self) -> list[Ending]:
        """How each of its lives ended that the harness did not end."""
        last = self.unordered()
        if last is None:
            return self._endings
        ending = Ending(self.node, self.incarnation, *last, last_words(self.printed(), 1))
        return [*self._endings, judged(ending, statuses={})]
