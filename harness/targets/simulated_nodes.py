"""The base of the simulated target: access to its nodes by name."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER
from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.node import SimulatedNode
from harness.target import Ending, Receipt
from harness.targets.last_words import last_words


class SimulatedNodes:
    """The base of every part of the simulated target.

    Attributes:
        cluster: the nodes.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return [*self._brokers(), CONTROLLER]

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.target.Target`."""
        found = [
            Ending(node.node, one.incarnation, one.time_ns, one.exit_code, last_words("\n".join(one.said), 1))
            for node in self.cluster.nodes.values()
            for one in node.endings
        ]
        return sorted(found, key=lambda one: (one.time_ns, one.node))

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        ending = self._node(node).ending
        return Receipt(ending is not None and ending.exit_code is None, f"node {node} {state_of(self._node(node))}")

    def _node(self, name: str) -> SimulatedNode:
        if name not in self.cluster.nodes:
            raise EnvironmentFault(f"there is no node {name!r}; the nodes are {', '.join(self.nodes())}.")
        return self.cluster.nodes[name]

    def _living(self, name: str) -> SimulatedNode:
        node = self._node(name)
        if not node.lives:
            raise EnvironmentFault(f"node {name} cannot be signalled: it {state_of(node)}.")
        return node

    def _running(self, name: str) -> SimulatedNode:
        node = self._node(name)
        if not node.runs:
            raise EnvironmentFault(f"node {name} does not answer: it {state_of(node)}.")
        return node

    def _resting(self, name: str) -> SimulatedNode:
        node = self._node(name)
        if node.lives:
            raise EnvironmentFault(f"node {name} is not at rest: it {state_of(node)}.")
        return node

    def _brokers(self) -> list[str]:
        return [node.name for node in self.cluster.brokers()]

    def _some_broker(self) -> str:
        return next((node.name for node in self.cluster.brokers() if node.runs), self._brokers()[0])


def state_of(node: SimulatedNode) -> str:
    """The state of ``node``, as the end of a sentence."""
    if node.lives:
        return "is running and answers" if node.runs else "is stopped by SIGSTOP"
    if node.ending is None:
        return "was never started"
    if node.ending.exit_code is None:
        return "is gone, by SIGKILL"
    return f"is gone, exit status {node.ending.exit_code}: {' | '.join(node.said[-3:])}"
