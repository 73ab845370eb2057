"""The faults of a random schedule, done to the whole broker: the same list as on the bare core, aimed the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from harness.history.delete_records_log import GAVE_UP, LOST
from harness.model import CLIENTS, CONTROLLER, Link, Offset
from harness.replication.messages import ErrorCode
from harness.simulation.core.configuration import DELETIONS, PARTITION
from harness.simulation.core.planned_fault import CONTROLLER_KINDS, PlannedFault, aimed_at
from harness.simulation.stack.cluster import Request
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.observed_nodes import ObservedNode
from harness.simulation.stack.world import LinkConditions
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.operators import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

if TYPE_CHECKING:
    from harness.simulation.stack.stack_simulation import StackSimulation

Undo = Callable[[], None]

_DELETE_RECORDS_VERSION = 2
_SLOWER = 20
_FRAMES = 8
"""More frames than it takes to connect, to introduce oneself, to ask and to be answered."""


class Troubles:
    """Makes the troubles of one run happen, and undoes them.

    Attributes:
        happened: those that had an effect, aimed at whom they hit.
    """

    def __init__(self, world: StackSimulation) -> None:
        self._world = world
        self._undone: dict[int, Undo] = {}
        self._cuts: Counter[Link] = Counter()
        self.happened: list[PlannedFault] = []

    def strike(self, trouble: PlannedFault) -> None:
        """Let it happen, if it can and may; heal it after its time."""
        undo = self._controller_trouble(trouble) if trouble.kind in CONTROLLER_KINDS else self._aimed(trouble)
        if undo is None:
            return
        key = len(self.happened)
        self._undone[key] = undo
        self._world.after(trouble.for_ns, lambda: self._heal(key))

    def heal_all(self) -> None:
        """End every trouble now, in the order in which they came."""
        for key in list(self._undone):
            self._heal(key)

    def _heal(self, key: int) -> None:
        undo = self._undone.pop(key, None)
        if undo is not None:
            self._world.healed(self.happened[key - 1])
            undo()

    def _note(self, trouble: PlannedFault, aim: int) -> None:
        exact = trouble._replace(aim=aim, at_ns=self._world.now_ns)
        self.happened.append(exact)
        self._world.struck(exact)

    # ------------------------------------------------------------------------------------------------------- aiming

    def _controller_trouble(self, trouble: PlannedFault) -> Undo | None:
        node = self._world.controller.simulated
        if not node.runs:
            return None
        self._note(trouble, trouble.aim)
        if trouble.kind == "controller_pause":
            return self._pause(node)
        node.kill()
        return lambda: self._world.start(node)

    def _aimed(self, trouble: PlannedFault) -> Undo | None:
        broker = aimed_at(trouble.aim, self._world.brokers, self._world.controller.partition)
        if broker is None or not broker.simulated.lives or not self._can_or_may(broker, trouble):
            return None
        match trouble.kind:
            case "isolate" | "cut":
                return self._cut(broker, trouble)
            case "slow":
                return self._slow(broker, trouble)
            case _:
                self._note(trouble, broker.node)
                return self._simple(broker, trouble)

    def _simple(self, broker: ObservedNode, trouble: PlannedFault) -> Undo:
        if trouble.kind in DELETIONS:
            self._delete(broker, trouble)
            return lambda: None
        match trouble.kind:
            case "pause":
                return self._pause(broker.simulated)
            case "clock":
                return self._offset_clock(broker.simulated, trouble.amount)
            case "disk_full":
                return self._fill_disk(broker)
            case "elect":
                return self._elect(broker)
            case _:
                return self._end(broker, trouble.kind)

    def _can_or_may(self, broker: ObservedNode, trouble: PlannedFault) -> bool:
        """Whether a trouble is possible, and within the budget."""
        match trouble.kind:
            case "pause":
                return broker.simulated.runs
            case "stop":
                return broker.simulated.runs and broker.broker_epoch >= 0
            case "elect":
                return self._world.controller.simulated.runs
            case "retention" | "delete_records":
                leads = broker.replica is not None and broker.replica.role == "leader"
                return broker.simulated.runs and broker.replica is not None and (leads or trouble.kind == "retention")
            case "kill" | "power_loss" | "disk_full":
                return self._world.budget.affords(broker, lossy=trouble.kind == "power_loss")
        return True

    # ---------------------------------------------------------------------------------------- one kind after another

    def _pause(self, node: SimulatedNode) -> Undo:
        node.freeze()
        life = node.incarnation
        return lambda: node.thaw() if node.incarnation == life and node.lives else None

    def _offset_clock(self, node: SimulatedNode, offset_ms: int) -> Undo:
        node.clock.wall_offset_ms = offset_ms
        return lambda: setattr(node.clock, "wall_offset_ms", 0)

    def _fill_disk(self, broker: ObservedNode) -> Undo:
        broker.fill_disk(is_full=True)
        return lambda: broker.fill_disk(is_full=False)

    def _elect(self, broker: ObservedNode) -> Undo:
        request = {"topic": PARTITION.topic, "partition": PARTITION.partition, "leader": broker.node, "unclean": False}
        self._world.controller.simulated.operate("elect", request)
        return lambda: None

    def _delete(self, broker: ObservedNode, trouble: PlannedFault) -> None:
        """As if its oldest batches had reached ``log.retention.ms``; or because a client asks it to."""
        disk, replica = broker.disk, broker.replica
        assert replica is not None
        if trouble.kind == "retention":
            batches = disk.batches[len(disk.batches) * trouble.amount // 100 :]
            broker.retire(batches[0].span.base_offset if batches else disk.end)
            return
        before = disk.start + (replica.high_watermark - disk.start) * trouble.amount // 100
        self._order(broker, before)

    def _order(self, broker: ObservedNode, before: Offset) -> None:
        """A client asks for the deletion, and waits as long as the leader may, and its frames may be on their way."""
        drawn, orders = self._world.configuration, self._world.orders
        wait_ms = drawn.send_timeout_ms
        slowest_us = (drawn.delay_us + drawn.spread_us) * (drawn.late_factor if drawn.late else 1)
        topic = DeleteRecordsTopic(PARTITION.topic, [DeleteRecordsPartition(PARTITION.partition, before)])
        asked = DeleteRecordsRequest([topic], wait_ms)
        request = Request(
            ApiKey.DELETE_RECORDS, _DELETE_RECORDS_VERSION, asked, wait_ms / 1e3 + _FRAMES * slowest_us / 1e6
        )
        order = orders.sent(PARTITION, before, wait_ms, broker.node)
        given_up_ns = self._world.now_ns + round(request.timeout_s * 1e9)

        def answered(answer: Message | None) -> None:
            if answer is None:
                orders.ended(order, GAVE_UP if self._world.now_ns >= given_up_ns else LOST)
            else:
                told = cast("DeleteRecordsResponse", answer).topics[0].partitions[0]
                orders.ended(order, ErrorCode(told.error_code).name if told.error_code else None, told.low_watermark)
            caller.close()

        caller = self._world.cluster.call(broker.simulated.name, request, answered)

    def _end(self, broker: ObservedNode, kind: str) -> Undo:
        node = broker.simulated
        match kind:
            case "stop":
                node.shut_down()
            case "kill":
                node.kill()
                broker.dirty = True
            case _:
                broker.lose_power()
        life = node.incarnation
        return lambda: self._world.start(node) if node.incarnation == life else None

    def _cut(self, broker: ObservedNode, trouble: PlannedFault) -> Undo | None:
        links = self._links(broker.simulated.name, trouble)
        if not links:
            return None
        self._note(trouble, broker.node)
        self._cuts.update(links)
        self._obey_cuts()
        return lambda: self._mend(links, holds=trouble.holds)

    def _mend(self, links: list[Link], *, holds: bool) -> None:
        """What has waited goes on; or is lost with its connections."""
        self._cuts.subtract(links)
        if not holds:
            for node in self._world.cluster.nodes.values():
                if node.lives:
                    for peer in sorted({end for link in links if node.name in link for end in link} - {node.name}):
                        node.network.sever(peer)
        self._obey_cuts()

    def _obey_cuts(self) -> None:
        cut = sorted(link for link, times in self._cuts.items() if times)
        for node in self._world.cluster.nodes.values():
            node.cut(tuple(link for link in cut if node.name in link))

    def _slow(self, broker: ObservedNode, trouble: PlannedFault) -> Undo | None:
        clock = self._world.clock
        links = self._links(broker.simulated.name, trouble._replace(peer="all", direction="both"))
        if any(link in clock.local_weather for link in links):
            return None
        self._note(trouble, broker.node)
        least, most = clock.weather.delay_ns
        slow = LinkConditions((least * _SLOWER, most * _SLOWER), clock.weather.loss)
        clock.local_weather.update(dict.fromkeys(links, slow))

        def hasten() -> None:
            for link in links:
                clock.local_weather.pop(link, None)

        return hasten

    def _links(self, node: str, trouble: PlannedFault) -> list[Link]:
        brokers = [broker.simulated.name for broker in self._world.brokers if broker.simulated.name != node]
        match trouble.peer:
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
        outward = [Link(node, end) for end in far] if trouble.direction != "in" else []
        return outward + ([Link(end, node) for end in far] if trouble.direction != "out" else [])
