"""The faults of a simulated run: drawn beforehand as a list, aimed when their time has come, healed when it is over.

Because the list is drawn before anything happens, a fault can be left out without another one being drawn instead:
that is what makes a schedule shrinkable.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harness.history.delete_records_log import GAVE_UP
from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.controller_messages import PartitionState
from harness.replication.messages import (
    NO_ERROR,
    AnswerDeleteRecords,
    DeleteRecordsExpired,
    DeleteRecordsRequested,
    RetentionReached,
)
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import DELETIONS, FAULTS, MS, PARTITION, Configuration
from harness.simulation.witnessed import Process

if TYPE_CHECKING:
    from harness.simulation.core.network import Link
    from harness.simulation.core.world import World

LEADER, FOLLOWER, OTHER_FOLLOWER = -1, -2, -3
"""Aims: whoever leads when the time comes, the first of the others in replica order, or the second."""

CONTROLLER_KINDS = frozenset({"controller_kill", "controller_pause"})
DIRECTIONS = ("both", "in", "out")


class PlannedFault(NamedTuple):
    """One fault.

    Attributes:
        at_ns: when it happens; ``for_ns``: how long it lasts.
        kind: one of ``configuration.FAULTS``:

            * ``kill`` ``stop`` ``power_loss``: the broker crashes, shuts down cleanly, or loses power; it is started
              again in the end. ``pause``: it stands still.
            * ``isolate``: no message passes between the broker and ``peer`` ``brokers``, ``controller``, ``clients`` or
              ``all``; ``cut``: between it and the broker ``peer``; in ``direction``; ``holds``: they wait.
            * ``slow``: everything that it sends or gets takes 20 times as long.
            * ``clock``: its wall clock is off by ``amount`` milliseconds. ``disk_full``: it cannot write.
            * ``controller_kill``, ``controller_pause``; ``elect``: an operator moves the leadership to it.
            * ``retention``: it deletes its oldest batches, ``amount`` per cent of them, as far as they are committed;
              ``delete_records``: somebody asks it, if it leads, to delete ``amount`` per cent of what is committed.
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


Aimed = TypeVar("Aimed", bound=Process)


def draw_troubles(seed: int, configuration: Configuration) -> tuple[PlannedFault, ...]:
    """The faults of ``seed``, in the order of their times."""
    chance = random.Random(f"{seed}:trouble")
    weights = [configuration.faults.get(kind, 0) for kind in FAULTS]
    kinds = chance.choices(FAULTS, weights, k=configuration.trouble)
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
    return tuple(sorted((*draw_troubles(seed, configuration), *draw_deletions(seed, configuration))))


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
    short = chance.random() < 0.4
    for_ms = chance.uniform(0.5, 0.3 * session_ms) if short else chance.uniform(0.5, 4) * session_ms
    aim = chance.choice((LEADER, LEADER, FOLLOWER, OTHER_FOLLOWER, chance.randrange(configuration.nodes)))
    return PlannedFault(
        at_ns=int(chance.uniform(0.02, 0.95) * horizon_ns),
        for_ns=int(for_ms * MS),
        kind=kind,
        aim=aim,
        peer=_peer(chance, kind, configuration),
        direction=chance.choice(("both", "both", "in", "out")) if kind in ("isolate", "cut") else "both",
        holds=kind in ("isolate", "cut") and chance.random() < 0.5,
        amount=chance.choice((-3_600_000, 3_600_000, -50, 50, 500)) if kind == "clock" else 0,
    )


def _peer(chance: random.Random, kind: str, configuration: Configuration) -> int | str:
    if kind == "isolate":
        return chance.choice(("all", "brokers", "controller", "controller", "clients"))
    return chance.randrange(configuration.nodes) if kind == "cut" else ""


Undo = Callable[[], None]


class Troublemaker:
    """Makes the troubles of one world happen, and undoes them.

    Attributes:
        happened: those that had an effect, aimed at whom they hit.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._undone: dict[int, Undo] = {}
        self.happened: list[PlannedFault] = []

    def strike(self, trouble: PlannedFault) -> None:
        """Let it happen, if it can and may; heal it after its time."""
        world = self._world
        undo = self._controller_trouble(trouble) if trouble.kind in CONTROLLER_KINDS else self._aimed(trouble)
        if undo is None:
            return
        key = len(self.happened)
        self._undone[key] = undo
        world.at(world.now_ns + trouble.for_ns, self._heal, key)

    def _heal(self, key: int) -> None:
        undo = self._undone.pop(key, None)
        if undo is not None:
            self._world.healed(self.happened[key - 1])
            undo()

    def heal_all(self) -> None:
        """End every trouble now, in the order in which they came."""
        for key in list(self._undone):
            self._heal(key)

    def _note(self, trouble: PlannedFault, aim: int) -> None:
        exact = trouble._replace(aim=aim, at_ns=self._world.now_ns)
        self.happened.append(exact)
        self._world.struck(exact)

    def _controller_trouble(self, trouble: PlannedFault) -> Undo | None:
        world = self._world
        controller = world.controller
        if not controller.alive or controller.paused:
            return None
        self._note(trouble, trouble.aim)
        if trouble.kind == "controller_kill":
            controller.die()
            return controller.start
        controller.paused = True
        return lambda: world.resume(controller)

    def _aimed(self, trouble: PlannedFault) -> Undo | None:
        broker = aimed_at(trouble.aim, self._world.brokers, self._world.controller.partition)
        if broker is None or not broker.alive:
            return None
        match trouble.kind:
            case "kill" | "stop" | "power_loss":
                return self._end(broker, trouble)
            case "isolate" | "cut":
                return self._cut(broker, trouble)
            case "slow":
                return self._slow(broker, trouble)
            case _:
                return self._simple(broker, trouble)

    def _simple(self, broker: Broker, trouble: PlannedFault) -> Undo | None:
        world = self._world
        if not self._can_or_may(broker, trouble):
            return None
        self._note(trouble, broker.node)
        match trouble.kind:
            case "pause":
                broker.paused = True
                life = broker.life
                return lambda: world.resume(broker) if broker.life == life else None
            case "clock":
                broker.clock_ns = trouble.amount * MS
                return lambda: setattr(broker, "clock_ns", 0)
            case "disk_full":
                broker.disk.full = True
                return lambda: world.free_disk(broker)
            case "retention" | "delete_records":
                self._delete(broker, trouble)
            case _:
                world.controller.elect(broker.node)
        return lambda: None

    def _delete(self, broker: Broker, trouble: PlannedFault) -> None:
        replica, disk = broker.replica, broker.disk
        assert replica is not None
        if trouble.kind == "retention":
            batches = disk.batches[len(disk.batches) * trouble.amount // 100 :]
            before = batches[0].span.base_offset if batches else disk.end
            broker.handle(RetentionReached(before, broker.now_ns))
        else:
            before = disk.start + (replica.high_watermark - disk.start) * trouble.amount // 100
            self._order(broker, before)

    def _order(self, broker: Broker, before: Offset) -> None:
        """A client asks for the deletion, and waits as long as the leader may."""
        world, orders = self._world, self._world.orders
        wait_ms = world.configuration.send_timeout_ms
        order = orders.sent(PARTITION, before, wait_ms, broker.node)
        broker.handle(DeleteRecordsRequested(order, before, broker.now_ns))
        world.after(broker, wait_ms * MS, broker.handle, DeleteRecordsExpired(order))
        world.at(world.now_ns + wait_ms * MS, lambda _: orders.ended(order, GAVE_UP), None)

    def answered(self, answer: AnswerDeleteRecords) -> None:
        """A leader answers a client's order."""
        order: Any = answer.token
        error = None if answer.error is NO_ERROR else answer.error.name
        self._world.orders.ended(order, error, answer.low_watermark)

    def _can_or_may(self, broker: Broker, trouble: PlannedFault) -> bool:
        """Whether a simple trouble is possible, and within the budget."""
        controller = self._world.controller
        match trouble.kind:
            case "pause":
                return not broker.paused
            case "elect":
                return controller.core is not None and not controller.paused
            case "disk_full":
                return self._world.budget.affords(broker, lossy=False)
            case "retention" | "delete_records":
                leads = broker.replica is not None and broker.replica.role == "leader"
                return not broker.paused and (leads or trouble.kind == "retention")
        return True

    # ----------------------------------------------------------------------------------------- one kind after another

    def _end(self, broker: Broker, trouble: PlannedFault) -> Undo | None:
        """Crash, power loss or clean shutdown, if the budget allows it."""
        world = self._world
        lossy = trouble.kind == "power_loss"
        if trouble.kind == "stop" and (broker.paused or broker.broker_epoch < 0):
            return None
        if trouble.kind != "stop" and not world.budget.affords(broker, lossy=lossy):
            return None
        self._note(trouble, broker.node)
        if trouble.kind == "stop":
            broker.stop()
        else:
            broker.die()
            broker.dirty = True
            if lossy:
                world.lose_power(broker)
        life = broker.life
        return lambda: broker.start() if broker.life == life else None

    def _cut(self, broker: Broker, trouble: PlannedFault) -> Undo | None:
        links = self._world.network.some(self._pairs(broker.index, trouble))
        if not links:
            return None
        self._note(trouble, broker.node)
        for link in links:
            link.cuts += 1
            link.holds = trouble.holds
        return lambda: self._mend(links)

    def _mend(self, links: list[Link]) -> None:
        for link in links:
            link.cuts -= 1
            if not link.cuts:
                held, link.held = link.held, []
                for message in held:
                    self._world.release(link, message)

    def _pairs(self, node: int, trouble: PlannedFault) -> list[tuple[int, int]]:
        world = self._world
        brokers = [broker.index for broker in world.brokers if broker.index != node]
        clients = [client.index for client in (*world.producers, world.consumer)]
        match trouble.peer:
            case int(peer):
                far = [peer] if peer != node else []
            case "brokers":
                far = brokers
            case "controller":
                far = [world.controller.index]
            case "clients":
                far = clients
            case _:
                far = [*brokers, world.controller.index, *clients]
        outward = [(node, end) for end in far] if trouble.direction != "in" else []
        inward = [(end, node) for end in far] if trouble.direction != "out" else []
        return outward + inward

    def _slow(self, broker: Broker, trouble: PlannedFault) -> Undo | None:
        links = self._world.network.some(self._pairs(broker.index, trouble._replace(peer="all", direction="both")))
        if any(link.slow > 1 for link in links):
            return None
        self._note(trouble, broker.node)
        for link in links:
            link.slow = 20

        def hasten() -> None:
            for link in links:
                link.slow = 1

        return hasten


def hit(trouble: PlannedFault) -> NodeId | None:
    """The broker that a trouble which happened has hit; None: the controller."""
    return None if trouble.kind in CONTROLLER_KINDS else NodeId(trouble.aim)
