"""Real Kafka as a target: every release as local Java processes, without Docker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.model import CONTROLLER, Link, NodeId, Offset, TopicPartition, node_id
from harness.target import Capability, ClusterView, Receipt, ReplicaView, TopicSpec
from harness.targets.kafka import shim
from harness.targets.kafka.clocks import KafkaClocks
from harness.targets.kafka.disks import NEEDS_SHIM
from harness.targets.kafka.electing import Electing
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.looking import Looking
from harness.targets.kafka.nodes import KafkaNode
from harness.targets.kafka.scene import LocalScene
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.topics import TIMEOUT_S, is_whole
from harness.targets.kafka.watching import Watching
from harness.targets.node_process import Spawned
from harness.targets.replica_logs import replica_log_rows


def capabilities() -> frozenset[Capability]:
    """What can be done to real Kafka on this machine."""
    return frozenset(Capability) if shim.is_available() else frozenset(Capability) - NEEDS_SHIM


class ProcessTarget(KafkaClocks):
    """Implements :class:`harness.target.Target`.

    Args:
        directory: where the nodes keep their files; created when missing.
        brokers: how many brokers, with the ids 0, 1, 2 ...
        distribution: the release that they run.
        settings: of every broker.
        spawned: told the name and the process id of each process right after its start.
    """

    name = "process"

    def __init__(
        self,
        directory: Path,
        brokers: int,
        distribution: Distribution,
        settings: KafkaSettings,
        spawned: Spawned = lambda name, pid: None,
    ) -> None:
        super().__init__(directory, brokers, distribution, settings, spawned)
        self.capabilities = capabilities()
        self._release = distribution.release
        self._topics: set[str] = set()

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        super().start()
        self.watching.start()

    def stop(self) -> None:
        """See :class:`harness.target.Target`. What can be looked at is looked at once more."""
        for node in self._nodes.values():
            node.resume()
        if self._layout is not None:
            self.watching.stop()
            self.looking.close()
        super().stop()

    def _spawn(self, process: KafkaNode) -> None:
        begun_ns = time.monotonic_ns()
        super()._spawn(process)
        self.watching.started(process.name, process.incarnation, begun_ns)

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        self._create_topic(topic)
        self._topics.add(topic.name)
        complaint = f"topic {topic.name!r} does not have a leader and a full ISR everywhere"
        self._await(complaint, lambda: is_whole(self, topic), TIMEOUT_S)

    # ------------------------------------------------------------------------------------------------ looking

    @cached_property
    def looking(self) -> Looking:
        """How the running cluster is looked at."""
        logs = {name: self._node(name).log for name in self.brokers()}
        return Looking(LocalScene(self.layout, self._release, self._node(CONTROLLER).data_dir, logs))

    @cached_property
    def watching(self) -> Watching:
        """How the running cluster is watched."""
        disks = {name: self._node(name).data_dir for name in self.brokers()}
        return Watching(
            self.looking,
            self._directory / "watch",
            disks,
            clock_offset_ms=lambda node: self._shims[node].clock_offset_ms,
            is_up=lambda node: self._node(node).exists and not self._node(node).is_stopped,
        )

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        return self.looking.view()

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        process = self._node(node)
        return self.looking.replica(node, partition) if process.exists and not process.is_stopped else None

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        return self.looking.committed(group)

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.target.Target`."""
        Electing(self.looking).elect(partition, leader, unclean=unclean)

    # ------------------------------------------------------------------------------------------------ links

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.target.Target`."""
        self.proxies.cut(links)

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.target.Target`."""
        self.proxies.mend(links)

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.target.Target`."""
        return self.proxies.is_cut(link)

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.target.Target`."""
        return self.proxies.carries(link)

    # ------------------------------------------------------------------------------------------------ evidence

    def timeline(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        return self.watching.rows(run)

    def replica_logs(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`. Of the topics that were created with it, not of Kafka's own."""
        for name in self.brokers():
            for row in replica_log_rows(node_id(name), self._node(name).data_dir):
                if row["topic"] in self._topics:
                    yield {"run": run, **row}

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        for node in self._nodes.values():
            for name, log in node.logs.items():
                if log.exists():
                    shutil.copyfile(log, directory / name)
