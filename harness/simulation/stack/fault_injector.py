"""Injects the faults and disturbances of a seed into the whole broker: the same list and aims as on the bare core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from harness.model import CLIENTS, CONTROLLER, Link
from harness.simulation.core import drawn_kinds
from harness.simulation.core.budget import Budget
from harness.simulation.core.configuration import PARTITION
from harness.simulation.core.drawn_kinds import Effect
from harness.simulation.core.planned import Planned, aimed_at
from harness.simulation.faults_in_force import FaultsInForce, Undo
from harness.simulation.stack.deletions import Deletions
from harness.simulation.stack.links import LinkConditions
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.observed_cluster import ObservedCluster
from harness.simulation.stack.observed_nodes import ObservedNode

_SLOWER = 20


class FaultInjector:
    """See the module.

    Args:
        cluster: the target of the faults.
        budget: what may happen at one time.
        deletions: what deletes records.
        in_force: what has happened, and is to be undone.
    """

    def __init__(self, cluster: ObservedCluster, budget: Budget, deletions: Deletions, in_force: FaultsInForce) -> None:
        self._cluster = cluster
        self._budget = budget
        self._deletions = deletions
        self._in_force = in_force
        self._cuts: Counter[Link] = Counter()

    def strike(self, planned: Planned) -> None:
        """Let it happen, if it can and may; heal it after its time."""
        undo = self._strike_controller(planned) if planned.on_controller else self._strike_broker(planned)
        if undo is not None:
            self._in_force.heal_later(planned, undo)

    # ------------------------------------------------------------------------------------------------------- aiming

    def _strike_controller(self, fault: Planned) -> Undo | None:
        node = self._cluster.controller.simulated
        if not node.runs:
            return None
        self._in_force.struck(fault, fault.aim)
        if fault.effect is Effect.PAUSES:
            return self._pause(node)
        assert fault.effect is Effect.ENDS, f"{fault.kind} is not done to a controller"
        node.kill()
        return node.start_again

    def _strike_broker(self, planned: Planned) -> Undo | None:
        broker = aimed_at(planned.aim, self._cluster.brokers, self._cluster.controller.partition)
        if broker is None or not broker.simulated.lives:
            return None
        match planned.effect:
            case Effect.CUTS_LINKS:
                return self._cut(broker, planned)
            case None:
                return (self._slow if planned.kind == drawn_kinds.SLOW_LINKS else self._do_once)(broker, planned)
            case effect:
                if not self._can_or_may(broker, planned, effect):
                    return None
                self._in_force.struck(planned, broker.node)
                return self._impair(broker, planned, effect)

    def _can_or_may(self, broker: ObservedNode, fault: Planned, effect: Effect) -> bool:
        """Whether a fault of a broker is possible, and within the budget."""
        if effect is Effect.PAUSES:
            return broker.simulated.runs
        if fault.is_clean:
            return broker.simulated.runs and broker.broker_epoch >= 0
        return effect is Effect.MOVES_CLOCK or self._budget.affords(broker, lossy=fault.is_lossy)

    def _impair(self, broker: ObservedNode, fault: Planned, effect: Effect) -> Undo:
        node = broker.simulated
        match effect:
            case Effect.PAUSES:
                return self._pause(node)
            case Effect.ENDS:
                return self._end(broker, clean=fault.is_clean, lossy=fault.is_lossy)
            case Effect.FILLS_DISK:
                broker.fill_disk(is_full=True)
                return lambda: broker.fill_disk(is_full=False)
            case Effect.MOVES_CLOCK:
                node.clock.wall_offset_ms = fault.amount
                return lambda: setattr(node.clock, "wall_offset_ms", 0)
            case Effect.CUTS_LINKS:
                raise AssertionError("a partition is one of links")

    def _do_once(self, broker: ObservedNode, fault: Planned) -> Undo | None:
        """What an operator or a client does, if it is possible; it is not undone."""
        controller, replica = self._cluster.controller.simulated, broker.replica
        alive = broker.simulated.runs and replica is not None
        leads = replica is not None and replica.role == "leader"
        act: Callable[[], object]
        match fault.kind:
            case drawn_kinds.RETENTION:
                possible, act = alive, partial(self._deletions.retire, broker, fault.amount)
            case drawn_kinds.DELETE_RECORDS:
                possible, act = alive and leads, partial(self._deletions.order, broker, fault.amount)
            case drawn_kinds.ELECT:
                request = {**PARTITION._asdict(), "leader": broker.node, "unclean": False}
                possible, act = controller.runs, partial(controller.operate, "elect", request)
            case unknown:
                raise ValueError(f"no disturbance is called {unknown!r}")
        if not possible:
            return None
        self._in_force.struck(fault, broker.node)
        act()
        return lambda: None

    # ---------------------------------------------------------------------------------------- one kind after another

    def _pause(self, node: SimulatedNode) -> Undo:
        node.freeze()
        life = node.incarnation
        return lambda: node.thaw() if node.incarnation == life and node.lives else None

    def _end(self, broker: ObservedNode, *, clean: bool, lossy: bool) -> Undo:
        node = broker.simulated
        if clean:
            node.shut_down()
        elif lossy:
            broker.lose_power()
        else:
            node.kill()
            broker.dirty = True
        life = node.incarnation
        return lambda: node.start_again() if node.incarnation == life else None

    def _cut(self, broker: ObservedNode, fault: Planned) -> Undo | None:
        links = self._links(broker.simulated.name, fault)
        if not links:
            return None
        self._in_force.struck(fault, broker.node)
        self._cuts.update(links)
        self._obey_cuts()
        return lambda: self._mend(links, holds=fault.holds)

    def _mend(self, links: list[Link], *, holds: bool) -> None:
        """What has waited goes on; or is lost with its connections."""
        self._cuts.subtract(links)
        if not holds:
            for node in self._cluster.simulated.nodes.values():
                if node.lives:
                    for peer in sorted({end for link in links if node.name in link for end in link} - {node.name}):
                        node.network.sever(peer)
        self._obey_cuts()

    def _obey_cuts(self) -> None:
        cut = sorted(link for link, times in self._cuts.items() if times)
        for node in self._cluster.simulated.nodes.values():
            node.cut(tuple(link for link in cut if node.name in link))

    def _slow(self, broker: ObservedNode, fault: Planned) -> Undo | None:
        table = self._cluster.simulated.world.links
        links = self._links(broker.simulated.name, fault._replace(peer="all", direction="both"))
        if any(link in table.local for link in links):
            return None
        self._in_force.struck(fault, broker.node)
        least, most = table.conditions.delay_ns
        slow = LinkConditions((least * _SLOWER, most * _SLOWER), table.conditions.loss)
        table.local.update(dict.fromkeys(links, slow))

        def hasten() -> None:
            for link in links:
                table.local.pop(link, None)

        return hasten

    def _links(self, node: str, fault: Planned) -> list[Link]:
        brokers = [broker.simulated.name for broker in self._cluster.brokers if broker.simulated.name != node]
        match fault.peer:
            case int(peer):
                far = [str(peer)] if str(peer) in brokers else []
            case "brokers":
                far = brokers
            case "controller":
                far = [CONTROLLER]
            case "clients":
                far = [CLIENTS]
            case _:
                far = [*brokers, CONTROLLER, CLIENTS]
        outward = [Link(node, end) for end in far] if fault.direction != "in" else []
        return outward + ([Link(end, node) for end in far] if fault.direction != "out" else [])
