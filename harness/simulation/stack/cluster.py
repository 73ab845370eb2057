"""A simulated cluster: virtual time, and the nodes with their addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.broker.caller import Caller
from harness.broker.settings import NodeConfig, Settings
from harness.model import CLIENTS, CONTROLLER_ID, NodeId, node_id, node_name
from harness.replication.knobs import Knobs
from harness.simulation.stack.links import Address
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey

_PORT = 9092


class Request(NamedTuple):
    """What a client asks; ``timeout_s`` is how long it waits for the answer."""

    key: ApiKey
    version: int
    body: Message
    timeout_s: float = 30.0


class SimulatedCluster:
    """Brokers 0, 1, 2 ... and a controller. Nothing is started yet.

    Attributes:
        world: virtual time.
        knobs: of its generation.
        nodes: by name, the controller first.
    """

    def __init__(self, world: VirtualScheduler, brokers: int, knobs: Knobs, settings: Settings) -> None:
        ids = [CONTROLLER_ID, *map(NodeId, range(brokers))]
        names = {listener(node)[0]: node_name(node) for node in ids}
        self.world = world
        self.knobs = knobs
        self.nodes: dict[str, SimulatedNode] = {}
        for node in ids:
            config = NodeConfig(
                node_id=node,
                cluster_id="seawall-simulated",
                listener=listener(node),
                control=("", 0),
                controller=listener(CONTROLLER_ID),
                names=names,
                data_dir="",
                timeline="",
                incarnation=0,
                knobs=knobs,
                settings=settings,
            )
            self.nodes[node_name(node)] = SimulatedNode(config, world)

    def start(self) -> None:
        """Start every node."""
        for node in self.nodes.values():
            node.start()

    def brokers(self) -> list[SimulatedNode]:
        """The brokers, in order."""
        return [node for node in self.nodes.values() if node.node != CONTROLLER_ID]

    def network(self, name: str = CLIENTS) -> SimulatedNetwork:
        """A network for a client, or for one that claims to be ``name``."""
        return SimulatedNetwork(self.world, name)

    def ask(self, node: str, request: Request) -> Message | None:
        """Let time pass until ``node`` has answered a client's request; None when it does not."""
        answers: list[Message | None] = []
        caller = self.call(node, request, answers.append)
        self.world.sleep_until(lambda: bool(answers), request.timeout_s + 1)
        caller.close()
        return answers[0] if answers else None

    def call(self, node: str, request: Request, answered: Callable[[Message | None], None]) -> Caller:
        """Send a client's request to ``node``; close what is returned in the end."""
        caller = Caller(self.network(), listener(node_id(node)), node, "seawall")
        caller.call(request.key, request.version, request.body, request.timeout_s, answered)
        return caller


def listener(node: NodeId) -> Address:
    """Where ``node`` speaks Kafka: 10.0.0.10 is broker 0, 10.0.0.100 the controller."""
    return f"10.0.0.{node if node == CONTROLLER_ID else 10 + node}", _PORT
