"""Injects random faults one after the other: every kind in every round, drawn from the seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.clock import PacedClock
from harness.model import TopicPartition
from harness.runner import settle as settling
from harness.runner.nemesis import Nemesis
from harness.runner.planned_chaos import PlannedChaos
from harness.schedule import shuffled_rounds
from harness.target import Target

_REGAIN_S = 20.0


class Chaos:
    """Injects the faults of a mix until its duration is over and every one of them has come up once.

    At most one fault that takes a broker away is in force at a time, so that two of three replicas stay in the ISR and
    leaders still acknowledge records. It waits the seconds that a real broker needs to come back, and restarts one that
    does not because its clock was moved.

    Args:
        chaos: the faults.
        awaited: the partitions that a broker may be late for because its clock was moved.
        target: they are injected into it.
        nemesis: injects them.
        clock: of the run.
    """

    def __init__(
        self,
        chaos: PlannedChaos,
        awaited: Sequence[TopicPartition],
        target: Target,
        nemesis: Nemesis,
        clock: PacedClock,
    ) -> None:
        self._mix = list(chaos.faults.values())
        self._interval_s = chaos.rules.interval_s
        self._duration_s = chaos.duration_s
        self._seed = chaos.seed
        self._drawn = random.Random(f"{chaos.seed}:chaos")
        self._partitions = awaited
        self._target = target
        self._nemesis = nemesis
        self._clock = clock
        self._to_heal: list[tuple[float, str]] = []

    def unleash(self) -> None:
        """Inject, prove, wait, heal, prove, and again."""
        weights = [chosen.weight for chosen in self._mix]
        end_s = self._now_s() + self._duration_s
        for count, index in enumerate(shuffled_rounds(weights, self._seed)):
            if count >= sum(weights) and self._now_s() >= end_s:
                break
            self._clock.sleep(self._drawn.uniform(*self._interval_s))
            self._strike(f"f{count + 1:03d}", index)
            self._heal_due()

    def _strike(self, name: str, index: int) -> None:
        chosen = self._mix[index]
        for_s = self._drawn.uniform(*chosen.for_s)
        lets_others_work = chosen.fault.traits.moves_clock
        if lets_others_work:
            self._heal_due(at_once=True)  # a probe could not distinguish two of them on one node
        elif not settling.regained(self._target, self._partitions, _REGAIN_S, self._clock):
            self._heal_due(at_once=True)
            if settling.restart_the_misled(self._nemesis):
                settling.regained(self._target, self._partitions, _REGAIN_S, self._clock)
        self._nemesis.inject(name, chosen.fault)
        if lets_others_work:
            self._to_heal.append((self._now_s() + for_s, name))
        else:
            self._clock.sleep(for_s)
            self._nemesis.heal(name)

    def _heal_due(self, *, at_once: bool = False) -> None:
        due = [name for heal_s, name in self._to_heal if at_once or heal_s <= self._now_s()]
        self._to_heal = [entry for entry in self._to_heal if entry[1] not in due]
        for name in due:
            self._nemesis.heal(name)

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9
