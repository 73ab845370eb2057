"""The part of a target that is the same for every cluster whose nodes seawall starts: signals to them, and probes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from harness.errors import EnvironmentFault
from harness.target import Ending, Receipt
from harness.targets.awaiting import Talkative, await_that


class Node(Talkative, Protocol):
    """A node: the processes, or the containers, that it is made of."""

    @property
    def exists(self) -> bool:
        """Whether one of them exists, stopped or not."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all of them exist."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether all of them are paused."""
        ...

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended each of them."""
        ...

    @property
    def was_shut_down(self) -> bool:
        """Whether each of them has ended because it was asked to."""
        ...

    @property
    def has_exited(self) -> bool:
        """Whether one of them has ended itself without being asked to.

        Raises:
            EnvironmentFault: it was out of memory, its shim failed, or a signal from outside the harness ended it, none
                of which is its program's fault.
        """
        ...

    def endings(self) -> Sequence[Ending]:
        """How each of its lives ended that the harness did not end."""
        ...

    def in_words(self) -> str:
        """Their names and states."""
        ...

    def kill(self) -> None:
        """SIGKILL, and wait until they are gone; harmless when they already are."""
        ...

    def pause(self) -> None:
        """Stop them; harmless when they are stopped."""
        ...

    def resume(self) -> None:
        """Resume them; harmless when they run."""
        ...

    def shut_down(self, timeout_s: float) -> bool:
        """SIGTERM; returns whether they have ended within ``timeout_s``."""
        ...


SomeNode = TypeVar("SomeNode", bound=Node)


class OwnedNodes(ABC, Generic[SomeNode]):
    """The methods of :mod:`harness.controls` and :mod:`harness.observations` about processes; ``_nodes`` by name."""

    _READY_TIMEOUT_S: ClassVar[float]
    """How long all nodes together may take from their start to an answer on a busy machine."""

    _SHUT_DOWN_TIMEOUT_S: ClassVar[float]
    _PATIENCE_S: ClassVar[float] = 10.0
    """For how long a probe waits for an answer of a running node."""

    _POLL_S: ClassVar[float]

    _nodes: dict[str, SomeNode]

    @abstractmethod
    def _answers(self, node: str) -> bool:
        """Whether the node answers the harness now; one that is stopped does not."""

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).kill()

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        one = self._node(node)
        if not one.is_whole:
            return Receipt(False, f"node {node}: {one.in_words()}")
        if not self._answers_soon(node):
            return Receipt(False, f"node {node}: {one.in_words()}, but does not answer")
        return Receipt(True, f"node {node}: {one.in_words()}, and answers")

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.was_killed)

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        one = self._node(node)
        if not one.exists:
            raise EnvironmentFault(f"node {node} cannot be paused: {one.in_words()}.")
        one.pause()

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).resume()

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.is_stopped)

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        one, timeout_s = self._node(node), self._SHUT_DOWN_TIMEOUT_S
        if not one.exists:
            raise EnvironmentFault(f"node {node} cannot be asked to shut down: {one.in_words()}.")
        if not one.shut_down(timeout_s):
            raise EnvironmentFault(f"node {node} has not shut down in {timeout_s:g} s: {one.log_tail().rstrip('.')}.")

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.was_shut_down)

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        return self._seen(node, lambda one: one.has_exited)

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.target.Target`."""
        found = [one for node in self._nodes.values() for one in node.endings()]
        return sorted(found, key=lambda one: (one.time_ns, one.node))

    def _seen(self, node: str, look: Callable[[SomeNode], bool]) -> Receipt:
        """The result of ``look`` at a node, as a receipt."""
        one = self._node(node)
        return Receipt(look(one), f"node {node}: {one.in_words()}")

    def _node(self, name: str) -> SomeNode:
        if name not in self._nodes:
            raise EnvironmentFault(f"there is no node {name!r}; the nodes are {', '.join(self._nodes)}.")
        return self._nodes[name]

    def _resting(self, node: str) -> SomeNode:
        one = self._node(node)
        if one.exists:
            raise EnvironmentFault(f"node {node} is not at rest: {one.in_words()}.")
        return one

    def _answers_soon(self, node: str) -> bool:
        """Whether a running node answers in time: on a busy machine one answer may take a while."""
        deadline_s = time.monotonic() + self._PATIENCE_S
        while not self._answers(node):
            if not self._goes_on(node) or time.monotonic() > deadline_s:
                return False
            time.sleep(self._POLL_S)
        return True

    def _goes_on(self, node: str) -> bool:
        """Whether a node exists and is not stopped."""
        one = self._node(node)
        return one.exists and not one.is_stopped

    def _came_up(self, node: str) -> bool:
        """Whether the node answers, or has already exited by itself."""
        return self._answers(node) or self.has_exited(node).holds

    def _all_answer(self) -> bool:
        for name, one in self._nodes.items():
            if not one.is_whole:
                said, tail = one.in_words(), one.log_tail()
                state = said if tail in said else f"{said}: {tail}"
                raise EnvironmentFault(f"node {name} ended at once: {state.rstrip('.')}.")
        return all(map(self._answers, self._nodes))

    def _await(self, complaint: str, holds: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait for ``timeout_s``, by default as long as nodes may take to start."""
        limit_s = self._READY_TIMEOUT_S if timeout_s is None else timeout_s
        await_that(holds, complaint, self._nodes.values(), limit_s, self._POLL_S)
