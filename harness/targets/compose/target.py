"""Implements the target for a user's compose file: real Kafka in containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import chain, count
from pathlib import Path

from harness.broker.ledger import Cut
from harness.controls import Power, WallClocks
from harness.errors import EnvironmentFault
from harness.model import CONTROLLER, CONTROLLER_ID, NodeId
from harness.target import LogDamage, Receipt, TopicSpec
from harness.targets.compose.cluster import ComposeCluster
from harness.targets.compose.composed_nodes import Coming
from harness.targets.compose.container_clock import Clocks
from harness.targets.compose.containers import told_by
from harness.targets.compose.held_disk import HeldDisk
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.leftovers import NAME
from harness.targets.compose.observed_containers import ObservedContainers
from harness.targets.compose.overlay import (
    HELD_METADATA,
    METADATA,
    listener_for_controllers,
)
from harness.targets.compose.project import DATA, DISK, HOLDER, KEPT
from harness.targets.compose.shimmed import JAVA, Look
from harness.targets.kafka import flushed
from harness.targets.kafka.flushed import Flushed
from harness.targets.kafka.metadata_log import DIRECTORY
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.offline import offline_log_dirs
from harness.targets.kafka.releases import Metadata
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.timeline_sampler import TimelineSampler
from harness.targets.kafka.topics import create_assigned
from harness.targets.node_disk import in_words

_ZOOKEEPER = "It runs ZooKeeper."
_READABLE = ("chmod", "--recursive", "a+rwX", HELD_METADATA)


class ComposeTarget(ComposeCluster):
    """Implements :class:`harness.target.Target`. Its arguments are those of :class:`ComposeCluster`."""

    name = NAME

    def __init__(
        self,
        directory: Path,
        kafka: InspectedStack,
        settings: KafkaSettings,
        coming: Coming = lambda project: None,
    ) -> None:
        super().__init__(directory, kafka, settings, coming)
        self.controls = kafka.controls
        self._dropped: dict[str, tuple[int, list[Cut]]] = {}

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`. Directories formatted by an image count as flushed."""
        super().start()
        if Power in self.controls:
            for node in self._shim_directories():
                self.sync_disk(node)
        self.sampler.start()

    def stop(self) -> None:
        """See :class:`harness.target.Target`. The sampler observes the nodes a last time."""
        if self._project is None:
            return
        with ExitStack() as last_things_first:
            last_things_first.callback(super().stop)
            if self._nodes:
                last_things_first.callback(self.observation.close)
                last_things_first.callback(self.sampler.stop)
                for node in self._nodes.values():
                    node.resume()

    def _shimmed(self, node: str, directory: Path) -> tuple[dict[str, str], list[str]]:
        if Power not in self.controls:
            return Clocks.additions(directory)
        if node == CONTROLLER:
            return Clocks.additions(directory, METADATA, f"{METADATA}/{KEPT}")
        return Clocks.additions(directory, f"{DISK}/{DATA}", f"{DISK}/{KEPT}")

    def _started(self, node: str, begun_ns: int) -> None:
        super()._started(node, begun_ns)
        self.sampler.started(node, self._node(node).incarnation, begun_ns)

    def _create_topic(self, topic: TopicSpec) -> None:
        bootstrap = ",".join(f"{host}:{port}" for host, port in map(self.ports.address, self.brokers()))
        create_assigned(bootstrap, topic, [broker.kafka_id for broker in self._file.brokers])

    # ------------------------------------------------------------------------------------------------ clocks

    def _look_at(self, node: str) -> Look:
        del node
        return JAVA

    def _why_no_clock(self, node: str) -> str:
        return self._kafka.lacks[WallClocks] if node != CONTROLLER else _ZOOKEEPER

    def _shim_directories(self) -> Mapping[str, Path]:
        kafkas = {one.name for one in self._file.kafkas}
        return {
            node: self._directory / services[0] / "shim"
            for node, services in self._file.nodes.items()
            if kafkas.issuperset(services) and WallClocks in self.controls
        }

    # ------------------------------------------------------------------------------------------------ observation

    @cached_property
    def observation(self) -> ClusterObservation:
        """Observes the running cluster."""
        return ClusterObservation(
            ObservedContainers(
                release=self._kafka.release,
                broker_names=self.brokers(),
                controllers=self._controllers(),
                asks_controllers=CONTROLLER not in self.nodes() or listener_for_controllers(self._file) is not None,
                ports=self.ports,
                numbering=self.numbering,
                metadata_dirs=self._metadata_dirs(),
            )
        )

    def _controllers(self) -> Sequence[str]:
        if CONTROLLER in self.nodes():
            return [CONTROLLER]
        return [name for name, broker in zip(self.brokers(), self._file.brokers, strict=True) if broker.is_controller]

    @cached_property
    def sampler(self) -> TimelineSampler:
        """Samples the timeline of the running cluster."""
        return TimelineSampler(
            self.observation,
            self._directory / "watch",
            {name: self._disk(name) for name in self.brokers()},
            clock_offset_ms=self._wanted_offset_ms,
            is_up=self._goes_on,
        )

    def _wanted_offset_ms(self, node: str) -> int:
        return self.clocks.wanted_ms(node) if node in self._shim_directories() else 0

    # ------------------------------------------------------------------------------------------------ disks

    def wipe_disk(self, node: str) -> None:
        """See :class:`harness.controls.DiskContents`."""
        self._resting(node)
        self.volumes.wipe(self._broker(node))

    def is_disk_empty(self, node: str) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        return self.volumes.is_empty(self._broker(node))

    def damage_log(self, node: str, damage: LogDamage) -> None:
        """See :class:`harness.controls.DiskContents`."""
        self._resting(node)
        self.volumes.damage(self._broker(node), damage)

    def is_log_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        return self.volumes.is_damaged(self._broker(node), damage)

    def sync_disk(self, node: str) -> None:
        """See :class:`harness.controls.Power`. Without power losses everything counts as flushed."""
        if Power in self.controls:
            for disk, ledger in self._disks(node):
                flushed.sync(disk, ledger)

    # ------------------------------------------------------------------------------------------------ power

    def lose_power(self, node: str) -> None:
        """See :class:`harness.controls.Power`. A broker's copy of KRaft's metadata log is spared."""
        one = self._node(node)
        for disk, ledger in self._disks(node):
            Flushed(disk, ledger).refuse_strangers()
        one.kill()
        cuts = [cut for disk, ledger in self._disks(node) for cut in Flushed(disk, ledger).lose()]
        self._dropped[node] = (one.incarnation, cuts)

    def has_lost_power(self, node: str) -> Receipt:
        """See :class:`harness.controls.Power`."""
        one, dead = self._node(node), self.is_dead(node)
        incarnation, cuts = self._dropped.get(node, (None, []))
        if not dead.holds or incarnation != one.incarnation:
            return Receipt(False, dead.seen)
        left = next((cut for disk, ledger in self._disks(node) for cut in Flushed(disk, ledger).losses()), None)
        return Receipt(left is None, f"{dead.seen}; {f'still there: {left.path}' if left else in_words(cuts)}")

    def _disks(self, node: str) -> Sequence[tuple[HeldDisk, Path]]:
        """The disks with their ledgers.

        Raises:
            EnvironmentFault: there is no ledger.
        """
        name = self._node(node).name
        if Power not in self.controls or node not in self._shim_directories():
            why = self._kafka.lacks[Power] if Power not in self.controls else _ZOOKEEPER
            raise EnvironmentFault(f"node {name} cannot lose power.", why)
        ledger = self.clocks.ledger(node)
        if node != CONTROLLER:
            return [(self.volumes.files(name), ledger)]
        holder = self.project.container(HOLDER)
        held = [f"{HELD_METADATA}/{service}" for service in self._file.nodes[node]]
        return [(HeldDisk(holder, disk, f"{disk}/{KEPT}"), ledger) for disk in held]

    # ------------------------------------------------------------------------------------------------ log directories

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.target.Target`."""
        if not self._answers(node):
            raise EnvironmentFault(f"node {node} does not answer: {self._node(node).in_words()}.")
        if node == CONTROLLER:
            return []
        return [0] if Path(DISK, DATA) in offline_log_dirs(node, self.ports.address(node)) else []

    # ------------------------------------------------------------------------------------------------ evidence

    def _keep_disks(self) -> None:
        for node in self.brokers():
            self.volumes.copy_out(node, self._disk(node))
        # Containers write as any user; the owner of the run's directory has to be able to read and remove it.
        told_by(self.project.container(HOLDER), *_READABLE)

    def _metadata_logs(self) -> Mapping[NodeId, Path]:
        """Several dedicated controllers have ids above that of ``controller``."""
        if self._kafka.release.metadata is not Metadata.KRAFT:
            return {}
        alone = self._file.controllers
        numbers = chain(range(len(self._file.brokers)), count(CONTROLLER_ID + (len(alone) > 1)))
        services = (*self._file.brokers, *alone)
        return {
            NodeId(number): self._metadata_dir(one.name) / DIRECTORY
            for number, one in zip(numbers, services, strict=False)
        }

    def _disk(self, broker: str) -> Path:
        return self._directory / self._file.brokers[int(broker)].name / DATA
