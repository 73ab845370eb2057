"""Starts, signals, pauses and inspects the containers of a node."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.model import node_id
from harness.target import Ending
from harness.targets.compose.containers import asked
from harness.targets.compose.project import Project
from harness.targets.endings import JVM_STATUSES, OUT_OF_MEMORY, SHIM_FAILED, judged
from harness.targets.kafka.shim import refuse_failure
from harness.targets.last_words import last_words

_POLL_S = 0.05
_GONE_TIMEOUT_S = 30.0
_KILLED, _TERMINATED = 128 + signal.SIGKILL, 128 + signal.SIGTERM
"""Exit statuses: of SIGKILL and of SIGTERM."""

_STATUSES = {"SIGKILL": _KILLED, "SIGTERM": _TERMINATED}
"""The exit statuses of programs that handled these signals and ended."""

_CRASHES = {
    128 + number: number
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP)
}
"""The exit statuses of programs that these signals killed."""

_HOW = {_KILLED: "by SIGKILL", _TERMINATED: "having shut down as it was asked to"}

_LOG_TAIL_LINES = 2000
_SECONDS = len("2026-01-01T00:00:00")
"""The format of the engine's times, in UTC, without the fraction."""


class ComposeNode:
    """One node.

    Args:
        project: its project.
        name: of the node.
        statuses: the exit statuses of its program that are no fault of it, and their causes.

    Attributes:
        incarnation: how often it had been started before it was last.
    """

    def __init__(self, project: Project, name: str, statuses: Mapping[int, str] = JVM_STATUSES) -> None:
        self.name = name
        self.incarnation = 0
        self._project = project
        self._statuses = statuses
        self._ordered: set[int] = set()
        self._endings: list[Ending] = []

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Start its containers again."""
        self._endings = self.endings()
        self._ordered.clear()
        self.incarnation += 1
        for one in self._containers():
            asked(one.start)

    def kill(self) -> None:
        """SIGKILL, and wait until its containers have ended; harmless when they already have."""
        self._end("SIGKILL", _GONE_TIMEOUT_S)

    def shut_down(self, timeout_s: float) -> bool:
        """SIGTERM; returns whether its containers have ended within ``timeout_s``."""
        return self._end("SIGTERM", timeout_s)

    def _end(self, name: str, timeout_s: float) -> bool:
        for one in self._containers():
            if _state(one)["Running"]:
                self._ordered.add(_STATUSES[name])
                asked(partial(one.kill, name))
        deadline = time.monotonic() + timeout_s
        while self.exists:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def pause(self) -> None:
        """Pause its containers; harmless when they are paused."""
        for one in self._containers():
            if _state(one)["Running"] and not _state(one)["Paused"]:
                asked(one.pause)

    def resume(self) -> None:
        """Resume its containers; harmless when they run."""
        for one in self._containers():
            if _state(one)["Paused"]:
                asked(one.unpause)

    # ------------------------------------------------------------------------------------------------ observation

    @property
    def exists(self) -> bool:
        """Whether one of its containers runs, paused or not."""
        return any(state["Running"] for state in self._states())

    @property
    def is_whole(self) -> bool:
        """Whether all of its containers run, paused or not."""
        return all(state["Running"] for state in self._states())

    @property
    def is_stopped(self) -> bool:
        """Whether all of its containers are paused."""
        return all(state["Paused"] for state in self._states())

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended each of its containers; raises as :attr:`has_exited`."""
        states = self._states()
        self._refuse_lack_of_memory(states)
        return all(not state["Running"] and state["ExitCode"] == _KILLED for state in states)

    @property
    def was_shut_down(self) -> bool:
        """Whether each of its containers has ended because it was asked to."""
        return all(not state["Running"] and state["ExitCode"] in (0, _TERMINATED) for state in self._states())

    @property
    def has_exited(self) -> bool:
        """Whether one of its containers has ended itself without being asked to.

        Raises:
            EnvironmentFault: one was out of memory, the shim failed, or another signal than SIGKILL or SIGTERM ended
                it, none of which is taken for a fault of its program.
        """
        states = self._states()
        self._refuse_lack_of_memory(states)
        self._refuse_crash(states)
        if SHIM_FAILED in self._statuses:
            refuse_failure(self.name, map(_exit_status, states))
        return any(_exit_status(state) not in (None, 0, _KILLED, _TERMINATED) for state in states)

    def endings(self) -> list[Ending]:
        """How each of its lives ended that the harness did not end; the last one only while its containers exist."""
        return [*self._endings, *(one for container in self._containers() if (one := self._ending(container)))]

    def _ending(self, container: Container) -> Ending | None:
        """How the last life of a container ended, unless it runs or the harness ended it."""
        state = _state(container)
        status = _exit_status(state)
        if status is None or status in self._ordered or (status == 0 and _TERMINATED in self._ordered):
            return None
        signalled = {_KILLED: signal.SIGKILL, _TERMINATED: signal.SIGTERM}.get(status) or _CRASHES.get(status)
        status = status if signalled is None else -signalled
        found = Ending(node_id(self.name), self.incarnation, _ended_ns(state), status, _last_words(container))
        return (
            replace(found, blames="its container was out of memory")
            if state.get("OOMKilled")
            else judged(found, self._statuses)
        )

    def _refuse_lack_of_memory(self, states: Sequence[Mapping[str, Any]]) -> None:
        full = {OUT_OF_MEMORY}.intersection(self._statuses)
        if any(state.get("OOMKilled") or _exit_status(state) in full for state in states):
            raise EnvironmentFault(f"node {self.name} has run out of memory, which its program is not to blame for.")

    def _refuse_crash(self, states: Sequence[Mapping[str, Any]]) -> None:
        for crash in (_CRASHES.get(_exit_status(state) or 0) for state in states):
            if crash is not None:
                raise EnvironmentFault(
                    f"node {self.name} was ended by {crash.name}, which seawall has not sent: its program has crashed.",
                    "Its output has the place.",
                )

    def in_words(self) -> str:
        """Its containers and their states."""
        return ", ".join(map(_in_words, self._containers()))

    def printed(self) -> Mapping[str, bytes]:
        """The output of each of its services, over all lives."""
        return {
            service: bytes(asked(self._project.container(service).logs)) for service in self._project.nodes[self.name]
        }

    def log_tail(self) -> str:
        """Why its containers have ended, by their output since the last start, in one line."""
        return " | ".join(map(_last_words, self._containers()))

    def _containers(self) -> Sequence[Container]:
        return self._project.containers(self.name)

    def _states(self) -> list[Mapping[str, Any]]:
        return [_state(one) for one in self._containers()]


def _state(container: Container) -> Mapping[str, Any]:
    """The current state: a container object caches its last one."""
    asked(container.reload)
    state: Mapping[str, Any] = container.attrs["State"]
    return state


def _ended_ns(state: Mapping[str, Any]) -> int:
    """When a container ended (``CLOCK_MONOTONIC``), by the engine's wall clock, which is this machine's."""
    wall_s = datetime.fromisoformat(state["FinishedAt"]).timestamp()
    return time.monotonic_ns() - time.time_ns() + int(wall_s * 1e9)


def _last_words(container: Container) -> str:
    begun = datetime.fromisoformat(_state(container)["StartedAt"][:_SECONDS])
    output = asked(partial(container.logs, tail=_LOG_TAIL_LINES, since=begun))
    return last_words(output.decode(errors="replace"))


def _exit_status(state: Mapping[str, Any]) -> int | None:
    return None if state["Running"] else int(state["ExitCode"])


def _in_words(container: Container) -> str:
    state = _state(container)
    if state["Paused"]:
        return f"container {container.name} is frozen"
    if state["Running"]:
        return f"container {container.name} is running, as process {state['Pid']}"
    status = int(state["ExitCode"])
    return f"container {container.name} is gone, {_HOW.get(status, f'having ended with status {status}')}"
