"""What the target needs of a compose file whose brokers have been found, whatever program they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Protocol

from harness.targets.compose.mounts import Mount


class Named(Protocol):
    """A service, and how others call its container."""

    @property
    def name(self) -> str:
        """Of the service."""
        ...

    @property
    def names(self) -> Set[str]:
        """The names of its container on its networks, the service's own included."""
        ...


class NodeService(Named, Protocol):
    """A service that runs a node."""

    @property
    def image(self) -> str:
        """Of the service."""
        ...

    @property
    def networks(self) -> Sequence[str]:
        """Its networks in the file."""
        ...

    @property
    def extra_hosts(self) -> Set[str]:
        """The additional names in its hosts file."""
        ...


class StackFile(Protocol):
    """A file whose brokers have been found."""

    @property
    def path(self) -> Path:
        """Of the file."""
        ...

    @property
    def version(self) -> str | None:
        """The format version in the file, which Compose v1 needs in every file of a project."""
        ...

    @property
    def brokers(self) -> Sequence[NodeService]:
        """Broker 0, 1, 2 ... of scenarios."""
        ...

    @property
    def nodes(self) -> Mapping[str, Sequence[str]]:
        """The services of each node of the target."""
        ...

    @property
    def mounts(self) -> Mapping[str, Sequence[Mount]]:
        """Of every service of the file, by its name."""
        ...

    @property
    def internal_networks(self) -> Set[str]:
        """From which nothing can be published."""
        ...


def reached(networks: Sequence[str], file: StackFile) -> Sequence[str]:
    """Those networks from which ports can be published."""
    return [network for network in networks if network not in file.internal_networks]
