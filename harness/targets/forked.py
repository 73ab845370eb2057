"""Starts the nodes of the built-in cluster as forks of one process that has imported their program."""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import harness
from harness import signals
from harness.broker.forking import role_of
from harness.errors import EnvironmentFault
from harness.model import NodeId, node_name
from harness.targets.node_evidence import folder_of

_KILLED = -9
_MOST_BYTES = 65_536
_ANSWERS_WITHIN_S = 15.0
"""Importing the nodes' program takes most of the first answer."""


class ForkServer:
    """The parent of the nodes of this process's clusters: :mod:`harness.broker.forking` in a process of its own.

    The kernel kills it with the thread that has started it, so this must be the main thread.
    """

    def __init__(self) -> None:
        assert threading.current_thread() is threading.main_thread(), "nodes are started from the main thread"
        self._turn = threading.Lock()
        self._requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-m", "harness.broker", str(os.getpid())),
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(Path(harness.__file__).parents[1])},
            )
        self._requests.settimeout(_ANSWERS_WITHIN_S)
        atexit.register(self.close)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exists(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def fork(self, node: NodeId, config: Path, stdin: BinaryIO, log: BinaryIO) -> Forked:
        """Start the process of a node.

        Raises:
            EnvironmentFault: the kernel forks no more processes, or this one is gone.
        """
        name = folder_of(node_name(node))
        request = {"fork": role_of(node), "name": name, "config": str(config), "directory": str(Path.cwd())}
        with signals.postponed():
            answer = self._ask(request, stdin.fileno(), log.fileno())
            if "error" in answer:
                raise EnvironmentFault(f"node {node_name(node)} cannot be started: {answer['error']}.")
            return Forked(self, answer["pid"])

    def reap(self, pid: int) -> int:
        """The exit status of a node that has ended, once; that of SIGKILL where this process died first."""
        try:
            return int(self._ask({"reap": pid})["status"])
        except EnvironmentFault:
            return _KILLED

    def close(self) -> None:
        """End it, and with it the nodes that are left."""
        self._requests.close()
        try:
            self._process.wait(_ANSWERS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _ask(self, request: dict[str, Any], *descriptors: int) -> dict[str, Any]:
        with self._turn:
            try:
                socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
                answer = self._requests.recv(_MOST_BYTES)
            except TimeoutError:
                self._process.kill()  # its nodes die with it
                answer = b""
            except OSError:
                answer = b""
        if not answer:
            raise EnvironmentFault(f"process {self.pid}, which starts the nodes, is gone; its nodes died with it.")
        return dict(json.loads(answer))


class Forked:
    """A process that a :class:`ForkServer` has forked, with the methods of :class:`subprocess.Popen` that we need."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._status: int | None = None
        self._turn = threading.Lock()
        self._ended = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._ended)

    def poll(self) -> int | None:
        """Its exit status, negative for the signal that ended it; None while it exists."""
        if self._status is None and is_readable(self._ended, 0):
            with signals.postponed(), self._turn:
                if self._status is None:
                    self._status = self._server.reap(self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it has not ended in ``timeout`` seconds.
        """
        is_readable(self._ended, timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status


def is_readable(descriptor: int, timeout_s: float | None) -> bool:
    """Wait so long (None: without end) until a descriptor can be read; that of a process can when it has ended."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else timeout_s * 1_000))


def fork_server() -> ForkServer:
    """The one of this process, which starts with the first node."""
    if not (server := _of(os.getpid())).exists:
        _of.cache_clear()
        server = _of(os.getpid())
    return server


@lru_cache(maxsize=1)
def _of(_: int) -> ForkServer:
    """One for each process, as a fork of this process has other children."""
    return ForkServer()
