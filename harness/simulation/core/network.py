"""The network of the bare core: every directed pair of processes has a link of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.simulation.core.configuration import Configuration
from harness.simulation.core.process import Receiver
from harness.simulation.core.scheduler import Delivery, Scheduler


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
        self.held: list[Delivery] = []
        self.slow = 1
        self.delay_ns = configuration.delay_us * 1_000
        self.spread_ns = configuration.spread_us * 1_000
        self.lost = configuration.loss
        self.doubled = self.lost + configuration.duplicate
        self.late = self.doubled + configuration.late
        self.late_factor = configuration.late_factor


class Network:
    """All links, by the indices of their ends: first the ``inner`` ones, brokers and controller, then the clients.

    No message of or to a client arrives twice: clients keep a connection, and do not retry.

    Args:
        ends: how many processes there are.
        inner: how many of them are brokers or the controller.
        configuration: how the links are.
        scheduler: when messages arrive.
        random: what delays and losses are drawn from.
    """

    __slots__ = ("_links", "_random", "_scheduler")

    def __init__(
        self, ends: int, inner: int, configuration: Configuration, scheduler: Scheduler, random: Callable[[], float]
    ) -> None:
        self._scheduler = scheduler
        self._random = random
        self._links = [[Link(configuration) for _ in range(ends)] for _ in range(ends)]
        outer = range(inner, ends)
        pairs = [(end, other) for end in range(ends) for other in outer]
        for link in self.some([*pairs, *((other, end) for end, other in pairs)]):
            link.late = link.lost + configuration.late
            link.doubled = link.lost

    def some(self, pairs: Iterable[tuple[int, int]]) -> list[Link]:
        """The links of these directed pairs."""
        return [self._links[source][destination] for source, destination in pairs]

    def calm(self) -> None:
        """Lose, double and delay nothing any more."""
        for row in self._links:
            for link in row:
                link.lost = link.doubled = link.late = 0.0

    def send(
        self,
        source: int,
        destination: Receiver,
        life: int,
        arrive: Callable[[Any], object],
        argument: Any,
        *,
        apart: Callable[[], float] | None = None,
    ) -> None:
        """Send a message; it arrives, if at all, in the given life of ``destination``.

        ``apart``: what its delay is drawn from, if not from what all others' are. A cut link does not keep such a one.
        """
        link = self._links[source][destination.index]
        if link.cuts:
            if link.holds and apart is None:
                link.held.append((destination, life, arrive, argument))
            return
        luck = apart or self._random
        delay_ns = link.delay_ns + int(link.spread_ns * luck())
        scheduler = self._scheduler
        if link.late:
            chance = luck()
            if chance < link.lost:
                return
            if chance < link.doubled:
                scheduler.plan(scheduler.now_ns + delay_ns * 3, (destination, life, arrive, argument))
            elif chance < link.late:
                delay_ns *= link.late_factor
        if link.slow > 1:
            delay_ns *= link.slow
        scheduler.plan(scheduler.now_ns + delay_ns, (destination, life, arrive, argument))

    def mend(self, links: Iterable[Link]) -> None:
        """Undo one cut of each; a link that no other cuts lets go of what it had kept."""
        for link in links:
            link.cuts -= 1
            if not link.cuts:
                held, link.held = link.held, []
                for message in held:
                    self._release(link, message)

    def _release(self, link: Link, held: Delivery) -> None:
        self._scheduler.plan(self._scheduler.now_ns + link.delay_ns + int(link.spread_ns * self._random()), held)
