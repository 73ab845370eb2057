"""Starts a compose file's Kafka as a project of its own, stops and restarts its nodes, and removes everything."""

from __future__ import annotations

import json
import random
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import docker

from harness.clients.conversation import Conversation
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import CONTROLLER, NodeId, node_id
from harness.target import Ending, Receipt
from harness.targets.addresses import Address
from harness.targets.compose import compose_tool
from harness.targets.compose.client_relays import ClientRoutes
from harness.targets.compose.image import OWN_IMAGES, has_image
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.leftovers import ProjectLeft, owner
from harness.targets.compose.node import ComposeNode
from harness.targets.compose.numbering import Numbering
from harness.targets.compose.overlay import (
    SNAPSHOTS,
    TRANSACTIONS,
    Addition,
    Ports,
    Wishes,
    listener_for_controllers,
    overlay,
)
from harness.targets.compose.project import TOOLS_IMAGE, TOXIPROXY_IMAGE, Project, connected, image_of
from harness.targets.compose.removal import left_of, removed
from harness.targets.compose.rewriting import container_name, rewritten
from harness.targets.kafka.proxies import Proxies
from harness.targets.kafka.real import RealKafka
from harness.targets.kafka.releases import Metadata
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.zookeeper import answers, registered
from harness.targets.link_probe import ping_as_client
from harness.targets.node_evidence import NODE_WIRE, folder_of, wire_rows
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse

DISK_MIB = 1024
"""The size of each broker's volume, which is memory as far as it is used."""

OVERLAY = "overlay.json"
"""The file that has the overlay, below the directory of the nodes' files."""

_ANSWER_TIMEOUT_S = 1.0
_ZOOKEEPER_TIMEOUT_S = 5.0
_METADATA = 4
"""The newest request version that is used."""

_LOADING = b"Loading logs"
_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections."""


Coming = Callable[[Mapping[str, Any]], None]
"""Called with a :class:`harness.targets.compose.leftovers.ProjectLeft` as plain data."""


class ComposeCluster(RealKafka[ComposeNode]):
    """The base of the target: the project, its nodes, and which of them run.

    Args:
        directory: of this machine, for the nodes' logs and disks; created when missing.
        kafka: the stack to run.
        settings: of every broker and controller.
        coming: called with the names of the project and its containers before any of them exists.
    """

    _READY_TIMEOUT_S = 180.0
    _SHUT_DOWN_TIMEOUT_S = 60.0
    _POLL_S = 0.1

    def __init__(
        self,
        directory: Path,
        kafka: InspectedStack,
        settings: KafkaSettings,
        coming: Coming = lambda project: None,
    ) -> None:
        super().__init__()
        self._directory = directory.resolve()
        self._kafka = kafka
        self._file = kafka.file
        self._settings = settings
        self._coming = coming
        self.numbering = Numbering(kafka.file.kafka_ids)
        self._ports: Ports | None = None
        self._project: Project | None = None
        self._name = ""
        self._awaited: Sequence[str] = ()
        self._nodes = {}
        self._has_come_up = False
        self._endings: Sequence[Ending] = []
        self._taps: dict[str, Path] = {}
        self._relays: Proxies | None = None

    # ------------------------------------------------------------------------------------------------ life

    def tap(self) -> None:
        """See :class:`harness.controls.WireTaps`: on the clients' way to the brokers."""
        self._taps = {name: self._directory / folder_of(name) / NODE_WIRE for name in self.brokers()}

    def wire(self) -> Iterator[dict[str, Any]]:
        """See :class:`harness.controls.WireTaps`."""
        return (row for name, path in self._taps.items() for row in wire_rows(node_id(name), path))

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        assert self._ports is None, "a target starts once"
        self._directory.mkdir(parents=True, exist_ok=True)
        client = connected()
        try:
            _require_images(client)
        except EnvironmentFault:
            client.close()
            raise
        name = f"seawall-{random.SystemRandom().getrandbits(32):08x}"
        self._name, self._ports = name, free_ports(self.brokers(), relayed=bool(self._taps))
        self._project = Project(client, name, self._file.nodes)
        self._open_relays(self._ports)
        stack = self._stack(name, self._ports)
        containers = [container_name(name, service) for service in stack["services"]]
        self._coming(asdict(ProjectLeft(name, containers)))
        begun_ns = time.monotonic_ns()
        self._awaited = containers
        compose_tool.up(name, self._file.path.parent, stack)
        self._awaited = []
        self._nodes = {node: ComposeNode(self._project, node) for node in self._file.nodes}
        for node in reversed(self._nodes):
            self._started(node, begun_ns)
        self._await("the nodes have not all come up", self._all_answer)
        self._await("the brokers have not all heard of each other", self._all_know_each_other)
        self._refuse_silent_zookeepers()
        self._has_come_up = True

    def stop(self) -> None:
        """See :class:`harness.target.Target`. By SIGKILL, so that the disks do not change any more."""
        if self._project is None:
            return
        with ExitStack() as last_things_first:
            last_things_first.callback(self._remove, self._project)
            if self._relays is not None:
                last_things_first.callback(self._relays.stop)
            if self._nodes:
                last_things_first.callback(self._keep_logs)
                if self._has_come_up:
                    last_things_first.callback(self._keep_disks)
                last_things_first.callback(self._kill_all)
                last_things_first.callback(self._note_endings)

    def _open_relays(self, ports: Ports) -> None:
        """Let clients reach Toxiproxy's ports through the relays that have the wire taps, if there is to be any."""
        for path in self._taps.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        if self._taps:
            routes = ClientRoutes(ports.advertised, ports.clients)
            self._relays = Proxies(routes, self._directory / "links", self._taps)
            self._relays.start()

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.target.Target`."""
        return super().endings() if self._project is not None else self._endings

    def _note_endings(self) -> None:
        """Record the endings while the containers exist."""
        self._endings = self.endings()

    def _kill_all(self) -> None:
        for node in self._nodes.values():
            node.kill()

    def _remove(self, project: Project) -> None:
        """Remove everything with the project's name, and nothing else."""
        self._project = None
        try:
            removed(project.client, project.name, self._awaited)
        finally:
            project.client.close()

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        if not self._name:
            return []
        with closing(connected()) as client:
            return left_of(client, self._name)

    def _stack(self, name: str, ports: Ports) -> Mapping[str, Any]:
        """The file for Compose; writes the overlay to a file, too."""
        kept = [*self._metadata_services(), *([] if self._has_zookeeper else (one.name for one in self._file.brokers))]
        metadata = {service: self._writable(service, "metadata") for service in kept}
        for keeper in self._file.zookeepers:
            for part in (SNAPSHOTS, TRANSACTIONS):
                self._writable(keeper.name, f"metadata/{part}")
        wishes = Wishes(
            project=name,
            owner=owner(),
            ports=ports,
            settings=self._settings,
            metadata={service: str(directory) for service, directory in metadata.items()},
            clocks=self._clock_additions(),
            tools_image=image_of(TOOLS_IMAGE),
            toxiproxy_image=image_of(TOXIPROXY_IMAGE),
            disk_mib=DISK_MIB,
        )
        added = overlay(self._file, wishes)
        (self._directory / OVERLAY).write_text(json.dumps(added, indent=2))
        return rewritten(self._kafka.stack, added, self._kafka.services, name)

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

    def _clock_additions(self) -> Mapping[str, Addition]:
        """The variables and volumes of the clock shim, by service."""
        return {}

    def _started(self, node: str, begun_ns: int) -> None:
        """A node's containers have just been started, the first time or again."""

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return ",".join(f"127.0.0.1:{self.ports.advertised[name]}" for name in self.brokers())

    # ------------------------------------------------------------------------------------------------ nodes

    @property
    def _has_begun(self) -> bool:
        return self._ports is not None

    @property
    def ports(self) -> Ports:
        """The published ports of the running cluster."""
        assert self._ports is not None, "the target has not been started"
        return self._ports

    @property
    def project(self) -> Project:
        """The running project."""
        assert self._project is not None, "the target is not running"
        return self._project

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return list(self._file.nodes)

    def brokers(self) -> list[str]:
        """The names of the brokers, in order."""
        return [str(number) for number in range(len(self._file.brokers))]

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`. With ZooKeeper the broker's old session has to end first."""
        one = self._resting(node)
        if self._has_zookeeper and node != CONTROLLER:
            self._await_end_of_session(node)
        self._start(one)
        self._await(f"node {node} has not come up", lambda: self._came_up(node))

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

    # ------------------------------------------------------------------------------------------------ what is left

    def _keep_disks(self) -> None:
        """Copy to this machine what is on the disks."""

    def _keep_logs(self) -> None:
        """Write the nodes' output to files while the containers exist."""
        for node in self._nodes.values():
            for service, output in node.printed().items():
                place = self._directory / service
                place.mkdir(parents=True, exist_ok=True)
                (place / "output.log").write_bytes(output)

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        for node, services in self._file.nodes.items():
            for service in services:
                log = self._directory / service / "output.log"
                if log.exists():
                    shutil.copyfile(log, directory / f"{service if node == CONTROLLER else f'broker-{node}'}.log")

    # ------------------------------------------------------------------------------------------------ internals

    @property
    def _has_zookeeper(self) -> bool:
        return self._kafka.release.metadata is Metadata.ZOOKEEPER

    def _start(self, one: ComposeNode) -> None:
        begun_ns = time.monotonic_ns()
        one.start()
        self._started(one.name, begun_ns)

    def _seen(self, node: str, look: Callable[[ComposeNode], bool]) -> Receipt:
        """The result of ``look`` at a node's containers; with combined brokers ``controller`` has none."""
        if node == CONTROLLER and node not in self._nodes:
            return Receipt(False, "the controllers are brokers")
        return super()._seen(node, look)

    def _answers(self, node: str) -> bool:
        """Whether the node answers the harness now; a paused one does not."""
        one = self._node(node)
        if not one.is_whole or one.is_stopped:
            return False
        return self._speaks(node, self.ports.address(node))

    def _speaks(self, node: str, address: Address) -> bool:
        """Whether a node whose containers run is ready; controllers that cannot be asked count as ready."""
        if node == CONTROLLER and self._has_zookeeper:
            return answers(address)
        if node == CONTROLLER and listener_for_controllers(self._file) is None:
            return True
        return ping_as_client(address, _ANSWER_TIMEOUT_S, lambda: 0) is None

    def _all_know_each_other(self) -> bool:
        wanted = {self.numbering.kafka_id(NodeId(int(name))) for name in self.brokers()}
        return all(wanted <= self._known_to(name) for name in self.brokers())

    def _known_to(self, broker: str) -> set[int]:
        with closing(Conversation(node_id(broker), self.ports.address(broker), _ANSWER_TIMEOUT_S)) as conversation:
            try:
                metadata = conversation.ask(MetadataRequest(topics=[]), MetadataResponse, _METADATA)
            except NoAnswer:
                return set()
        return {one.node_id for one in metadata.brokers}

    def _await_end_of_session(self, node: str) -> None:
        """Wait until the broker's last session has ended; return at once when ZooKeeper does not answer."""
        deadline = time.monotonic() + self._READY_TIMEOUT_S
        kafka_id = self.numbering.kafka_id(node_id(node))
        with suppress(EnvironmentFault):
            while kafka_id in registered(self.ports.address(CONTROLLER), _ZOOKEEPER_TIMEOUT_S):
                if time.monotonic() > deadline:
                    return
                time.sleep(self._POLL_S)


def _require_images(client: docker.DockerClient) -> None:
    """Check that the engine has the images that run beside the brokers.

    Raises:
        EnvironmentFault: it lacks one.
    """
    for variable, builds in ((TOOLS_IMAGE, "tools"), (TOXIPROXY_IMAGE, "toxiproxy")):
        if not has_image(client, image := image_of(variable)):
            own = f"`python compose/images/build.py {builds}` builds {OWN_IMAGES}{builds}"
            pull = "" if image.startswith(OWN_IMAGES) else f"`docker pull {image}`; or "
            raise EnvironmentFault(
                f"image {image}, of what runs beside the brokers, is not on this machine.",
                f"Get it: {pull}{own}, and {variable} names the image to use.",
            )


def free_ports(brokers: Sequence[str], *, relayed: bool) -> Ports:
    """Free ports of 127.0.0.1; ``relayed``: clients reach Toxiproxy through relays.

    Raises:
        EnvironmentFault: there are not enough.
    """
    free = _free_ports()
    try:
        clients, harness = ({name: next(free) for name in brokers} for _ in range(2))
        advertised = {name: next(free) for name in brokers} if relayed else clients
        return Ports(clients, advertised, harness, next(free), next(free), next(free))
    except StopIteration:
        raise EnvironmentFault(f"no free ports are left from {_PORTS.start} to {_PORTS.stop - 1}.") from None


def _free_ports() -> Iterator[int]:
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            yield port
