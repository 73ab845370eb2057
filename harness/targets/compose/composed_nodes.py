"""Starts the brokers of a compose file as a project of its own, whatever program they run, and removes it."""

from __future__ import annotations

import json
import random
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import docker

from harness.clients.conversation import Conversation
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import node_id
from harness.target import Ending
from harness.targets.addresses import Address
from harness.targets.compose import compose_tool
from harness.targets.compose.beside import Addition, Ports, Surroundings, proxy_port
from harness.targets.compose.client_relays import ClientRoutes
from harness.targets.compose.container_clock import Clocks
from harness.targets.compose.image import OWN_IMAGES, has_image
from harness.targets.compose.leftovers import ProjectLeft
from harness.targets.compose.network import Network
from harness.targets.compose.node import ComposeNode
from harness.targets.compose.ownership import owner
from harness.targets.compose.project import TOOLS_IMAGE, TOXIPROXY_IMAGE, Project, connected, image_of
from harness.targets.compose.removal import left_of, removed
from harness.targets.compose.rewriting import Stack, container_name, rewritten
from harness.targets.compose.shimmed import Look
from harness.targets.compose.stack_file import StackFile
from harness.targets.compose.toxics import Toxics
from harness.targets.compose.volumes import Volumes
from harness.targets.endings import JVM_STATUSES
from harness.targets.kafka.proxies import Proxies
from harness.targets.link_probe import ping_as_client
from harness.targets.node_evidence import NODE_WIRE, folder_of, wire_rows
from harness.targets.owned_nodes import OwnedNodes
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse

DISK_MIB = 1024
"""The size of each broker's volume, which is memory as far as it is used."""

OVERLAY = "overlay.json"
"""The file that has the overlay, below the directory of the nodes' files."""

_ANSWER_TIMEOUT_S = 1.0
_METADATA = 4
"""The newest request version that is used."""

_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections."""

Coming = Callable[[Mapping[str, Any]], None]
"""Called with a :class:`harness.targets.compose.leftovers.ProjectLeft` as plain data."""


class ComposedNodes(OwnedNodes[ComposeNode]):
    """The project, its nodes, and which of them run.

    Args:
        directory: of this machine, for the nodes' logs and disks; created when missing.
        file: whose brokers have been found.
        stack: the same as plain data.
        services: of the file, which are to run.
        coming: called with the names of the project and its containers before any of them exists.
    """

    _READY_TIMEOUT_S = 180.0
    _SHUT_DOWN_TIMEOUT_S = 60.0
    _POLL_S = 0.1
    _STATUSES: ClassVar[Mapping[int, str]] = JVM_STATUSES
    """The exit statuses of a node that are no fault of its program, and their causes."""

    def __init__(
        self, directory: Path, file: StackFile, stack: Stack, services: Sequence[str], coming: Coming
    ) -> None:  # fmt: skip
        super().__init__()
        self._directory = directory.resolve()
        self._stack_file = file
        self._written = stack
        self._services = services
        self._coming = coming
        self._ports: Ports | None = None
        self._project: Project | None = None
        self._name = ""
        self._awaited: Sequence[str] = ()
        self._nodes = {}
        self._has_come_up = False
        self._endings: Sequence[Ending] = []
        self._taps: dict[str, Path] = {}
        self._relays: Proxies | None = None

    @abstractmethod
    def _overlay(self, run: Surroundings) -> dict[str, Any]:
        """What is added to the file."""

    def _shown(self, added: dict[str, Any]) -> dict[str, Any]:
        """The same as it may be written down."""
        return added

    @abstractmethod
    def _upstream(self, node: str) -> str:
        """Where Toxiproxy finds a broker, as ``host:port`` of the project's networks."""

    @abstractmethod
    def _shim_directories(self) -> Mapping[str, Path]:
        """Of each node whose clock can be moved: the directory of its shim's files on this machine."""

    @abstractmethod
    def _look_at(self, node: str) -> Look:
        """That at the processes of a node that have to have the shim."""

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
        self._project = Project(client, name, self._stack_file.nodes)
        self._open_relays(self._ports)
        stack = self._stack(name, self._ports)
        containers = [container_name(name, service) for service in stack["services"]]
        self._coming(asdict(ProjectLeft(name, containers)))
        begun_ns = time.monotonic_ns()
        self._awaited = containers
        compose_tool.up(name, self._stack_file.path.parent, stack)
        self._awaited = []
        self._nodes = {node: ComposeNode(self._project, node, self._STATUSES) for node in self._stack_file.nodes}
        self._open_proxies()
        for node in reversed(self._nodes):
            self._started(node, begun_ns)
        self._await("the nodes have not all come up", self._all_answer)
        self._await("the brokers have not all heard of each other", self._all_know_each_other)

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

    def _open_proxies(self) -> None:
        self.toxics.await_up(self._READY_TIMEOUT_S)
        for node in self.brokers():
            self.toxics.create(node, f"0.0.0.0:{proxy_port(node)}", self._upstream(node))

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
        run = Surroundings(
            project=name,
            owner=owner(),
            ports=ports,
            clocks=self._clock_additions(),
            tools_image=image_of(TOOLS_IMAGE),
            toxiproxy_image=image_of(TOXIPROXY_IMAGE),
            disk_mib=DISK_MIB,
        )
        added = self._overlay(run)
        (self._directory / OVERLAY).write_text(json.dumps(self._shown(added), indent=2))
        return rewritten(self._written, added, self._services, name)

    def _clock_additions(self) -> Mapping[str, Addition]:
        """The variables and volumes of the clock shim, by service."""
        added = {node: self._shimmed(node, directory) for node, directory in self._shim_directories().items()}
        return {service: Addition(*added[node]) for node in added for service in self._stack_file.nodes[node]}

    def _shimmed(self, node: str, directory: Path) -> tuple[dict[str, str], list[str]]:
        """Those of one node."""
        del node
        return Clocks.additions(directory)

    def _started(self, node: str, begun_ns: int) -> None:
        """A node's containers have just been started, the first time or again."""
        del begun_ns
        self.network.attach(node)

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return ",".join(f"127.0.0.1:{self.ports.advertised[name]}" for name in self.brokers())

    # ------------------------------------------------------------------------------------------------ nodes

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
        return list(self._stack_file.nodes)

    def brokers(self) -> list[str]:
        """The names of the brokers, in order."""
        return [str(number) for number in range(len(self._stack_file.brokers))]

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Restarts`."""
        self._start(self._resting(node))
        self._await(f"node {node} has not come up", lambda: self._came_up(node))

    def _start(self, one: ComposeNode) -> None:
        begun_ns = time.monotonic_ns()
        one.start()
        self._started(one.name, begun_ns)

    def _answers(self, node: str) -> bool:
        """Whether the node answers the harness now; a paused one does not."""
        one = self._node(node)
        if not one.is_whole or one.is_stopped:
            return False
        return self._speaks(node, self.ports.address(node))

    def _speaks(self, node: str, address: Address) -> bool:
        """Whether a node whose containers run is ready."""
        del node
        return self._is_answered(address, _ANSWER_TIMEOUT_S)

    def _is_answered(self, address: Address, timeout_s: float) -> bool:
        """Whether a broker answers a request that any client may send it."""
        return ping_as_client(address, timeout_s, lambda: 0) is None

    @abstractmethod
    def _all_know_each_other(self) -> bool:
        """Whether every broker has heard of all of them."""

    def _known_to(self, broker: str) -> Mapping[int, Address]:
        """Where the brokers are that a broker knows, by their ids; empty while it does not answer."""
        with closing(Conversation(node_id(broker), self.ports.address(broker), _ANSWER_TIMEOUT_S)) as conversation:
            try:
                metadata = conversation.ask(MetadataRequest(topics=[]), MetadataResponse, _METADATA)
            except NoAnswer:
                return {}
        return {one.node_id: (one.host, one.port) for one in metadata.brokers}

    # ------------------------------------------------------------------------------------------------ parts

    @cached_property
    def network(self) -> Network:
        """The links between the running nodes."""
        return Network(self.project)

    @cached_property
    def toxics(self) -> Toxics:
        """The links between clients and the running brokers."""
        listeners = {node: ("127.0.0.1", port) for node, port in self.ports.clients.items()}
        api, probe = ("127.0.0.1", self.ports.toxiproxy), ("127.0.0.1", self.ports.probe)
        return Toxics(api, listeners, probe, self._is_answered)

    @cached_property
    def volumes(self) -> Volumes:
        """The disks of the brokers."""
        return Volumes(self.project)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of those nodes that have the shim."""
        return Clocks(self.project, self._shim_directories(), self._look_at)

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
