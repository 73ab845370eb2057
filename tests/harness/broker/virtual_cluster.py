"""The classes that the node processes run, in virtual time, where everything arrives at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from harness.broker.broker import Broker
from harness.broker.caller import Caller
from harness.broker.controller_node import ControllerNode
from harness.broker.settings import Settings
from harness.model import CLIENTS, CONTROLLER, CONTROLLER_ID, Link, NodeId, TopicPartition, node_name
from harness.replication.knobs import generation
from harness.simulation.stack.cluster import SimulatedCluster, listener
from harness.simulation.stack.disk import MemoryDisk
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.harness.broker.raw_client import batch, produce_request

T = TopicPartition("t", 0)


class VirtualCluster:
    """Three brokers and a controller, a second after their start. Nodes are named by their ids."""

    def __init__(
        self, knobs: str = "3.7", overrides: Mapping[str, str] = MappingProxyType({}), **settings: Any
    ) -> None:
        self.world = VirtualScheduler()
        self.settings = Settings(min_insync_replicas=2, default_replication_factor=3, **settings)
        self.simulated = SimulatedCluster(self.world, 3, generation(knobs, overrides), self.settings)
        self.clients = self.simulated.network()
        self.simulated.start()
        self.world.sleep(1)

    def node(self, node: int) -> SimulatedNode:
        return self.simulated.nodes[node_name(NodeId(node))]

    def disk(self, node: int) -> MemoryDisk:
        return self.node(node).disk

    @property
    def brokers(self) -> Mapping[int, Broker]:
        return {node.node: cast("Broker", node.program) for node in self.simulated.brokers()}

    @property
    def controller(self) -> ControllerNode:
        return cast("ControllerNode", self.node(CONTROLLER_ID).program)

    @property
    def exit_codes(self) -> Mapping[int, int]:
        ended = {node.node: node.ending for node in self.simulated.nodes.values() if node.ending is not None}
        return {node: ending.exit_code for node, ending in ended.items() if ending.exit_code is not None}

    @property
    def said(self) -> list[str]:
        return [line for node in self.simulated.nodes.values() for line in node.said]

    @property
    def rows(self) -> list[bytes]:
        return [row for node in self.simulated.nodes.values() for row in node.rows]

    def start(self, node: int) -> Broker:
        self.node(node).start()
        return self.brokers[node]

    def kill(self, node: int) -> None:
        self.node(node).kill()

    def deafen(self, *nodes: int) -> None:
        """Let nobody's frames reach these nodes, and everybody's the others."""
        names = [CLIENTS, CONTROLLER, *map(str, range(3))]
        cut: dict[str, list[Link]] = defaultdict(list)
        for node in nodes:
            cut[str(node)] = [Link(name, str(node)) for name in names if name != str(node)]
        for name, node_ in self.simulated.nodes.items():
            node_.cut(tuple(cut[name]))

    def lose_replica(self, node: int) -> None:
        for path in [path for path in self.disk(node).paths() if path.startswith(f"{T}/")]:
            self.disk(node).remove(path)

    def log_bytes(self, node: int) -> bytes:
        return self.disk(node).read_bytes(f"{T}/{0:020d}.log")

    def call(self, node: int, key: ApiKey, version: int, body: Message) -> list[Any]:
        """What has been answered at once; answers that come later are added."""
        answers: list[Any] = []
        Caller(self.clients, listener(NodeId(node)), str(node), "test").call(key, version, body, 30, answers.append)
        self.world.sleep(0)
        return answers

    def create_topic(self) -> None:
        topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [0, 1, 2])])
        (answer,) = self.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic]))
        assert answer.topics[0].error_code == 0
        self.world.sleep(1)

    def produce(self, node: int, value: bytes, **fields: Any) -> list[tuple[int, int]]:
        answers = self.call(node, ApiKey.PRODUCE, 9, produce_request("t", batch(value), **fields))
        return [(one.error_code, one.base_offset) for a in answers for one in a.responses[0].partition_responses]
