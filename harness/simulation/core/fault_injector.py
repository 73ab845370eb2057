"""Injects the faults and disturbances of a run on the bare core, and undoes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from harness.simulation.core import drawn_kinds
from harness.simulation.core.broker import Broker
from harness.simulation.core.budget import Budget
from harness.simulation.core.cluster import CoreCluster
from harness.simulation.core.configuration import MS
from harness.simulation.core.deletions import Deletions
from harness.simulation.core.drawn_kinds import Effect
from harness.simulation.core.planned import Planned, aimed_at
from harness.simulation.core.process import Process
from harness.simulation.faults_in_force import FaultsInForce, Undo
from harness.simulation.witness import Witness

_SLOWER = 20


class FaultInjector:
    """See the module.

    Args:
        cluster: the target of the faults.
        clients: brokers can be cut off from them.
        budget: what may happen at one time.
        deletions: what deletes records.
        power_loss: takes from a dead broker's disk what was not durable.
        in_force: what has happened, and is to be undone.
    """

    def __init__(
        self,
        cluster: CoreCluster,
        clients: Sequence[Process],
        budget: Budget,
        deletions: Deletions,
        power_loss: PowerLoss,
        *,
        in_force: FaultsInForce,
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._budget = budget
        self._deletions = deletions
        self._power_loss = power_loss
        self._in_force = in_force
        self._strikes: Mapping[Effect, Callable[[Broker, Planned], Undo | None]] = {
            Effect.CUTS_LINKS: self._cut,
            Effect.ENDS: self._end,
            Effect.PAUSES: self._pause,
            Effect.FILLS_DISK: self._fill_disk,
            Effect.MOVES_CLOCK: self._move_clock,
        }

    def strike(self, planned: Planned) -> None:
        """Let it happen, if it can and may; heal it after its time."""
        undo = self._strike_controller(planned) if planned.on_controller else self._strike_broker(planned)
        if undo is not None:
            self._in_force.heal_later(planned, undo)

    def _strike_controller(self, fault: Planned) -> Undo | None:
        controller = self._cluster.controller
        if not controller.alive or controller.paused:
            return None
        self._in_force.struck(fault, fault.aim)
        if fault.effect is Effect.PAUSES:
            controller.paused = True
            return partial(self._cluster.scheduler.resume, controller)
        assert fault.effect is Effect.ENDS, f"{fault.kind} is not done to a controller"
        controller.die()
        return controller.start

    def _strike_broker(self, planned: Planned) -> Undo | None:
        broker = aimed_at(planned.aim, self._cluster.brokers, self._cluster.controller.partition)
        if broker is None or not broker.alive:
            return None
        if planned.effect is not None:
            return self._strikes[planned.effect](broker, planned)
        return (self._slow if planned.kind == drawn_kinds.SLOW_LINKS else self._do_once)(broker, planned)

    def _do_once(self, broker: Broker, fault: Planned) -> Undo | None:
        """What an operator or a client does, if it is possible; it is not undone."""
        controller = self._cluster.controller
        leads = broker.replica is not None and broker.replica.role == "leader"
        act: Callable[[], object]
        match fault.kind:
            case drawn_kinds.RETENTION:
                possible, act = not broker.paused, partial(self._deletions.retire, broker, fault.amount)
            case drawn_kinds.DELETE_RECORDS:
                possible, act = not broker.paused and leads, partial(self._deletions.order, broker, fault.amount)
            case drawn_kinds.ELECT:
                possible = controller.core is not None and not controller.paused
                act = partial(controller.elect, broker.node)
            case unknown:
                raise ValueError(f"no disturbance is called {unknown!r}")
        if not possible:
            return None
        self._in_force.struck(fault, broker.node)
        act()
        return lambda: None

    # ----------------------------------------------------------------------------------------- one kind after another

    def _pause(self, broker: Broker, fault: Planned) -> Undo | None:
        if broker.paused:
            return None
        self._in_force.struck(fault, broker.node)
        broker.paused = True
        life = broker.life
        return lambda: self._cluster.scheduler.resume(broker) if broker.life == life else None

    def _fill_disk(self, broker: Broker, fault: Planned) -> Undo | None:
        if not self._budget.affords(broker, lossy=False):
            return None
        self._in_force.struck(fault, broker.node)
        broker.disk.full = True
        return lambda: setattr(broker.disk, "full", False)

    def _move_clock(self, broker: Broker, fault: Planned) -> Undo:
        self._in_force.struck(fault, broker.node)
        broker.clock_ns = fault.amount * MS
        return lambda: setattr(broker, "clock_ns", 0)

    def _end(self, broker: Broker, fault: Planned) -> Undo | None:
        """Crash, power loss or clean shutdown, if the budget allows it."""
        clean, lossy = fault.is_clean, fault.is_lossy
        if clean and (broker.paused or broker.broker_epoch < 0):
            return None
        if not clean and not self._budget.affords(broker, lossy=lossy):
            return None
        self._in_force.struck(fault, broker.node)
        if clean:
            broker.stop()
        else:
            broker.die()
            broker.dirty = True
            if lossy:
                self._power_loss.strike(broker)
        life = broker.life
        return lambda: broker.start() if broker.life == life else None

    def _cut(self, broker: Broker, fault: Planned) -> Undo | None:
        network = self._cluster.network
        links = network.some(self._pairs(broker.index, fault))
        if not links:
            return None
        self._in_force.struck(fault, broker.node)
        for link in links:
            link.cuts += 1
            link.holds = fault.holds
        return partial(network.mend, links)

    def _pairs(self, node: int, fault: Planned) -> list[tuple[int, int]]:
        cluster = self._cluster
        brokers = [broker.index for broker in cluster.brokers if broker.index != node]
        clients = [client.index for client in self._clients]
        match fault.peer:
            case int(peer):
                far = [peer] if peer != node else []
            case "brokers":
                far = brokers
            case "controller":
                far = [cluster.controller.index]
            case "clients":
                far = clients
            case _:
                far = [*brokers, cluster.controller.index, *clients]
        outward = [(node, end) for end in far] if fault.direction != "in" else []
        inward = [(end, node) for end in far] if fault.direction != "out" else []
        return outward + inward

    def _slow(self, broker: Broker, fault: Planned) -> Undo | None:
        pairs = self._pairs(broker.index, fault._replace(peer="all", direction="both"))
        links = self._cluster.network.some(pairs)
        if any(link.slow > 1 for link in links):
            return None
        self._in_force.struck(fault, broker.node)
        for link in links:
            link.slow = _SLOWER

        def hasten() -> None:
            for link in links:
                link.slow = 1

        return hasten


class PowerLoss:
    """Cuts a dead broker's disk back to what was durable.

    Args:
        random: what the kernel happened to have written is drawn from.
        witness: expects what is lost.
    """

    def __init__(self, random: Callable[[], float], witness: Witness) -> None:
        self._random = random
        self._witness = witness

    def strike(self, broker: Broker) -> None:
        """See the class."""
        lost = broker.disk.lose_power(self._random)
        broker.lossy = True
        self._witness.power_lost(broker, lost)
