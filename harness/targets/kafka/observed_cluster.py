"""Where the harness observes a real Kafka cluster: the nodes' addresses past every proxy, and the controllers' log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.model import NodeId, node_name
from harness.targets.addresses import Address
from harness.targets.kafka import metadata_log, zookeeper_log
from harness.targets.kafka.decisions import ControllerLog
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.quorum_log import QuorumLog
from harness.targets.kafka.releases import Metadata, Release


class ObservedCluster(Protocol):
    """What an observer needs of a cluster, whether its nodes are processes or containers.

    Attributes:
        release: determines the requests.
        nodes: the names of all nodes, the brokers first.
        broker_names: the names of those nodes that hold replicas.
        controllers: the names of the controllers.
    """

    @property
    def release(self) -> Release: ...  # noqa: D102

    @property
    def nodes(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def broker_names(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def controllers(self) -> Sequence[str]: ...  # noqa: D102

    def controller_named(self, elected: NodeId) -> str:
        """The node that KRaft's controllers have elected."""
        ...

    def controller_address(self, controller: str) -> Address | None:
        """Where a KRaft controller answers the harness directly; None: brokers forward the request."""
        ...

    def address(self, node: str) -> Address:
        """Where a broker answers the harness."""
        ...

    def zookeeper(self) -> Address:
        """Where ZooKeeper answers."""
        ...

    def controller_log(self) -> ControllerLog:
        """The controllers' log from its beginning, with the broker ids of scenarios."""
        ...

    def printed(self, broker: str) -> Path:
        """A broker's log file; used before 2.4, whose brokers do not return their epochs."""
        ...

    def kafka_id(self, node: NodeId) -> int:
        """Kafka's id of a broker."""
        ...

    def node(self, kafka_id: int) -> NodeId:
        """The broker with Kafka's id ``kafka_id``."""
        ...


@dataclass(frozen=True, slots=True)
class ObservedProcesses:
    """Implements :class:`ObservedCluster` for local processes.

    Attributes:
        layout: the nodes' addresses.
        release: see :class:`ObservedCluster`.
        controller_disks: the directory of each controller's metadata log, or ZooKeeper's log, by the node's name.
        logs: each broker's log file, by its name.
    """

    layout: Layout
    release: Release
    controller_disks: Mapping[str, Path]
    logs: Mapping[str, Path]

    @property
    def nodes(self) -> Sequence[str]:
        """See :class:`ObservedCluster`."""
        return self.layout.nodes

    @property
    def broker_names(self) -> Sequence[str]:
        """See :class:`ObservedCluster`."""
        return self.layout.broker_names

    @property
    def controllers(self) -> Sequence[str]:
        """See :class:`ObservedCluster`."""
        return self.layout.controllers

    def controller_named(self, elected: NodeId) -> str:
        """See :class:`ObservedCluster`."""
        return node_name(elected)

    def controller_address(self, controller: str) -> Address | None:
        """See :class:`ObservedCluster`."""
        return self.layout.real(controller, Listener.CONTROLLER)

    def address(self, node: str) -> Address:
        """See :class:`ObservedCluster`."""
        return self.layout.real(node, Listener.HARNESS)

    def zookeeper(self) -> Address:
        """See :class:`ObservedCluster`."""
        return self.layout.zookeeper

    def controller_log(self) -> ControllerLog:
        """See :class:`ObservedCluster`."""
        disks = list(self.controller_disks.values())
        if self.release.metadata is Metadata.ZOOKEEPER:
            return zookeeper_log.ZooKeeperLog(disks[0] / zookeeper_log.DIRECTORY)
        logs = [disk / metadata_log.DIRECTORY for disk in disks]
        return metadata_log.MetadataLog(logs[0]) if len(logs) == 1 else QuorumLog(logs)

    def printed(self, broker: str) -> Path:
        """See :class:`ObservedCluster`."""
        return self.logs[broker]

    def kafka_id(self, node: NodeId) -> int:
        """See :class:`ObservedCluster`."""
        return node

    def node(self, kafka_id: int) -> NodeId:
        """See :class:`ObservedCluster`."""
        return NodeId(kafka_id)
