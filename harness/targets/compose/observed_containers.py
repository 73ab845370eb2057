"""Where the harness observes the Kafka of a compose file: published ports, and the directories of controllers' logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import CONTROLLER, NodeId, node_name
from harness.targets.addresses import Address
from harness.targets.compose.beside import Ports
from harness.targets.compose.numbering import Numbering, RenumberedLog
from harness.targets.compose.overlay import TRANSACTIONS
from harness.targets.kafka import metadata_log, zookeeper_log
from harness.targets.kafka.decisions import ControllerLog
from harness.targets.kafka.quorum_log import QuorumLog
from harness.targets.kafka.releases import Metadata, Release


@dataclass(frozen=True, slots=True)
class ObservedContainers:
    """Implements :class:`harness.targets.kafka.observed_cluster.ObservedCluster`.

    Attributes:
        release: of the brokers.
        broker_names: of the brokers, in order.
        controllers: the controllers: the node ``controller``, or combined brokers.
        asks_controllers: whether the harness can send requests to the controller directly: only to KRaft's single
            dedicated one.
        ports: the published ports.
        numbering: of the brokers.
        metadata_dirs: of the controllers, or of ZooKeeper, on this machine.
    """

    release: Release
    broker_names: Sequence[str]
    controllers: Sequence[str]
    asks_controllers: bool
    ports: Ports
    numbering: Numbering
    metadata_dirs: Sequence[Path]

    @property
    def nodes(self) -> Sequence[str]:
        """See :class:`.ObservedCluster`; the controllers' decisions belong to ``controller``."""
        return [*self.broker_names, CONTROLLER]

    def controller_named(self, elected: NodeId) -> str:
        """See :class:`.ObservedCluster`; all dedicated controllers have one name."""
        name = node_name(elected)
        return name if name in self.controllers else CONTROLLER

    def controller_address(self, controller: str) -> Address | None:
        """See :class:`.ObservedCluster`."""
        return self.ports.address(controller) if self.asks_controllers else None

    def address(self, node: str) -> Address:
        """See :class:`.ObservedCluster`."""
        return self.ports.address(node)

    def zookeeper(self) -> Address:
        """See :class:`.ObservedCluster`."""
        return self.ports.address(CONTROLLER)

    def controller_log(self) -> ControllerLog:
        """See :class:`.ObservedCluster`. Of several ZooKeepers it is the first's."""
        if self.release.metadata is Metadata.ZOOKEEPER:
            log: ControllerLog = zookeeper_log.ZooKeeperLog(
                self.metadata_dirs[0] / TRANSACTIONS / zookeeper_log.DIRECTORY
            )
        else:
            log = QuorumLog([directory / metadata_log.DIRECTORY for directory in self.metadata_dirs])
        return RenumberedLog(log, self.numbering)

    def printed(self, broker: str) -> Path:
        """See :class:`.ObservedCluster`; never called, as releases before 2.4 are refused."""
        raise AssertionError(f"broker {broker} of Kafka {self.release.version} returns its epochs")

    def kafka_id(self, node: NodeId) -> int:
        """See :class:`.ObservedCluster`."""
        return self.numbering.kafka_id(node)

    def node(self, kafka_id: int) -> NodeId:
        """See :class:`.ObservedCluster`."""
        return self.numbering.node(kafka_id)
