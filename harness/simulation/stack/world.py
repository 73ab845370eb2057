"""Virtual time: a heap of what is due, and the one source of everything that is drawn.

Two things that are due at the same time happen in the order in which they were made due, so one seed tells one story:
no wall clock, no hash and no order of a set has a say in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Protocol

from harness.broker.ports import Connection, FrameHandler
from harness.model import Link

if TYPE_CHECKING:
    from harness.simulation.stack.network import SimulatedNetwork

Act = Callable[[], None]
Address = tuple[str, int]

START_NS = 1_000_000_000
"""When a world begins, on its monotonic clock."""

START_WALL_MS = 1_767_225_600_000
"""True wall time when a world begins: 2026-01-01T00:00:00Z."""

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_COMPACT_ABOVE = 256


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """How a link carries frames.

    Attributes:
        delay_ns: the shortest and the longest time that a frame travels; frames of one connection keep their order.
        loss: the probability that a frame takes its connection down instead of arriving.
        late: the probability that a frame travels ``late_factor`` times as long.
    """

    delay_ns: tuple[int, int] = (50_000, 500_000)
    loss: float = 0.0
    late: float = 0.0
    late_factor: int = 1


CALM = LinkConditions(delay_ns=(0, 0))
"""Everything arrives at once."""


class Life(Protocol):
    """Whoever acts: dead, it does nothing more; frozen, it does everything later."""

    runs: bool

    def postpone(self, act: Act) -> None:
        """Take an act that is due while this life does not run."""
        ...


class Alarm:
    """A pending :meth:`World.at`; implements :class:`harness.broker.ports.Timer`."""

    __slots__ = ("_act", "_world")

    def __init__(self, world: World, act: Act) -> None:
        self._world = world
        self._act: Act | None = act

    def cancel(self) -> None:
        """See :class:`harness.broker.ports.Timer`."""
        if self._act is not None:
            self._act = None
            self._world.alarm_cancelled()

    def fire(self) -> None:
        """Act, once, unless cancelled."""
        act, self._act = self._act, None
        if act is not None:
            act()

    @property
    def is_over(self) -> bool:
        """Whether nothing will come of it any more."""
        return self._act is None


class World:
    """Time, chance and links.

    Attributes:
        now_ns: virtual monotonic time.
        random: where everything is drawn from.
        weather: of every link that has none of its own.
        local_weather: of single links.
        listeners: who listens where.
        events: how many acts have been done.
        watch: is shown every frame as it is handed over: the link, and the bytes.
    """

    def __init__(self, seed: int = 0, weather: LinkConditions = CALM) -> None:
        self.now_ns = START_NS
        self.random = random.Random(seed)
        self.weather = weather
        self.local_weather: dict[Link, LinkConditions] = {}
        self.listeners: dict[Address, tuple[SimulatedNetwork, Callable[[Connection], FrameHandler]]] = {}
        self.events = 0
        self.watch: Callable[[Link, memoryview], None] | None = None
        self._heap: list[tuple[int, int, Act, Life | None]] = []
        self._order = 0
        self._cancelled = 0

    def monotonic_ns(self) -> int:
        """See :class:`harness.clock.Clock`."""
        return self.now_ns

    def wall_ms(self) -> int:
        """True wall time; see :class:`harness.clock.Clock`."""
        return START_WALL_MS + (self.now_ns - START_NS) // _NS_PER_MS

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass, act by act; see :class:`harness.clock.PacedClock`.

        Whatever becomes due at the very end still happens; 0 does what is due now, and what follows from it at once.
        """
        until_ns = self.now_ns + round(seconds * _NS_PER_S)
        heap = self._heap
        while heap and heap[0][0] <= until_ns:
            self.now_ns, _, act, life = heappop(heap)
            self.events += 1
            if life is None or life.runs:
                act()
            else:
                life.postpone(act)
        self.now_ns = until_ns

    def sleep_until(self, holds: Callable[[], bool], timeout_s: float, step_s: float = 0.005) -> bool:
        """Let time pass until ``holds``, looking every ``step_s``; returns whether it came to that in time."""
        until_ns = self.now_ns + round(timeout_s * _NS_PER_S)
        while not holds():
            if self.now_ns >= until_ns:
                return False
            self.sleep(step_s)
        return True

    def at(self, time_ns: int, act: Act, life: Life | None = None) -> None:
        """Let ``life`` do ``act`` at ``time_ns``, which has not passed; None: the world itself does it."""
        heappush(self._heap, (time_ns, self._order, act, life))
        self._order += 1

    def alarm(self, delay_s: float, act: Act, life: Life) -> Alarm:
        """Let ``life`` do ``act`` in ``delay_s``, unless it is cancelled until then."""
        alarm = Alarm(self, act)
        self.at(self.now_ns + max(0, round(delay_s * _NS_PER_S)), alarm.fire, life)
        return alarm

    def alarm_cancelled(self) -> None:
        """Clear the heap of cancelled alarms when they are the most of it: an answered request leaves one each."""
        self._cancelled += 1
        if self._cancelled > _COMPACT_ABOVE and 2 * self._cancelled > len(self._heap):
            # In place: sleep() is holding on to the list.
            self._heap[:] = [entry for entry in self._heap if not _is_over(entry[2])]
            heapify(self._heap)
            self._cancelled = 0

    def weather_on(self, link: Link) -> LinkConditions:
        """How ``link`` carries frames."""
        return self.local_weather.get(link, self.weather) if self.local_weather else self.weather

    def travel_ns(self, weather: LinkConditions) -> int:
        """Draw how long a frame travels."""
        shortest, longest = weather.delay_ns
        took_ns = shortest if shortest == longest else shortest + int(self.random.random() * (longest - shortest))
        return took_ns * weather.late_factor if weather.late and self.random.random() < weather.late else took_ns

    def is_lost(self, weather: LinkConditions) -> bool:
        """Draw whether a frame takes its connection down."""
        return weather.loss > 0 and self.random.random() < weather.loss


def _is_over(act: Act) -> bool:
    alarm = getattr(act, "__self__", None)
    return isinstance(alarm, Alarm) and alarm.is_over
