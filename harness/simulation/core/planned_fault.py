"""The faults that one seed draws before the run begins; each picks its node only when its time has come.

Because the seed draws the list first, a fault can be left out without another one being drawn instead:
that is what makes a schedule shrinkable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from harness.fault import FaultTraits
from harness.model import NO_LEADER, NodeId
from harness.replication.controller_messages import PartitionState
from harness.simulation.core.configuration import MS, Configuration
from harness.simulation.core.fault_kinds import CUT, DELETIONS, FAULTS, ISOLATE, KINDS, FaultKind
from harness.simulation.witnessed import Process

LEADER, FOLLOWER, OTHER_FOLLOWER = -1, -2, -3
"""Aims: the leader at that time, the first of the other replicas in replica order, or the second."""


class PlannedFault(NamedTuple):
    """One fault.

    Attributes:
        at_ns: when it happens; ``for_ns``: how long it lasts.
        kind: one of ``fault_kinds.KINDS``:

            * ``kill`` ``stop`` ``power_loss``: the broker crashes, shuts down cleanly, or loses power; it is started
              again in the end. ``pause``: it stands still.
            * ``isolate``: no message passes between the broker and ``peer`` ``brokers``, ``controller``, ``clients`` or
              ``all``; ``cut``: between it and the broker ``peer``; in ``direction``; ``holds``: they wait.
            * ``slow``: everything that it sends or gets takes 20 times as long.
            * ``clock``: its wall clock is off by ``amount`` milliseconds. ``disk_full``: it cannot write.
            * ``controller_kill``, ``controller_pause``; ``elect``: an operator moves the leadership to it.
            * ``retention``: it deletes its oldest batches, ``amount`` per cent of them, as far as they are committed;
              ``delete_records``: a client asks it, if it leads, to delete ``amount`` per cent of what is committed.
        aim: a broker, or LEADER, FOLLOWER, OTHER_FOLLOWER.
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
    def definition(self) -> FaultKind:
        """Its kind, with its counterpart on a real cluster."""
        return KINDS[self.kind]

    @property
    def traits(self) -> FaultTraits | None:
        """Those of the same fault of a real cluster; None: there is none."""
        return KINDS[self.kind].traits

    @property
    def node(self) -> NodeId | None:
        """The broker that it has hit, once it has happened; None: it was the controller."""
        return None if self.definition.on_controller else NodeId(self.aim)


Aimed = TypeVar("Aimed", bound=Process)


def draw_faults(seed: int, configuration: Configuration) -> tuple[PlannedFault, ...]:
    """The faults of ``seed``, in the order of their times."""
    chance = random.Random(f"{seed}:trouble")
    weights = [configuration.faults.get(kind, 0) for kind in FAULTS]
    kinds = chance.choices(FAULTS, weights, k=configuration.fault_count)
    horizon_ns = configuration.horizon_ms * MS
    return tuple(sorted(_draw(chance, kind, horizon_ns, configuration) for kind in kinds))


def draw_deletions(seed: int, configuration: Configuration) -> tuple[PlannedFault, ...]:
    """When records are deleted; drawn apart, so that the faults of a seed are the same without."""
    chance = random.Random(f"{seed}:deletions")
    horizon_ns = configuration.horizon_ms * MS
    return tuple(
        PlannedFault(
            at_ns=int(chance.uniform(0.1, 0.98) * horizon_ns),
            for_ns=0,
            kind=chance.choice(DELETIONS),
            aim=chance.choice((LEADER, LEADER, FOLLOWER, OTHER_FOLLOWER)),
            amount=chance.choice((10, 50, 90, 100)),
        )
        for _ in range(configuration.deletions)
    )


def draw_all(seed: int, configuration: Configuration) -> tuple[PlannedFault, ...]:
    """Faults and deletions of ``seed``, in the order of their times."""
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


def _draw(chance: random.Random, kind: str, horizon_ns: int, configuration: Configuration) -> PlannedFault:
    session_ms = configuration.session_timeout_ms
    traits = KINDS[kind].traits
    cuts = traits is not None and traits.cuts_links
    moves_clock = traits is not None and traits.moves_clock
    short = chance.random() < 0.4
    for_ms = chance.uniform(0.5, 0.3 * session_ms) if short else chance.uniform(0.5, 4) * session_ms
    aim = chance.choice((LEADER, LEADER, FOLLOWER, OTHER_FOLLOWER, chance.randrange(configuration.nodes)))
    return PlannedFault(
        at_ns=int(chance.uniform(0.02, 0.95) * horizon_ns),
        for_ns=int(for_ms * MS),
        kind=kind,
        aim=aim,
        peer=_peer(chance, kind, configuration),
        direction=chance.choice(("both", "both", "in", "out")) if cuts else "both",
        holds=cuts and chance.random() < 0.5,
        amount=chance.choice((-3_600_000, 3_600_000, -50, 50, 500)) if moves_clock else 0,
    )


def _peer(chance: random.Random, kind: str, configuration: Configuration) -> int | str:
    if kind == ISOLATE:
        return chance.choice(("all", "brokers", "controller", "controller", "clients"))
    return chance.randrange(configuration.nodes) if kind == CUT else ""
