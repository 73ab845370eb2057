"""How far the wall clocks of a cluster's nodes were moved, and which others moved with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from harness.births import boot
from harness.errors import EnvironmentFault
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.cluster.wall_clock import MOST_UNSURE_MS, ClockReading, own_at_boot_ms

_OWN_STEP_MS = 100
"""A step of this machine's clock by less is one that keeps it right."""


class NodeClocks:
    """The wall clocks of nodes, each against what it showed at first: machines differ by some milliseconds.

    Args:
        nodes: those with clocks, by name.
    """

    def __init__(self, nodes: Mapping[str, CommandedNode]) -> None:
        self._nodes = nodes
        self._first: dict[str, ClockReading] = {}

    def moved_ms(self, node: str) -> int:
        """How far the clock of a node was moved since it was first read, in milliseconds.

        Raises:
            EnvironmentFault: it cannot be read, or was wrong at first.
        """
        now = self._nodes[node].clock()
        if node not in self._first:
            require_right(now, node)
            self._first[node] = now
        return now.moved_ms(self._first[node])

    def others(self, nodes: Collection[str]) -> Mapping[str | None, int]:
        """This machine's clock, as None, and those of nodes that tell the time now, for :meth:`moved_besides`."""
        seen: dict[str | None, int] = {None: own_at_boot_ms()}
        for node in sorted(nodes):
            with suppress(EnvironmentFault):
                seen[node] = self.moved_ms(node)
        return seen

    def moved_besides(self, before: Mapping[str | None, int]) -> str | None:
        """Which of those that :meth:`others` has seen was moved since, and how far, in words; None: none."""
        own = own_at_boot_ms() - before[None]
        if abs(own) > _OWN_STEP_MS:
            return f"that of this machine, by which the run is judged, by {own:+d} ms"
        now = self.others([node for node in before if node is not None])
        for node in now.keys() & before.keys():
            if node is not None and abs(by := now[node] - before[node]) > 2 * MOST_UNSURE_MS:
                return f"that of node {node} by {by} ms"
        return None


def require_right(clock: ClockReading, node: str) -> None:
    """Refuse a clock that is off this machine's already.

    Raises:
        EnvironmentFault: it is off by more than a second.
    """
    if not clock.is_right:
        raise EnvironmentFault(
            f"node {node}: its clock is {clock.off_ms:+d} ms off this machine's, before it was moved.",
            "Let both be set by the same time servers.",
        )


def sharing(nodes: Sequence[CommandedNode]) -> str | None:
    """Which clocks a step of a machine's clock would move at once, in a clause; None: of each node its own alone.

    Raises:
        EnvironmentFault: a node cannot be asked for its machine.
    """
    own = boot()
    for node in nodes:
        if not node.steps_its_machine:
            continue
        if node.boot_id() == own:
            return f"the clock of node {node.name} is that of the machine on which seawall runs"
        if same := [other.name for other in nodes if other is not node and other.boot_id() == node.boot_id()]:
            return f"nodes {' and '.join(sorted([node.name, *same]))} are on one machine, and have one clock"
    return None
