"""The faults and disturbances of one run that have happened, and how to undo those not over, at either depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harness.simulation.core.planned import Planned
from harness.simulation.run_observers import PlannedObservers

Undo: TypeAlias = Callable[[], None]


class FaultsInForce:
    """See the module.

    Args:
        now_ns: since load and faults began.
        after: calls a function so many nanoseconds later.
        observers: called with each.

    Attributes:
        happened: those that had an effect, each with the node hit.
    """

    def __init__(
        self, now_ns: Callable[[], int], after: Callable[[int, Callable[[], None]], None], observers: PlannedObservers
    ) -> None:
        self.happened: list[Planned] = []
        self._now_ns = now_ns
        self._after = after
        self._observers = observers
        self._undone: dict[int, Undo] = {}

    def struck(self, planned: Planned, aim: int) -> None:
        """``planned`` hits the node ``aim`` now."""
        exact = planned._replace(aim=aim, at_ns=self._now_ns())
        self.happened.append(exact)
        self._observers.struck(exact)

    def heal_later(self, planned: Planned, undo: Undo) -> None:
        """Undo what has just happened after its time."""
        key = len(self.happened)
        self._undone[key] = undo
        self._after(planned.for_ns, lambda: self._heal(key))

    def heal_all(self) -> None:
        """End everything now, in the order in which they came."""
        for key in list(self._undone):
            self._heal(key)

    def _heal(self, key: int) -> None:
        undo = self._undone.pop(key, None)
        if undo is not None:
            self._observers.healed(self.happened[key - 1])
            undo()
