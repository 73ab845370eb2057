"""The target that runs the built-in brokers in virtual time, in this process.

Time passes while the runner sleeps on :attr:`SimulatedTarget.clock`, and while a probe waits for its answer. A node
answers the harness at once: the control channel is no part of the system under test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from harness.broker.settings import NodeFaults, Settings
from harness.broker.wire_tap import exchanges
from harness.client_ports import Clients
from harness.controls import (
    ConnectionStalls,
    DiskContents,
    DiskSpace,
    Elections,
    Links,
    LogDirectories,
    Power,
    Processes,
    WallClocks,
    WireTaps,
)
from harness.errors import EnvironmentFault
from harness.history.blocks import Block
from harness.model import CONTROLLER, NodeId, Offset, TopicPartition, node_id, node_name
from harness.observations import OBSERVATIONS
from harness.replication.knobs import Knobs
from harness.simulation.stack.cluster import Request, SimulatedCluster, listener
from harness.simulation.stack.links import LinkConditions
from harness.simulation.stack.node import SimulatedNode
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.target import ClusterView, Leadership, Receipt, ReplicaView, TopicSpec
from harness.targets.cluster_kind import ClusterKind
from harness.targets.controller_tail import ControllerTail, GrowingList
from harness.targets.leftovers import StartJournal
from harness.targets.node_evidence import NODE_DATA, NODE_TIMELINE, folder_of, timeline_rows
from harness.targets.node_status import ELECTED, committed, partition_of, partition_view, replica_view
from harness.targets.replica_logs import ReplicaDisk, replica_log_blocks
from harness.targets.simulated_disks import SimulatedDisks
from harness.targets.simulated_links import SimulatedLinks
from harness.targets.simulated_nodes import state_of
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_READY_TIMEOUT_S = 15.0
_PING_TIMEOUT_S = 0.15
_CREATE_TOPICS_VERSION = 5


class SimulatedTarget(SimulatedDisks, SimulatedLinks):
    """Implements :class:`harness.targets.cluster_kind.InVirtualTime`.

    Args:
        directory: for the evidence after the cluster has stopped; created when needed.
        cluster: the nodes, of which none has been started.
        log_dirs_count: how many log directories each broker has.

    Attributes:
        cluster: the nodes.
        clock: virtual time; sleeping on it makes it pass.
    """

    name = "simulated"
    controls = OBSERVATIONS.union(
        {
            ConnectionStalls,
            DiskContents,
            DiskSpace,
            Elections,
            Links,
            LogDirectories,
            Power,
            Processes,
            WallClocks,
            WireTaps,
        }
    )

    def __init__(self, directory: Path, cluster: SimulatedCluster, log_dirs_count: int = 1) -> None:
        super().__init__(cluster, log_dirs_count)
        self._directory = directory
        self._last_seen: dict[str, dict[str, Any]] = {}
        self._is_laid_out = False
        self._decisions = ControllerTail(GrowingList(self._node(CONTROLLER).rows))

    @classmethod
    def made(
        cls,
        directory: Path,
        brokers: int,
        knobs: Knobs,
        settings: Settings,
        *,
        seed: int = 0,
        conditions: LinkConditions | None = None,
    ) -> Self:
        """A target with a cluster of its own.

        Args:
            directory: as above.
            brokers: how many brokers, with the ids 0, 1, 2 ...
            knobs: the replication protocol's generation.
            settings: Kafka's settings, for every broker.
            seed: of all random choices.
            conditions: how links carry frames.
        """
        clock = VirtualScheduler(seed, conditions or LinkConditions())
        return cls(directory, SimulatedCluster(clock, brokers, knobs, settings), settings.log_dirs_count)

    # ------------------------------------------------------------------------------------------------ life

    def tap(self) -> None:
        """See :class:`harness.controls.WireTaps`."""
        for node in self.cluster.nodes.values():
            node.is_tapped = True

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        self.cluster.start()
        if not self.clock.sleep_until(self._all_registered, _READY_TIMEOUT_S):
            raise EnvironmentFault(f"the brokers have not all registered within {_READY_TIMEOUT_S:g} s.")

    def stop(self) -> None:
        """See :class:`harness.target.Target`."""
        living = [node for node in self.cluster.nodes.values() if node.lives]
        for node in living:
            node.thaw()
        for node in living:
            self._last_seen[node.name] = json.loads(json.dumps(node.status()))
        for node in living:
            node.shut_down()

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`. Nothing remains outside this process."""
        return []

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        request = Request(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, CreateTopicsRequest([_creatable(topic)]))
        answer = cast("CreateTopicsResponse | None", self.cluster.ask(self._some_broker(), request))
        refusal = "no answer" if answer is None else answer.topics[0].error_message or answer.topics[0].error_code
        if refusal:
            raise EnvironmentFault(f"topic {topic.name!r} was not created: {refusal}.")
        names = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        if not self.clock.sleep_until(lambda: all(map(self._is_whole, names)), _READY_TIMEOUT_S):
            raise EnvironmentFault(f"topic {topic.name!r} does not have a leader and a full ISR everywhere.")

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return ",".join(f"{host}:{port}" for host, port in map(listener, map(node_id, self._brokers())))

    def new_clients(self) -> Clients:
        """See :class:`harness.targets.cluster_kind.InVirtualTime`."""
        return SimulatedClients(self.cluster, self.bootstrap())

    # ------------------------------------------------------------------------------------------------ observation

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        controller = self._node(CONTROLLER)
        if not controller.runs:
            return ClusterView(self.clock.monotonic_ns(), (), {})
        status = controller.status()
        live = tuple(NodeId(broker["id"]) for broker in status["brokers"] if broker["live"])
        partitions = {partition_of(row): partition_view(row) for row in status["partitions"]}
        return ClusterView(status["monotonic_ns"], live, partitions)

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """See :class:`harness.observations.KnowsLeaders`: from the controller's timeline."""
        return self._decisions.leaders()

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        simulated = self._node(node)
        rows = simulated.status()["replicas"] if simulated.runs else ()
        return next((replica_view(row) for row in rows if partition_of(row) == partition), None)

    # ------------------------------------------------------------------------------------------------ processes

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).kill()

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        simulated = self._node(node)
        if simulated.lives:
            raise EnvironmentFault(f"node {node} cannot be restarted: it is running.")
        self._limit_again(node)
        simulated.start()
        self.clock.sleep(0)

    def start_and_die(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        simulated = self._resting(node)
        simulated.start(NodeFaults(dies_while_loading=True))
        self.clock.sleep_until(lambda: not simulated.lives, _READY_TIMEOUT_S)

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        simulated = self._node(node)
        return Receipt(simulated.runs, f"node {node} {state_of(simulated)}")

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._living(node).freeze()

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._living(node).thaw()

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        simulated = self._node(node)
        return Receipt(simulated.lives and not simulated.runs, f"node {node} {state_of(simulated)}")

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._running(node).shut_down()

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        ending = self._node(node).ending
        return Receipt(ending is not None and ending.exit_code == 0, f"node {node} {state_of(self._node(node))}")

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        ending = self._node(node).ending
        return Receipt(ending is not None and bool(ending.exit_code), f"node {node} {state_of(self._node(node))}")

    # ------------------------------------------------------------------------------------------------ clocks

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`."""
        self._node(node).clock.wall_offset_ms = offset_ms

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`."""
        return self._running(node).clock.wall_ms() - self.clock.wall_ms()

    # ------------------------------------------------------------------------------------------------ administration

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        request = {"topic": partition.topic, "partition": partition.partition, "leader": leader, "unclean": unclean}
        answer = self._running(CONTROLLER).operate("elect", request)
        if answer["error_code"] not in ELECTED:
            raise EnvironmentFault(f"the controller refuses to elect a leader of {partition}: {answer['error_name']}.")

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        running = (node for node in map(self._node, self.nodes()) if node.runs)
        return committed([node.status() for node in running], group)

    # ------------------------------------------------------------------------------------------------ evidence

    def timeline(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        for node in self.cluster.nodes.values():
            place = self._laid_out(node)
            seen = self._last_seen.get(node.name)
            for row in timeline_rows(node.node, place / NODE_TIMELINE, place / NODE_DATA, seen):
                yield {"run": run, **row}

    def wire(self) -> Iterator[dict[str, Any]]:
        """See :class:`harness.controls.WireTaps`."""
        return (row for node in self.cluster.nodes.values() for row in exchanges(node.node, node.wire))

    def replica_logs(self) -> Iterator[Block]:
        """See :class:`harness.target.Target`."""
        return replica_log_blocks(
            ReplicaDisk(node.node, self._laid_out(node) / NODE_DATA) for node in self.cluster.brokers()
        )

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        for node in self.cluster.nodes.values():
            (directory / f"{folder_of(node.name)}.log").write_text("".join(f"{line}\n" for line in node.said))

    def _laid_out(self, node: SimulatedNode) -> Path:
        """The directory of ``node``'s files; the first call writes those of every node."""
        if not self._is_laid_out:
            self._is_laid_out = True
            for each in self.cluster.nodes.values():
                place = self._directory / folder_of(each.name)
                each.disk.copy_to(place / NODE_DATA)
                (place / NODE_TIMELINE).write_bytes(b"".join(each.rows))
        return self._directory / folder_of(node.name)

    # ------------------------------------------------------------------------------------------------ internals

    def _all_registered(self) -> bool:
        return all(node.runs and node.status()["registered"] for node in self.cluster.brokers())

    def _is_whole(self, name: TopicPartition) -> bool:
        partition = self.view().partitions.get(name)
        if partition is None or set(partition.isr) != set(partition.replicas):
            return False
        seen = [self.replica(node_name(node), name) for node in partition.replicas]
        return all(replica is not None and replica.leader == partition.leader for replica in seen)


class SharedTarget(SimulatedTarget):
    """The target on a cluster that the caller has made and starts.

    Args:
        directory: as of :class:`SimulatedTarget`.
        cluster: the nodes, each with one log directory.
        bring_up: starts them; virtual time passes meanwhile.
    """

    def __init__(self, directory: Path, cluster: SimulatedCluster, bring_up: Callable[[], None]) -> None:
        super().__init__(directory, cluster)
        self._bring_up = bring_up

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        self._bring_up()


def _creatable(topic: TopicSpec) -> CreatableTopic:
    configs = [CreatableTopicConfig(name, value) for name, value in (topic.configs or {}).items()]
    if topic.assignment is None:
        return CreatableTopic(topic.name, topic.partitions, topic.replication_factor, configs=configs)
    assignments = [
        CreatableReplicaAssignment(number, list(map(int, replicas))) for number, replicas in enumerate(topic.assignment)
    ]
    return CreatableTopic(topic.name, -1, -1, assignments, configs)


def _make(
    directory: Path, brokers: int, knobs: Knobs, settings: Settings, *, seed: int, journal: StartJournal
) -> SimulatedTarget:
    del journal  # nothing is started outside this process
    return SimulatedTarget.made(directory, brokers, knobs, settings, seed=seed)


KIND = ClusterKind(SimulatedTarget.name, SimulatedTarget.controls, _make, in_virtual_time=True)
"""The same brokers inside this process, in virtual time."""
