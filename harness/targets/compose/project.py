"""Finds the containers of a running project's nodes through the Docker engine."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault

HOLDER, TOXIPROXY = "seawall-holder", "seawall-toxiproxy"
"""The services that the overlay adds."""

DISK, HELD = "/seawall/disk", "/volumes"
"""The directory of a broker's volume in the broker, and, below its service's name, in the holder."""

DATA = "data"
"""The log directory, below a broker's volume."""

KEPT = ".seawall-kept"
"""Below a broker's volume, or a controller's metadata: the earlier contents of replaced files."""

TOOLS_IMAGE, TOXIPROXY_IMAGE = "SEAWALL_TOOLS_IMAGE", "TOXIPROXY_IMAGE"
"""The environment variables that name the added images."""

_IMAGES = {TOOLS_IMAGE: "seawall/tools:latest", TOXIPROXY_IMAGE: "ghcr.io/shopify/toxiproxy:2.12.0"}
PROJECT_LABEL, _SERVICE = "com.docker.compose.project", "com.docker.compose.service"
_TIMEOUT_S = 60


def address() -> str:
    """The address of the engine: ``DOCKER_HOST``, or this machine's socket; contexts of ``docker`` do not count."""
    return os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET.removeprefix("http+")


def connected() -> docker.DockerClient:
    """A client of the engine at :func:`address`.

    Raises:
        EnvironmentFault: it does not answer.
    """
    try:
        _refuse_deaf(address())
        client = docker.from_env(timeout=_TIMEOUT_S)
        client.ping()
    except (DockerException, OSError) as problem:
        raise EnvironmentFault(
            f"no Docker engine answers at {address()}: {problem}.",
            "Start it, let this user use it, or set DOCKER_HOST: contexts of `docker` are not looked at.",
        ) from None
    return client


def _refuse_deaf(place: str) -> None:
    """Connect once: where no engine listens, the docker library would leave its socket open.

    Raises:
        OSError: no engine listens there.
    """
    scheme, _, path = place.partition("://")
    if scheme.endswith("unix"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)


def image_of(variable: str) -> str:
    """The image that :data:`TOOLS_IMAGE` or :data:`TOXIPROXY_IMAGE` names, or else the usual one."""
    return os.environ.get(variable) or _IMAGES[variable]


class Project:
    """The containers of one Compose project.

    Args:
        client: of the engine.
        name: of the project.
        nodes: the services of each node, see :attr:`harness.targets.compose.compose_file.ComposeFile.nodes`.
    """

    def __init__(self, client: docker.DockerClient, name: str, nodes: Mapping[str, Sequence[str]]) -> None:
        self.client = client
        self.name = name
        self.nodes = nodes

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of containers made beside Compose, by which they are removed with the project."""
        return {PROJECT_LABEL: self.name}

    def containers(self, node: str) -> list[Container]:
        """The containers of a node, as they are now, running or not; the same ones across restarts.

        Raises:
            EnvironmentFault: one is gone, or the engine does not answer.
        """
        return [self.container(service) for service in self.nodes[node]]

    def container(self, service: str) -> Container:
        """The container of one service; raises as :meth:`containers`."""
        found = self._labelled(f"{_SERVICE}={service}")
        if not found:
            raise EnvironmentFault(f"service {service!r} of project {self.name} has no container any more.")
        return found[0]

    def _labelled(self, *labels: str) -> list[Any]:
        wanted = {"label": [f"{PROJECT_LABEL}={self.name}", *labels]}
        try:
            return list(self.client.containers.list(all=True, filters=wanted, ignore_removed=True))
        except DockerException as problem:
            raise EnvironmentFault(f"the Docker engine does not answer: {problem}.") from None
