"""The target that runs the built-in brokers as processes on loopback addresses."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.broker.secret import Secret
from harness.broker.settings import NodeConfig, NodeFaults, Settings
from harness.client_properties import Access
from harness.clients.topics import create_topic
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
from harness.errors import EnvironmentFault, NoAnswer
from harness.history.blocks import Block
from harness.model import CONTROLLER_ID, NodeId, Offset, TopicPartition, node_id, node_name
from harness.observations import OBSERVATIONS
from harness.replication.knobs import Knobs
from harness.target import ClusterView, Leadership, Receipt, ReplicaView, TopicSpec
from harness.targets.addresses import Addresses
from harness.targets.awaiting import await_that
from harness.targets.builtin_disks import BuiltinDisks
from harness.targets.builtin_links import BuiltinLinks
from harness.targets.cluster_kind import ClusterKind
from harness.targets.controller_tail import ControllerTail, GrowingFile
from harness.targets.leftovers import StartJournal
from harness.targets.node_evidence import folder_of, timeline_rows, wire_rows
from harness.targets.node_logs import copy_logs
from harness.targets.node_process import NodeProcess, Spawned
from harness.targets.node_status import ELECTED, committed, partition_of, partition_view, replica_view
from harness.targets.replica_logs import ReplicaDisk, replica_log_blocks

READY_TIMEOUT_S = 60.0
"""How long the nodes may take from spawn to an answer, and the brokers to register and to learn of each other."""

_TOPIC_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 15.0
_POLL_S = 0.02
"""The exit status of a broker that has exited by itself: because of its storage, or as its protocol requires."""


class BuiltinTarget(BuiltinDisks, BuiltinLinks):
    """Implements :class:`harness.target.Target`.

    Args:
        directory: where the nodes keep their files; created when missing.
        brokers: how many brokers, with the ids 0, 1, 2 ...
        knobs: the replication protocol's generation.
        settings: Kafka's settings, for every broker.
        spawned: called with the name and process id of each node right after its start.
    """

    name = "builtin"
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

    def __init__(
        self,
        directory: Path,
        brokers: int,
        knobs: Knobs,
        settings: Settings,
        spawned: Spawned = lambda name, pid: None,
    ) -> None:
        ids = [CONTROLLER_ID, *map(NodeId, range(brokers))]
        secret = Secret.draw()
        nodes = [NodeProcess(node, directory / folder_of(node_name(node)), secret, spawned) for node in ids]
        super().__init__(nodes, secret, settings.log_dirs_count)
        self._directory = directory
        self._knobs = knobs
        self._settings = settings
        self._is_tapped = False
        self._offsets_ms: dict[str, int] = {}
        self._last_seen: dict[str, dict[str, Any]] = {}
        self._decisions = ControllerTail(GrowingFile(self._node(node_name(CONTROLLER_ID)).timeline))

    # ------------------------------------------------------------------------------------------------ life

    def tap(self) -> None:
        """See :class:`harness.controls.WireTaps`."""
        self._is_tapped = True

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        assert self._addresses is None, "a target starts once"
        self._addresses = Addresses.claim(len(self.brokers()))
        for node in self._nodes.values():
            node.spawn(self._config(node))
        self._await("the brokers have not all registered and heard of each other", self._all_know_all, READY_TIMEOUT_S)

    def stop(self) -> None:
        """See :class:`harness.target.Target`."""
        self.close_witnesses()
        running = [node for node in self._nodes.values() if node.exists]
        for node in running:
            with suppress(EnvironmentFault):
                node.signal(signal.SIGCONT)
        for node in running:
            with suppress(EnvironmentFault):
                self._last_seen[node.name] = self._ask(node.name, op="status")
        for node in running:
            with suppress(EnvironmentFault):
                node.signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for node in running:
            node.wait(max(0.0, deadline - time.monotonic()))
            node.kill()
        if self._addresses is not None:
            self._addresses.release()

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return [f"process {pid}" for pid in self.pids().values()]

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        create_topic(Access(self.bootstrap()), topic, _TOPIC_TIMEOUT_S)
        names = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        self._await(
            f"topic {topic.name!r} does not have a leader and a full ISR everywhere",
            lambda: all(map(self._is_whole, names)),
            _TOPIC_TIMEOUT_S,
        )

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return ",".join(f"{host}:{port}" for host, port in map(self.addresses.listener, map(node_id, self.brokers())))

    # ------------------------------------------------------------------------------------------------ observation

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        try:
            status = self._look(node_name(CONTROLLER_ID))
        except NoAnswer:
            return ClusterView(time.monotonic_ns(), (), {})
        live = tuple(NodeId(broker["id"]) for broker in status["brokers"] if broker["live"])
        partitions = {partition_of(row): partition_view(row) for row in status["partitions"]}
        return ClusterView(status["monotonic_ns"], live, partitions)

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """See :class:`harness.observations.KnowsLeaders`: from the file of the controller's timeline."""
        return self._decisions.leaders()

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        try:
            rows = self._look(node)["replicas"]
        except NoAnswer:
            return None
        return next((replica_view(row) for row in rows if partition_of(row) == partition), None)

    # ------------------------------------------------------------------------------------------------ processes

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).kill()

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        process = self._resting(node)
        process.spawn(self._config(process))
        self._await(f"node {node} has not come up", lambda: self._came_up(node), READY_TIMEOUT_S)

    def start_and_die(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        process = self._resting(node)
        process.spawn(replace(self._config(process), faults=replace(self._faults(node), dies_while_loading=True)))
        process.let_end()
        self._await(f"node {node} has not died", lambda: not process.exists, READY_TIMEOUT_S)

    def _came_up(self, node: str) -> bool:
        """Whether the node answers, or has already exited by itself."""
        return self.is_running(node).holds or self.has_exited(node).holds

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        process = self._node(node)
        if not process.exists:
            return Receipt(False, f"node {node}: process {process.pid} is gone, {process.last_words()}")
        try:
            self._look(node)
        except NoAnswer:
            return Receipt(False, f"node {node}: process {process.pid} exists but does not answer")
        return Receipt(True, f"node {node}: process {process.pid} answers")

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).pause()

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        process = self._node(node)
        if process.exists:
            process.resume()
            self._apply_faults(node)

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        process = self._node(node)
        return Receipt(process.is_stopped, f"node {node}: process {process.pid} is in state {process.state()}")

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        process = self._node(node)
        process.signal(signal.SIGTERM)
        if not process.wait(_STOP_TIMEOUT_S):
            raise EnvironmentFault(f"node {node} has not shut down in {_STOP_TIMEOUT_S:g} s: {process.log_tail()}.")

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        process = self._node(node)
        if process.exists:
            return Receipt(False, f"node {node}: process {process.pid} exists, in state {process.state()}")
        ended = process.exit_status == 0
        return Receipt(ended, f"node {node}: process {process.pid} is gone, {process.last_words()}")

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        process = self._node(node)
        halted = (process.exit_status or 0) > 0
        how = process.last_words() if not process.exists else "it exists"
        return Receipt(halted, f"node {node}: process {process.pid}: {how}")

    # ------------------------------------------------------------------------------------------------ administration

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        where = {"topic": partition.topic, "partition": partition.partition}
        answer = self._ask(node_name(CONTROLLER_ID), op="elect", leader=leader, unclean=unclean, **where)
        if answer["error_code"] not in ELECTED:
            raise EnvironmentFault(f"the controller refuses to elect a leader of {partition}: {answer['error_name']}.")

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        statuses = []
        for node in self.brokers():
            with suppress(NoAnswer):
                statuses.append(self._look(node))
        return committed(statuses, group)

    # ------------------------------------------------------------------------------------------------ clock

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`."""
        self._node(node)
        self._offsets_ms[node] = offset_ms
        if self._can_obey(node):
            self._ask(node, op="offset_clock", ms=offset_ms)

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`."""
        before_ns = time.time_ns()
        there_ms = int(self._look(node)["wall_ms"])
        return there_ms - (before_ns + time.time_ns()) // 2_000_000

    # ------------------------------------------------------------------------------------------------ evidence

    def timeline(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        for node in self._nodes.values():
            for row in timeline_rows(node.node, node.timeline, node.data_dir, self._last_seen.get(node.name)):
                yield {"run": run, **row}

    def wire(self) -> Iterator[dict[str, Any]]:
        """See :class:`harness.controls.WireTaps`."""
        return (row for node in self._nodes.values() for row in wire_rows(node.node, node.wire))

    def replica_logs(self) -> Iterator[Block]:
        """See :class:`harness.target.Target`."""
        return replica_log_blocks(ReplicaDisk(node_id(name), self._node(name).data_dir) for name in self.brokers())

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        copy_logs(self._directory, directory)

    # ------------------------------------------------------------------------------------------------ internals

    def _apply_faults(self, node: str) -> None:
        """Send a node its faults; a dead or paused one gets them at its restart or resumption."""
        if not self._can_obey(node):
            return
        faults = self._faults(node)
        self._ask(node, op="cut", links=[list(link) for link in faults.cut])

    def _faults(self, node: str) -> NodeFaults:
        cut = tuple(sorted(link for link in self._cut if node in link))
        return NodeFaults(
            cut, self._limits[node].get(""), self._offsets_ms.get(node, 0), free_within=self._within(node)
        )

    def _config(self, node: NodeProcess) -> NodeConfig:
        addresses = self.addresses
        return NodeConfig(
            node_id=node.node,
            cluster_id=f"seawall-{addresses.subnet}",
            listener=addresses.listener(node.node),
            control=addresses.control(node.node),
            controller=addresses.listener(CONTROLLER_ID),
            names={addresses.host(other.node): other.name for other in self._nodes.values()},
            data_dir=str(node.data_dir),
            timeline=str(node.timeline),
            incarnation=node.incarnation + 1,
            knobs=self._knobs,
            settings=self._settings,
            faults=self._faults(node.name),
            wire=str(node.wire) if self._is_tapped else "",
        )

    def _await(self, complaint: str, holds: Callable[[], bool], timeout_s: float) -> None:
        await_that(holds, complaint, self._nodes.values(), timeout_s, _POLL_S)

    def _all_know_all(self) -> bool:
        return all(map(self._knows_all, self._nodes.values()))

    def _knows_all(self, node: NodeProcess) -> bool:
        """Whether a Metadata answer of ``node`` has every broker, which a broker learns after its registration."""
        if not node.exists:
            raise EnvironmentFault(
                f"node {node.name} ended at once, with exit status {node.exit_status}: {node.log_tail()}"
            )
        try:
            status = self._look(node.name)
        except NoAnswer:
            return False
        return node.node == CONTROLLER_ID or status["known_brokers"] == list(map(node_id, self.brokers()))

    def _is_whole(self, name: TopicPartition) -> bool:
        partition = self.view().partitions.get(name)
        if partition is None or set(partition.isr) != set(partition.replicas):
            return False
        seen = [self.replica(node_name(node), name) for node in partition.replicas]
        return all(replica is not None and replica.leader == partition.leader for replica in seen)


def _make(
    directory: Path, brokers: int, knobs: Knobs, settings: Settings, *, seed: int, journal: StartJournal
) -> BuiltinTarget:
    del seed  # real processes are not reproducible
    return BuiltinTarget(directory, brokers, knobs, settings, journal.node_started)


KIND = ClusterKind(BuiltinTarget.name, BuiltinTarget.controls, _make)
"""The brokers of this project as processes, in real time."""
