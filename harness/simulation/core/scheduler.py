"""Virtual time on the bare core: a heap of planned events, performed one after the other.

One event is one thing taken off the heap: a message that arrives, a timer, a fault. Between two events nothing
happens, and what is planned for one time happens in the order in which it was planned.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

from harness.simulation.core.process import Receiver

Delivery: TypeAlias = tuple[Receiver | None, int, Callable[[Any], object], Any]
"""For which process (None: for none in particular), in which of its lives, what is to be done, and with what."""


class Scheduler:
    """See the module.

    Attributes:
        now_ns: since the run began.
        events: how many things have happened.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.events = 0
        self._times: list[int] = []
        self._planned: dict[int, list[Delivery]] = {}

    def at(self, time_ns: int, act: Callable[[Any], object], argument: Any) -> None:
        """Do something at a time; no crash prevents it."""
        self.plan(time_ns, (None, 0, act, argument))

    def after(self, process: Receiver, delay_ns: int, act: Callable[[Any], object], argument: Any) -> None:
        """A timer of ``process``: it dies with it, and waits while it is paused."""
        self.plan(self.now_ns + delay_ns, (process, process.life, act, argument))

    def plan(self, time_ns: int, what: Delivery) -> None:
        """Do something at a time, unless the life that it is for has ended by then."""
        if time_ns in self._planned:
            self._planned[time_ns].append(what)
        else:
            self._planned[time_ns] = [what]
            heappush(self._times, time_ns)

    def resume(self, process: Receiver) -> None:
        """A paused process goes on with what has come together."""
        process.paused = False
        waiting, process.waiting = process.waiting, []
        for act, argument in waiting:
            self.plan(self.now_ns, (process, process.life, act, argument))

    def run_until(self, end_ns: int) -> None:
        """Let happen what happens before ``end_ns``."""
        times, planned = self._times, self._planned
        while times and times[0] < end_ns:
            now_ns = heappop(times)
            for process, life, act, argument in planned.pop(now_ns):
                if process is not None:
                    if process.life != life:
                        continue
                    if process.paused:
                        process.waiting.append((act, argument))
                        continue
                self.now_ns = now_ns
                self.events += 1
                act(argument)
        self.now_ns = end_ns
