"""The event loop of virtual time: a heap of callbacks, by the time at which each is due.

Two things that are due at the same time happen in the order in which they were made due, so one seed is one run:
it depends on no wall clock, no hash and no order of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

from harness import signals
from harness.simulation.stack.links import CALM, LinkConditions, Links

Act = Callable[[], None]

START_NS = 1_000_000_000
"""When virtual time begins, on its monotonic clock."""

START_WALL_MS = 1_767_225_600_000
"""True wall time when virtual time begins: 2026-01-01T00:00:00Z."""

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_COMPACT_ABOVE = 256


class Life(Protocol):
    """An actor: dead, it does nothing more; frozen, it does everything later."""

    runs: bool

    def postpone(self, act: Act) -> None:
        """Take an act that is due while this life does not run."""
        ...


class Alarm:
    """A pending :meth:`VirtualScheduler.at`; implements :class:`harness.broker.ports.Timer`."""

    __slots__ = ("_act", "_scheduler")

    def __init__(self, scheduler: VirtualScheduler, act: Act) -> None:
        self._scheduler = scheduler
        self._act: Act | None = act

    def cancel(self) -> None:
        """See :class:`harness.broker.ports.Timer`."""
        if self._act is not None:
            self._act = None
            self._scheduler.alarm_cancelled()

    def fire(self) -> None:
        """Act, once, unless cancelled."""
        act, self._act = self._act, None
        if act is not None:
            act()

    @property
    def is_over(self) -> bool:
        """Whether nothing will come of it any more."""
        return self._act is None


class VirtualScheduler:
    """Virtual time; see the module.

    Args:
        seed: what the links draw is drawn from it.
        conditions: how the links carry frames.

    Attributes:
        now_ns: virtual monotonic time.
        events: how many acts have been done.
        links: what carries frames from node to node in this time.
    """

    def __init__(self, seed: int = 0, conditions: LinkConditions = CALM) -> None:
        self.now_ns = START_NS
        self.events = 0
        self.links = Links(seed, conditions)
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

        Raises:
            KeyboardInterrupt: a signal has come; the act of that moment has come to its end.
        """
        until_ns = self.now_ns + round(seconds * _NS_PER_S)
        heap = self._heap
        signals.step_begins()
        try:
            while heap and heap[0][0] <= until_ns and not signals.is_due():
                self.now_ns, _, act, life = heappop(heap)
                self.events += 1
                if life is None or life.runs:
                    act()
                else:
                    life.postpone(act)
        finally:
            signals.step_ends()
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
        """Let ``life`` do ``act`` at ``time_ns``, which has not passed; None: no crash prevents it."""
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


def _is_over(act: Act) -> bool:
    alarm = getattr(act, "__self__", None)
    return isinstance(alarm, Alarm) and alarm.is_over
