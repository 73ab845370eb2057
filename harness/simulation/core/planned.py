"""What one seed plans before the run begins: faults and disturbances; each picks its node when its time has come.

Because the seed draws the list first, one of them can be left out without another one being drawn instead:
that is what makes a schedule shrinkable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from faults.stop import Stop
from harness.fault import DiskEffect
from harness.model import CLIENTS, CONTROLLER, NO_LEADER, NodeId
from harness.replication.controller_messages import PartitionState
from harness.simulation.core.configuration import MS, Configuration
from harness.simulation.core.drawn_kinds import (
    BETWEEN,
    CLASSES,
    DELETIONS,
    DRAWN,
    EFFECTS,
    Disturbance,
    DrawnFault,
    Effect,
)
from harness.simulation.witnessed import Process

LEADER, FOLLOWER, OTHER_FOLLOWER, ACTIVE_CONTROLLER = -1, -2, -3, -4
"""Aims: the leader at that time, the first of the other replicas in replica order, the second, or the controller."""


class Planned(NamedTuple):
    """One fault or disturbance.

    Attributes:
        at_ns: when it happens; ``for_ns``: how long it lasts.
        kind: of a fault, as :mod:`faults` names it; of a disturbance, as ``drawn_kinds`` does.
        aim: a broker, or LEADER, FOLLOWER, OTHER_FOLLOWER, ACTIVE_CONTROLLER.
        peer: from what a partition cuts it off: a broker, or ``brokers``, ``controller``, ``clients``, ``all``.
        direction: which of its messages a partition stops: those ``in``, those ``out``, or ``both``.
        holds: whether they wait until the partition is over, and are not dropped.
        amount: by how many milliseconds a clock jumps, or how many per cent are deleted.
    """

    at_ns: int
    for_ns: int
    kind: str
    aim: int
    peer: int | str = ""
    direction: str = "both"
    holds: bool = False
    amount: int = 0

    @property
    def effect(self) -> Effect | None:
        """What the fault does; None: it is a disturbance."""
        return EFFECTS.get(self.kind)

    @property
    def is_clean(self) -> bool:
        """Whether it ends the process by a clean shutdown."""
        return self.kind == Stop.kind

    @property
    def is_lossy(self) -> bool:
        """Whether it takes what was not flushed from a disk."""
        return self.effect is not None and CLASSES[self.kind].traits.disk is DiskEffect.UNFLUSHED

    @property
    def on_controller(self) -> bool:
        """Whether it is done to the controller."""
        return self.aim == ACTIVE_CONTROLLER

    @property
    def node(self) -> NodeId | None:
        """The broker that it has hit, once it has happened; None: it was the controller."""
        return None if self.on_controller else NodeId(self.aim)

    def parameters(self, brokers: int) -> dict[str, Any]:
        """As a scenario with so many ``brokers`` writes them, once it has happened; a disturbance has none."""
        match self.effect:
            case None:
                return {}
            case Effect.CUTS_LINKS:
                return {"links": self._links(brokers)}
            case Effect.MOVES_CLOCK:
                return {"node": self.aim, "offset_ms": self.amount}
            case Effect.FILLS_DISK:
                return {"node": self.aim, "free_bytes": 0}
            case Effect.ENDS | Effect.PAUSES:
                return {"node": CONTROLLER if self.on_controller else self.aim}

    def _links(self, brokers: int) -> list[list[int | str]]:
        others: list[int | str] = [broker for broker in range(brokers) if broker != self.aim]
        far: dict[str, list[int | str]] = {
            "brokers": others, CONTROLLER: [CONTROLLER], CLIENTS: [CLIENTS], "all": [*others, CONTROLLER, CLIENTS],
        }  # fmt: skip
        ends = [self.peer] if isinstance(self.peer, int) else far[self.peer]
        outward = [[self.aim, end] for end in ends] if self.direction != "in" else []
        return outward + ([[end, self.aim] for end in ends] if self.direction != "out" else [])


Aimed = TypeVar("Aimed", bound=Process)


def draw_faults(seed: int, configuration: Configuration) -> tuple[Planned, ...]:
    """The faults of ``seed``, and the disturbances that are drawn among them, in the order of their times."""
    chance = random.Random(f"{seed}:trouble")
    mix = {**configuration.faults, **configuration.disturbances}
    chosen = chance.choices(DRAWN, [mix.get(one.name, 0) for one in DRAWN], k=configuration.fault_count)
    horizon_ns = configuration.horizon_ms * MS
    return tuple(sorted(_draw(chance, one, horizon_ns, configuration) for one in chosen))


def draw_deletions(seed: int, configuration: Configuration) -> tuple[Planned, ...]:
    """When records are deleted; drawn apart, so that the faults of a seed are the same without."""
    chance = random.Random(f"{seed}:deletions")
    horizon_ns = configuration.horizon_ms * MS
    return tuple(
        Planned(
            at_ns=int(chance.uniform(0.1, 0.98) * horizon_ns),
            for_ns=0,
            kind=chance.choice(tuple(DELETIONS)),
            aim=chance.choice((LEADER, LEADER, FOLLOWER, OTHER_FOLLOWER)),
            amount=chance.choice((10, 50, 90, 100)),
        )
        for _ in range(configuration.deletions)
    )


def draw_all(seed: int, configuration: Configuration) -> tuple[Planned, ...]:
    """Faults and disturbances of ``seed``, in the order of their times."""
    return tuple(sorted((*draw_faults(seed, configuration), *draw_deletions(seed, configuration))))


def aimed_at(aim: int, brokers: Sequence[Aimed], partition: PartitionState | None) -> Aimed | None:
    """The broker that an aim means now; None: there is none. ``partition``: None while there is no controller."""
    if aim >= 0:
        return brokers[aim] if aim < len(brokers) else None
    leader = partition.leader if partition is not None else NO_LEADER
    if aim == LEADER:
        return brokers[leader] if leader != NO_LEADER else None
    others = [broker for broker in brokers if broker.node != leader]
    place = FOLLOWER - aim
    return others[place] if place < len(others) else None


def _draw(
    chance: random.Random, drawn: DrawnFault | Disturbance, horizon_ns: int, configuration: Configuration
) -> Planned:
    session_ms = configuration.session_timeout_ms
    effect, form = EFFECTS.get(drawn.kind), drawn.form if isinstance(drawn, DrawnFault) else ""
    cuts = effect is Effect.CUTS_LINKS
    short = chance.random() < 0.4
    for_ms = chance.uniform(0.5, 0.3 * session_ms) if short else chance.uniform(0.5, 4) * session_ms
    aim = chance.choice((LEADER, LEADER, FOLLOWER, OTHER_FOLLOWER, chance.randrange(configuration.nodes)))
    return Planned(
        at_ns=int(chance.uniform(0.02, 0.95) * horizon_ns),
        for_ns=int(for_ms * MS),
        kind=drawn.kind,
        aim=ACTIVE_CONTROLLER if form == CONTROLLER else aim,
        peer=_peer(chance, form, configuration) if cuts else "",
        direction=chance.choice(("both", "both", "in", "out")) if cuts else "both",
        holds=cuts and chance.random() < 0.5,
        amount=chance.choice((-3_600_000, 3_600_000, -50, 50, 500)) if effect is Effect.MOVES_CLOCK else 0,
    )


def _peer(chance: random.Random, form: str, configuration: Configuration) -> int | str:
    if form == BETWEEN:
        return chance.randrange(configuration.nodes)
    return chance.choice(("all", "brokers", CONTROLLER, CONTROLLER, CLIENTS))
