"""Random worlds: at each step one of the things that can happen happens."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from harness.model import NodeId
from harness.replication.knobs import Knobs
from tests.harness.replication.world import World

Choose = Callable[[int], int]
"""Picks a number from 0 up to (exclusive) its argument."""

Action = Callable[[], object]

Option = TypeVar("Option")


class Chaos:
    """A world of three replicas, and what may happen to it next."""

    def __init__(self, knobs: Knobs, choose: Choose, *, min_isr: int = 2) -> None:
        self.world = World(knobs, 3, min_isr)
        self.world.settle()
        self.world.fetch_batches = 2
        self._choose = choose
        self._values = 0

    def step(self) -> None:
        """Let something happen; likely things are in the list more than once."""
        actions = self._trouble() if self._choose(7) == 0 else self._work()
        if actions:
            self._pick(actions)()

    def _pick(self, options: Sequence[Option]) -> Option:
        return options[self._choose(len(options))]

    def _work(self) -> list[Action]:
        world = self.world
        actions: list[Action] = [partial(world.deliver, message) for message in world.in_flight * 2]
        for node in world.alive:
            actions.append(partial(world.fetch, node))
            if world.replica(node).role == "leader":
                actions.append(partial(self._produce, node))
        return actions

    def _produce(self, node: NodeId) -> None:
        values = [f"m{self._values + position}" for position in range(1 + self._choose(2))]
        self._values += len(values)
        self.world.produce(node, *values)

    def _trouble(self) -> list[Action]:
        world = self.world
        actions: list[Action] = [partial(world.drop, message) for message in world.in_flight]
        actions += [partial(world.tick, 500), partial(world.tick, 2_500)]
        for node in world.brokers:
            actions.append(partial(world.expire, node))
            if node not in world.alive:
                actions += [partial(world.start, node)] * 3
                continue
            actions += [partial(world.kill, node), partial(world.stop, node), partial(world.checkpoint, node)]
            actions += [partial(world.elect, node), partial(world.delete_records, node, -1)]
            actions += [partial(world.retain, node, span.base_offset) for span in world.brokers[node].spans[-1:]]
            actions += [partial(world.step_clock, node, ms) for ms in (-3_600_000, 0, 3_600_000)]
            if node not in world.controller.live_brokers:
                actions += [partial(world.heartbeat, node)] * 3
        return actions


def run(seed: int, knobs: Knobs, steps: int) -> World:
    """The world of ``seed`` after so many steps, not healed."""
    chaos = Chaos(knobs, random.Random(seed).randrange)
    for _ in range(steps):
        chaos.step()
    return chaos.world
