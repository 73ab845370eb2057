"""The links of a simulated world: every directed pair of processes has one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.simulation.core.configuration import Configuration
from harness.simulation.core.process import Process

Held = tuple[Process, int, Callable[[Any], object], Any]
"""A message that waits for its link to be mended: to whom, in which of its lives, and what it does there."""


class Link:
    """One direction between two processes.

    Attributes:
        cuts: how many partitions cut it; 0: it works.
        holds: whether a cut link keeps what is sent, as a closed gate does, or loses it.
        held: what it keeps.
        delay_ns: the least delay; ``spread_ns``: how much longer it may take.
        lost: up to where a random number from 0 to 1 means that a message is lost; from there to ``doubled``: that it
            arrives twice; from there to ``late``: that it is very late.
    """

    __slots__ = ("cuts", "delay_ns", "doubled", "held", "holds", "late", "late_factor", "lost", "slow", "spread_ns")

    def __init__(self, configuration: Configuration) -> None:
        self.cuts = 0
        self.holds = False
        self.held: list[Held] = []
        self.slow = 1
        self.delay_ns = configuration.delay_us * 1_000
        self.spread_ns = configuration.spread_us * 1_000
        self.lost = configuration.loss
        self.doubled = self.lost + configuration.duplicate
        self.late = self.doubled + configuration.late
        self.late_factor = configuration.late_factor


class Network:
    """All links, by the indices of their ends: first the ``inner`` ones, brokers and controller, then the clients.

    Nothing that clients send or get arrives twice: they hold on to a connection, and do not ask again.
    """

    __slots__ = ("links",)

    def __init__(self, ends: int, inner: int, configuration: Configuration) -> None:
        self.links = [[Link(configuration) for _ in range(ends)] for _ in range(ends)]
        outer = range(inner, ends)
        pairs = [(end, other) for end in range(ends) for other in outer]
        for link in self.some([*pairs, *((other, end) for end, other in pairs)]):
            link.late = link.lost + configuration.late
            link.doubled = link.lost

    def some(self, pairs: Iterable[tuple[int, int]]) -> list[Link]:
        """The links of these directed pairs."""
        return [self.links[source][destination] for source, destination in pairs]

    def all(self) -> list[Link]:
        """Every link."""
        return [link for row in self.links for link in row]
