"""The same broker and controller classes, driven by a network and a clock of memory instead of a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.broker.broker import Broker
from harness.broker.caller import Caller
from harness.broker.controller_node import ControllerNode
from harness.broker.files import Disk
from harness.broker.settings import NodeConfig, Settings
from harness.broker.surroundings import Surroundings
from harness.broker.timeline import Timeline
from harness.model import CLIENTS, CONTROLLER_ID, NodeId, TopicPartition, node_name
from harness.replication.knobs import generation
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from tests.harness.broker.fakes import FakeNetwork, World
from tests.harness.broker.raw_client import batch, produce_request

NAMES = {f"10.0.0.{node}": node_name(NodeId(node)) for node in (0, 1, 2, CONTROLLER_ID)}
T = TopicPartition("t", 0)


class NodeClock:
    """The world's time, and a wall clock that is off by ``offset_ms``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.offset_ms = 0

    def monotonic_ns(self) -> int:
        return self._world.monotonic_ns()

    def wall_ms(self) -> int:
        return self._world.wall_ms() + self.offset_ms


class VirtualCluster:
    def __init__(self, directory: Path, knobs: str = "3.7", **settings: Any) -> None:
        self.world = World()
        self.knobs = knobs
        self.settings = Settings(min_insync_replicas=2, default_replication_factor=3, **settings)
        self.said: list[str] = []
        self.directory = directory
        self.rows: list[bytes] = []
        self.networks: dict[int, FakeNetwork] = {}
        self.disks: dict[int, Disk] = {}
        self.clocks: dict[int, NodeClock] = {}
        self.exit_codes: dict[int, int] = {}
        self.incarnations = dict.fromkeys((0, 1, 2, CONTROLLER_ID), -1)
        self.controller = ControllerNode(*self.surroundings(CONTROLLER_ID))
        self.controller.start()
        self.brokers = {broker: self.start(broker) for broker in (0, 1, 2)}
        self.clients = FakeNetwork(self.world, CLIENTS)
        self.world.advance(1)

    def surroundings(self, node: int) -> tuple[NodeConfig, Surroundings]:
        self.incarnations[node] += 1
        config = NodeConfig(
            node_id=NodeId(node), cluster_id="virtual", listener=(f"10.0.0.{node}", 9092), control=("", 0),
            controller=(f"10.0.0.{CONTROLLER_ID}", 9092), names=NAMES, data_dir="", timeline="",
            incarnation=self.incarnations[node], parent_pid=0, knobs=generation(self.knobs),
            settings=self.settings,
        )  # fmt: skip
        self.networks[node] = network = FakeNetwork(self.world, node_name(NodeId(node)))
        self.disks[node] = disk = Disk(self.directory / str(node))
        self.clocks[node] = clock = NodeClock(self.world)
        timeline = Timeline(NodeId(node), self.incarnations[node], clock, self.rows.append)

        def halt(exit_code: int) -> None:
            self.exit_codes[node] = exit_code
            network.call_later(0.05, network.die)  # what was already sent still leaves

        return config, Surroundings(network, disk, clock, timeline, self.said.append, halt)

    def start(self, node: int) -> Broker:
        broker = Broker(*self.surroundings(node))
        broker.start()
        return broker

    def call(self, node: int, key: ApiKey, version: int, body: Message) -> list[Any]:
        answers: list[Any] = []
        Caller(self.clients, (f"10.0.0.{node}", 9092), str(node), "test").call(key, version, body, 30, answers.append)
        self.world.pump()
        return answers

    def create_topic(self) -> None:
        topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [0, 1, 2])])
        (answer,) = self.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic]))
        assert answer.topics[0].error_code == 0
        self.world.advance(1)

    def produce(self, node: int, value: bytes, **fields: Any) -> list[tuple[int, int]]:
        answers = self.call(node, ApiKey.PRODUCE, 9, produce_request("t", batch(value), **fields))
        return [(one.error_code, one.base_offset) for a in answers for one in a.responses[0].partition_responses]
