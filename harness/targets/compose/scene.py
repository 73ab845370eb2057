"""Where the Kafka of a compose file is looked at: published ports, and the run's directories for controllers' logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import CONTROLLER, NodeId
from harness.targets.addresses import Address
from harness.targets.compose.numbering import Numbering, RenumberedLog
from harness.targets.compose.overlay import TRANSACTIONS, Ports
from harness.targets.kafka import metadata_log, zookeeper_log
from harness.targets.kafka.decisions import ControllerLog
from harness.targets.kafka.quorum_log import QuorumLog
from harness.targets.kafka.releases import Metadata, Release


@dataclass(frozen=True, slots=True)
class ComposeScene:
    """Implements :class:`harness.targets.kafka.scene.Scene`.

    Attributes:
        release: of the brokers.
        broker_names: of the brokers, in order.
        asks_controller: whether the node ``controller`` is KRaft's only controller and can be asked itself.
        ports: where everybody answers.
        numbering: of the brokers.
        metadata_dirs: of the controllers, or of ZooKeeper, on this machine.
    """

    release: Release
    broker_names: Sequence[str]
    asks_controller: bool
    ports: Ports
    numbering: Numbering
    metadata_dirs: Sequence[Path]

    @property
    def nodes(self) -> Sequence[str]:
        """See :class:`~harness.targets.kafka.scene.Scene`; what the controllers decide is the node ``controller``'s."""
        return [*self.broker_names, CONTROLLER]

    @property
    def controllers(self) -> Sequence[str]:
        """See :class:`~harness.targets.kafka.scene.Scene`; however many there are, they go by one name together."""
        return [CONTROLLER]

    def controller_named(self, elected: NodeId) -> str:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        del elected
        return CONTROLLER

    def controller_address(self, controller: str) -> Address | None:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        return self.ports.address(controller) if self.asks_controller else None

    def address(self, node: str) -> Address:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        return self.ports.address(node)

    def zookeeper(self) -> Address:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        return self.ports.address(CONTROLLER)

    def controller_log(self) -> ControllerLog:
        """See :class:`~harness.targets.kafka.scene.Scene`. Of several ZooKeepers the first's is read."""
        if self.release.metadata is Metadata.ZOOKEEPER:
            log: ControllerLog = zookeeper_log.ZooKeeperLog(
                self.metadata_dirs[0] / TRANSACTIONS / zookeeper_log.DIRECTORY
            )
        else:
            log = QuorumLog([directory / metadata_log.DIRECTORY for directory in self.metadata_dirs])
        return RenumberedLog(log, self.numbering)

    def printed(self, broker: str) -> Path:
        """See :class:`~harness.targets.kafka.scene.Scene`; never asked, as releases before 2.4 are refused."""
        raise AssertionError(f"broker {broker} of Kafka {self.release.version} tells its epochs itself")

    def kafka_id(self, node: NodeId) -> int:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        return self.numbering.kafka_id(node)

    def node(self, kafka_id: int) -> NodeId:
        """See :class:`~harness.targets.kafka.scene.Scene`."""
        return self.numbering.node(kafka_id)
