"""Injects random faults of every kind that overlap as far as a fault budget allows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from harness.clock import PacedClock
from harness.fault import Fault
from harness.model import TopicPartition
from harness.runner import settle as settling
from harness.runner.conditions import out_of_sync
from harness.runner.fault_budget import FaultBudget
from harness.runner.nemesis import Nemesis
from harness.runner.planned_chaos import ChaosFault, PlannedChaos
from harness.schedule import shuffled_rounds
from harness.selection import NothingToAimAt
from harness.target import ClusterView, Target

_LOOK_S = 0.05
_PATIENCE_S = 20.0
"""How long the last faults of a round wait for the budget at most, and how long a cluster without any fault in force
may stay broken before the brokers that moved clocks keep away are started again; see also ``_patience_to_end_s``."""


class _Lasting(NamedTuple):
    """A fault in force: its name, and when it is due to end."""

    name: str
    fault: Fault
    until_s: float


class OverlappingChaos:
    """Injects the faults of a mix until its duration is over and every one of them has come up once.

    A round is a shuffled bag of the mix. When another fault is due, the first one in the bag that can be aimed and that
    the budget allows begins; the others wait. So a fault that needs a calm cluster gets one: in the end only such
    faults are left in the bag.
    """

    def __init__(
        self,
        chaos: PlannedChaos,
        partitions: Sequence[TopicPartition],
        target: Target,
        nemesis: Nemesis,
        clock: PacedClock,
        *,
        by_wall_clock: bool,
    ) -> None:
        self._mix = list(chaos.faults.values())
        self._interval_s = chaos.rules.interval_s
        self._at_once = chaos.rules.at_once
        self._duration_s = chaos.duration_s
        self._seed = chaos.seed
        self._partitions = partitions
        self._drawn = random.Random(f"{chaos.seed}:overlapping chaos")
        self._target = target
        self._nemesis = nemesis
        self._clock = clock
        # The budget may wait until every ISR has dropped a broker, so the controller gets that time on top.
        self._patience_to_end_s = _PATIENCE_S + chaos.promise.noticed_s
        self._budget = FaultBudget(chaos.rules.budget, chaos.promise, target, self._now_s)
        self._rounds = shuffled_rounds([chosen.weight for chosen in self._mix], self._seed)
        self._size = sum(chosen.weight for chosen in self._mix)
        self._bag: list[int] = []
        self._lasting: list[_Lasting] = []
        self._seen = ClusterView(0, (), {})
        self._began = 0
        self._by_wall_clock = by_wall_clock
        self._calm_since_s = self._now_s()

    def unleash(self) -> None:
        """Inject, prove, wait, heal, prove, and again, several at a time."""
        end_s = self._now_s() + self._duration_s
        self._refill()
        while self._now_s() < end_s or (self._is_first_round() and self._now_s() < end_s + _PATIENCE_S):
            self._pass_time(self._drawn.uniform(*self._interval_s))
            if sum(not one.fault.traits.moves_clock for one in self._lasting) < self._at_once:
                self._strike()
            self._end_standstill()
        self._end_all()
        if self._is_first_round():
            self._catch_up_on_the_first_round()

    # ------------------------------------------------------------------------------------------------ beginning

    def _strike(self) -> None:
        view = self._look()
        for place, index in enumerate(self._bag):
            aimed = self._aimed(self._mix[index])
            if aimed is not None and not self._budget.refusal(aimed, view, self._overdue()):
                del self._bag[place]
                self._begin(self._mix[index], aimed, view)
                if not self._bag:
                    self._refill()
                return

    def _begin(self, chosen: ChaosFault, aimed: Fault, view: ClusterView) -> None:
        self._began += 1
        name = self._next_name(0)
        self._nemesis.inject(name, aimed)
        self._budget.began(name, aimed, view)
        self._lasting.append(_Lasting(name, aimed, self._now_s() + self._drawn.uniform(*chosen.for_s)))

    def _end_standstill(self) -> None:
        """Start again the brokers whose clocks were moved, where no fault is in force and the cluster stays broken."""
        if self._lasting or not self._by_wall_clock:
            self._calm_since_s = self._now_s()
        elif self._now_s() >= self._calm_since_s + _PATIENCE_S:
            if out_of_sync(self._target, self._partitions):
                settling.restart_the_misled(self._nemesis)
            self._calm_since_s = self._now_s()

    def _aimed(self, chosen: ChaosFault) -> Fault | None:
        """Aimed by the last view, as a controller that is away has none. None: there is nothing to aim at."""
        seed = random.Random(f"{self._seed}:aim:{self._next_name(1)}").getrandbits(63)
        with suppress(NothingToAimAt):
            return chosen.fault.aimed(self._seen, seed)
        return None

    def _next_name(self, ahead: int) -> str:
        return f"f{self._began + ahead:03d}"

    def _refill(self) -> None:
        self._bag = [next(self._rounds) for _ in range(self._size)]

    def _is_first_round(self) -> bool:
        """Whether some fault of the mix has not come up yet."""
        return self._began < self._size

    # ------------------------------------------------------------------------------------------------ ending

    def _pass_time(self, seconds: float) -> None:
        """Wait, and heal the faults that become due meanwhile."""
        until_ns = self._clock.monotonic_ns() + round(seconds * 1e9)
        while True:
            self._heal_due()
            left_ns = until_ns - self._clock.monotonic_ns()
            if left_ns <= 0:
                return
            self._clock.sleep(min(_LOOK_S, left_ns / 1e9))

    def _heal_due(self) -> None:
        if self._budget.has_lossy:
            self._budget.review(self._look())
        now_s = self._now_s()
        for one in [one for one in self._lasting if one.until_s <= now_s]:
            if self._budget.may_end(one.fault) or one.until_s + self._patience_to_end_s <= now_s:
                self._heal(one)

    def _heal(self, one: _Lasting) -> None:
        self._lasting.remove(one)
        self._nemesis.heal(one.name)
        self._budget.ended(one.name)

    def _overdue(self) -> Sequence[Fault]:
        return [one.fault for one in self._lasting if one.until_s <= self._now_s()]

    def _end_all(self) -> None:
        """Heal the faults in force when each is due and the budget allows it."""
        while self._lasting:
            self._pass_time(_LOOK_S)

    def _catch_up_on_the_first_round(self) -> None:
        """Inject the faults that have not come up yet one after the other, each into a whole cluster."""
        left, self._bag = self._bag, []
        for index in left:
            settling.regained(self._target, self._partitions, _PATIENCE_S, self._clock)
            if why := self._begun_in_time(self._mix[index]):
                self._began += 1
                self._nemesis.forgo(self._next_name(0), self._mix[index].fault, why)
            self._end_all()

    def _begun_in_time(self, chosen: ChaosFault) -> str:
        """Begin a fault as soon as the budget allows it; returns why it never did, or an empty text."""
        deadline_s = self._now_s() + _PATIENCE_S
        while True:
            self._pass_time(_LOOK_S)
            view, aimed = self._look(), self._aimed(chosen)
            why = "there is nothing to aim at" if aimed is None else self._budget.refusal(aimed, view)
            if aimed is not None and not why:
                self._begin(chosen, aimed, view)
                return ""
            if self._now_s() >= deadline_s:
                return why

    # ------------------------------------------------------------------------------------------------ looking

    def _look(self) -> ClusterView:
        view = self._target.view()
        if view.partitions:
            self._seen = view
        return view

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9
