"""A second or more of a busy cluster to which everything happens that can; as a program, prints its digest.

``python -m tests.harness.simulation.stack.chaos_story SEED GENERATION`` under any ``PYTHONHASHSEED``.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from harness.broker.settings import Settings
from harness.client_ports import ClientContext
from harness.client_tasks.final_reader import FinalReader
from harness.client_tasks.scheduled_client import OrderedClient
from harness.history.recorder import Recorder
from harness.model import CLIENTS, CONTROLLER, Link, NodeId, TopicPartition
from harness.replication.knobs import generation
from harness.runner.archive import KeptArchive
from harness.runner.run_clients import RunClients
from harness.simulation.stack.cluster import Request, SimulatedCluster
from harness.simulation.stack.links import LinkConditions
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from workloads.unique_sends import UniqueSends, UniqueSendsParameters

PARTITIONS = [TopicPartition("ledger", 0), TopicPartition("ledger", 1)]
WEATHER = LinkConditions(delay_ns=(50_000, 2_000_000), loss=0.0005)
_BOOTSTRAP = "10.0.0.10:9092,10.0.0.11:9092,10.0.0.12:9092"


class Parameters(UniqueSendsParameters):
    producers: int = 2
    consumers: int = 1
    rate: float = 100.0
    delivery_timeout_s: float = 1.0


def run_clients(
    cluster: SimulatedCluster,
    recorder: Recorder,
    seed: int,
    parameters: UniqueSendsParameters,
    partitions: Sequence[TopicPartition] = PARTITIONS,
) -> RunClients:
    """The clients of a run on ``cluster``, with unique_sends."""
    context = ClientContext(lambda: SimulatedClients(cluster, _BOOTSTRAP), partitions, recorder, seed)
    workload = UniqueSends(parameters, context)
    return RunClients(workload, OrderedClient(context, parameters.size), FinalReader(context, parameters.isolation))


class Chaos:
    """A cluster with a topic and a load, and one thing after another that happens to it, all drawn from one seed.

    ``plugged_in``: nobody ever loses power.
    """

    def __init__(self, seed: int, knobs: str = "4.1", *, plugged_in: bool = False) -> None:
        self.world = VirtualScheduler(seed, WEATHER)
        settings = Settings(min_insync_replicas=2, default_replication_factor=3, broker_session_timeout_ms=400)
        self.cluster = SimulatedCluster(self.world, 3, generation(knobs), settings)
        self.archive = KeptArchive("chaos")
        self._recorder = self.archive.recorder(self.world)
        self.clients = run_clients(self.cluster, self._recorder, seed, Parameters())
        self.digest = hashlib.sha256()
        self.world.links.watch = self._see
        self._drawn = random.Random(f"{seed}:chaos")
        self._plugged_in = plugged_in
        self.cluster.start()
        self.world.sleep(0.2)
        self._create_topic()

    def rage(self, seconds: float) -> None:
        """Let harm happen every now and then; the load goes on."""
        self.clients.workload.start()
        self.world.sleep(0.2)
        until_ns = self.world.now_ns + round(seconds * 1e9)
        while self.world.now_ns < until_ns:
            self._drawn.choice(self._harms())(self._drawn.choice(self.cluster.brokers()))
            self.world.sleep(self._drawn.random() * 0.3)

    def heal(self) -> None:
        """Undo everything, stop the load, and give the cluster time to get whole."""
        for node in self.cluster.nodes.values():
            node.cut(())
            node.disk.free_bytes = None
            node.clock.wall_offset_ms = 0
            if not node.lives:
                node.start()
            node.thaw()
        self.world.links.conditions = LinkConditions()
        self.clients.stop()
        self.world.sleep(8)

    def everything(self) -> str:
        """A digest of every frame, timeline, log line, disk and row of the history."""
        for node in self.cluster.nodes.values():
            for line in (*node.rows, *(said.encode() for said in node.said)):
                self.digest.update(line)
            for path in node.disk.paths():
                self.digest.update(path.encode() + node.disk.read_bytes(path))
        self.digest.update(repr(self.history()).encode())
        return self.digest.hexdigest()

    def history(self) -> list[dict[str, Any]]:
        """What the clients have done and seen until now."""
        self._recorder.flush()
        return self.archive.history

    def _see(self, link: Link, frame: memoryview) -> None:
        self.digest.update(f"{self.world.now_ns} {link} ".encode())
        self.digest.update(frame)

    def _create_topic(self) -> None:
        assignments = [CreatableReplicaAssignment(number, [number, 2, 1 - number]) for number in range(2)]
        request = CreateTopicsRequest([CreatableTopic("ledger", -1, -1, assignments)])
        self.cluster.ask("0", Request(ApiKey.CREATE_TOPICS, 5, request))
        self.world.sleep(0.1)

    def _harms(self) -> list[Callable[[SimulatedNode], None]]:
        harms: list[Callable[[SimulatedNode], None]]
        harms = [self._kill_or_start, self._kill_or_start, self._pause, self._cut, self._clock]
        return harms if self._plugged_in else [*harms, self._lose_power]

    def _kill_or_start(self, node: SimulatedNode) -> None:
        if node.lives:
            node.kill()
        else:
            node.start()

    def _lose_power(self, node: SimulatedNode) -> None:
        node.lose_power()
        node.start()

    def _pause(self, node: SimulatedNode) -> None:
        (node.freeze if node.runs else node.thaw)()

    def _cut(self, node: SimulatedNode) -> None:
        others = ["0", "1", "2", CLIENTS, CONTROLLER]
        node.cut(tuple(Link(other, node.name) for other in others if self._drawn.random() < 0.3))

    def _clock(self, node: SimulatedNode) -> None:
        node.clock.wall_offset_ms = self._drawn.choice([0, 60_000, -60_000])


def leader_of(cluster: SimulatedCluster, partition: TopicPartition) -> NodeId:
    """Who leads, as the controller says."""
    rows = cluster.nodes[CONTROLLER].status()["partitions"]
    return next(NodeId(row["leader"]) for row in rows if (row["topic"], row["partition"]) == partition)


if __name__ == "__main__":
    chaos = Chaos(int(sys.argv[1]), sys.argv[2])
    chaos.rage(2.0)
    chaos.heal()
    complete = chaos.clients.final_read.read(10.0)
    sys.stdout.write(f"{chaos.everything()} {chaos.world.events} {len(chaos.history())} {complete}\n")
