"""Runs a compose file's Kafka: its settings and logs, ZooKeeper's sessions, and how its nodes come up."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER, NodeId, node_id
from harness.target import Receipt
from harness.targets.addresses import Address
from harness.targets.compose.beside import Surroundings
from harness.targets.compose.composed_nodes import Coming
from harness.targets.compose.harmed_nodes import HarmedNodes
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.node import ComposeNode
from harness.targets.compose.numbering import Numbering
from harness.targets.compose.overlay import (
    CLIENTS_PORT,
    SNAPSHOTS,
    TRANSACTIONS,
    Wishes,
    listener_for_controllers,
    overlay,
)
from harness.targets.kafka.real import RealKafka
from harness.targets.kafka.releases import Metadata
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.zookeeper import answers, registered

_ZOOKEEPER_TIMEOUT_S = 5.0
_LOADING = b"Loading logs"


class ComposeCluster(HarmedNodes, RealKafka[ComposeNode]):
    """The base of the target: the Kafka of a project.

    Args:
        directory: of this machine, for the nodes' logs and disks; created when missing.
        kafka: the stack to run.
        settings: of every broker and controller.
        coming: called with the names of the project and its containers before any of them exists.
    """

    def __init__(
        self,
        directory: Path,
        kafka: InspectedStack,
        settings: KafkaSettings,
        coming: Coming = lambda project: None,
    ) -> None:
        super().__init__(directory, kafka.file, kafka.stack, kafka.services, coming)
        self._kafka = kafka
        self._file = kafka.file
        self._settings = settings
        self.numbering = Numbering(kafka.file.kafka_ids)

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        super().start()
        self._refuse_silent_zookeepers()
        self._has_come_up = True

    def _overlay(self, run: Surroundings) -> dict[str, Any]:
        kept = [*self._metadata_services(), *([] if self._has_zookeeper else (one.name for one in self._file.brokers))]
        metadata = {service: str(self._writable(service, "metadata")) for service in kept}
        for keeper in self._file.zookeepers:
            for part in (SNAPSHOTS, TRANSACTIONS):
                self._writable(keeper.name, f"metadata/{part}")
        return overlay(self._file, Wishes(run, self._settings, metadata))

    def _upstream(self, node: str) -> str:
        return f"{self._file.brokers[int(node)].name}:{CLIENTS_PORT}"

    def _refuse_silent_zookeepers(self) -> None:
        """Refuse a ZooKeeper that writes no log to this machine: the harness reads elections there."""
        for keeper in self._file.zookeepers:
            if not any((self._directory / keeper.name / "metadata" / TRANSACTIONS).rglob("log.*")):
                raise EnvironmentFault(
                    f"ZooKeeper of image {keeper.image} does not write its log to the directory that the variables of "
                    "the official image name, so that elections could not be seen.",
                    "Let the file run ZooKeeper by the official image, Confluent's or bitnami's.",
                )

    def _metadata_services(self) -> list[str]:
        controllers = [one.name for one in self._file.kafkas if one.is_controller]
        return [*controllers, *(one.name for one in self._file.zookeepers)]

    def _metadata_dirs(self) -> list[Path]:
        """Of the controllers, or ZooKeepers, on this machine."""
        return [self._metadata_dir(service) for service in self._metadata_services()]

    def _metadata_dir(self, service: str) -> Path:
        return self._directory / service / "metadata"

    def _writable(self, service: str, part: str) -> Path:
        """A directory that a service can write to as any user."""
        directory = self._directory / service / part
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o777)
        return directory

    # ------------------------------------------------------------------------------------------------ nodes

    @property
    def _has_begun(self) -> bool:
        return self._ports is not None

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`. With ZooKeeper the broker's old session has to end first."""
        self._resting(node)
        if self._has_zookeeper and node != CONTROLLER:
            self._await_end_of_session(node)
        super().restart(node)

    def start_and_die(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        one = self._resting(node)
        before = {service: len(output) for service, output in one.printed().items()}
        self._start(one)
        self._await(
            f"node {node} does not load its logs",
            lambda: any(_LOADING in output[before[service] :] for service, output in one.printed().items()),
        )
        one.kill()

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        for node, services in self._file.nodes.items():
            for service in services:
                log = self._directory / service / "output.log"
                if log.exists():
                    shutil.copyfile(log, directory / f"{service if node == CONTROLLER else f'broker-{node}'}.log")

    @property
    def _has_zookeeper(self) -> bool:
        return self._kafka.release.metadata is Metadata.ZOOKEEPER

    def _seen(self, node: str, look: Callable[[ComposeNode], bool]) -> Receipt:
        """The result of ``look`` at a node's containers; with combined brokers ``controller`` has none."""
        if node == CONTROLLER and node not in self._nodes:
            return Receipt(False, "the controllers are brokers")
        return super()._seen(node, look)

    def _speaks(self, node: str, address: Address) -> bool:
        """Whether a node whose containers run is ready; controllers that cannot be asked count as ready."""
        if node == CONTROLLER and self._has_zookeeper:
            return answers(address)
        if node == CONTROLLER and listener_for_controllers(self._file) is None:
            return True
        return super()._speaks(node, address)

    def _all_know_each_other(self) -> bool:
        wanted = {self.numbering.kafka_id(NodeId(int(name))) for name in self.brokers()}
        return all(wanted <= self._known_to(name).keys() for name in self.brokers())

    def _await_end_of_session(self, node: str) -> None:
        """Wait until the broker's last session has ended; return at once when ZooKeeper does not answer."""
        deadline = time.monotonic() + self._READY_TIMEOUT_S
        kafka_id = self.numbering.kafka_id(node_id(node))
        with suppress(EnvironmentFault):
            while kafka_id in registered(self.ports.address(CONTROLLER), _ZOOKEEPER_TIMEOUT_S):
                if time.monotonic() > deadline:
                    return
                time.sleep(self._POLL_S)
