"""Where a cluster of real Kafka is looked at: its nodes' addresses past every proxy, and its controller's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.model import CONTROLLER, NodeId
from harness.targets.addresses import Address
from harness.targets.kafka import metadata_log, zookeeper_log
from harness.targets.kafka.decisions import ControllerLog
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.releases import Metadata, Release


class Scene(Protocol):
    """What differs between the ways in which real Kafka is run, for those who look at it.

    Attributes:
        release: decides how one asks.
        nodes: the names of all nodes, the brokers first.
        broker_names: the names of those nodes that hold replicas.
        controller: the node that is KRaft's only controller and can be asked itself; None: brokers are asked, which
            forward it.
    """

    @property
    def release(self) -> Release: ...  # noqa: D102

    @property
    def nodes(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def broker_names(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def controller(self) -> str | None: ...  # noqa: D102

    def address(self, node: str) -> Address:
        """Where a node answers the harness; with ZooKeeper the node ``controller`` need not be Kafka."""
        ...

    def zookeeper(self) -> Address:
        """Where ZooKeeper answers."""
        ...

    def controller_log(self) -> ControllerLog:
        """The controller's log from its beginning, with the brokers' ids of scenarios."""
        ...

    def printed(self, broker: str) -> Path:
        """What a broker prints; asked of releases before 2.4, which write there what they do not tell."""
        ...

    def kafka_id(self, node: NodeId) -> int:
        """The id by which Kafka itself knows a broker."""
        ...

    def node(self, kafka_id: int) -> NodeId:
        """The broker that Kafka knows by an id."""
        ...


@dataclass(frozen=True, slots=True)
class LocalScene:
    """Implements :class:`Scene` for local processes.

    Attributes:
        layout: who listens where.
        release: see :class:`Scene`.
        controller_disk: the data directory of the node ``controller``.
        logs: what each broker prints, by its name.
    """

    layout: Layout
    release: Release
    controller_disk: Path
    logs: Mapping[str, Path]

    @property
    def nodes(self) -> Sequence[str]:
        """See :class:`Scene`."""
        return self.layout.nodes

    @property
    def broker_names(self) -> Sequence[str]:
        """See :class:`Scene`."""
        return self.layout.broker_names

    @property
    def controller(self) -> str | None:
        """See :class:`Scene`."""
        return CONTROLLER if self.release.metadata is Metadata.KRAFT else None

    def address(self, node: str) -> Address:
        """See :class:`Scene`."""
        listeners = self.layout.listeners(node)
        return self.layout.real(node, Listener.HARNESS if Listener.HARNESS in listeners else Listener.CONTROLLER)

    def zookeeper(self) -> Address:
        """See :class:`Scene`."""
        return self.layout.zookeeper

    def controller_log(self) -> ControllerLog:
        """See :class:`Scene`."""
        if self.release.metadata is Metadata.KRAFT:
            return metadata_log.MetadataLog(self.controller_disk / metadata_log.DIRECTORY)
        return zookeeper_log.ZooKeeperLog(self.controller_disk / zookeeper_log.DIRECTORY)

    def printed(self, broker: str) -> Path:
        """See :class:`Scene`."""
        return self.logs[broker]

    def kafka_id(self, node: NodeId) -> int:
        """See :class:`Scene`."""
        return node

    def node(self, kafka_id: int) -> NodeId:
        """See :class:`Scene`."""
        return NodeId(kafka_id)
