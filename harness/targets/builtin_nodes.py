"""The node processes of the built-in cluster, and requests to their control channels."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.broker.secret import Secret
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import CONTROLLER_ID, node_name
from harness.target import Ending, Receipt
from harness.targets.addresses import Addresses
from harness.targets.control_client import ask
from harness.targets.node_process import NodeProcess

_LOOK_TIMEOUT_S = 1.0


class BuiltinNodes:
    """The base of every part of the built-in target.

    Args:
        nodes: the controller first.
        secret: of the run.
    """

    def __init__(self, nodes: Iterable[NodeProcess], secret: Secret) -> None:
        self._secret = secret
        self._nodes = {node.name: node for node in nodes}
        self._addresses: Addresses | None = None

    @property
    def addresses(self) -> Addresses:
        """The addresses of the running cluster."""
        assert self._addresses is not None, "the target has not been started"
        return self._addresses

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return [*self.brokers(), node_name(CONTROLLER_ID)]

    def brokers(self) -> list[str]:
        """The names of the brokers, in order."""
        return [name for name in self._nodes if name != node_name(CONTROLLER_ID)]

    def pids(self) -> Mapping[str, int]:
        """The process id of each node that is running."""
        return {node.name: node.pid for node in self._nodes.values() if node.exists and node.pid is not None}

    def ended(self) -> Mapping[str, str]:
        """How each node has ended that was started and is not running."""
        ended = [node for node in self._nodes.values() if node.pid is not None and not node.exists]
        return {node.name: f"process {node.pid} is gone, {node.last_words()}" for node in ended}

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.target.Target`."""
        found = [one for node in self._nodes.values() for one in node.endings()]
        return sorted(found, key=lambda one: (one.time_ns, one.node))

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        process = self._node(node)
        if process.exists:
            return Receipt(False, f"node {node}: process {process.pid} exists, in state {process.state()}")
        killed = process.exit_status == -signal.SIGKILL
        return Receipt(killed, f"node {node}: process {process.pid} is gone, {process.last_words()}")

    def _node(self, name: str) -> NodeProcess:
        if name not in self._nodes:
            raise EnvironmentFault(f"there is no node {name!r}; the nodes are {', '.join(self.nodes())}.")
        return self._nodes[name]

    def _resting(self, node: str) -> NodeProcess:
        process = self._node(node)
        if process.exists:
            raise EnvironmentFault(f"node {node} is not at rest: process {process.pid} is running.")
        return process

    def _ask(self, asked: str, /, **request: Any) -> dict[str, Any]:
        return ask(asked, self.addresses.control(self._node(asked).node), self._secret, **request)

    def _look(self, node: str) -> dict[str, Any]:
        """The node's status; raises :class:`NoAnswer` at once when its process is dead or stopped."""
        if not self._can_obey(node):
            raise NoAnswer(f"node {node} does not answer: its process is {self._node(node).state()}.")
        address = self.addresses.control(self._node(node).node)
        return ask(node, address, self._secret, _LOOK_TIMEOUT_S, op="status")

    def _can_obey(self, node: str) -> bool:
        process = self._node(node)
        return process.exists and not process.is_stopped
