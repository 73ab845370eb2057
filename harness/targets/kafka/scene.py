"""Where a cluster of real Kafka is looked at: its nodes' addresses past every proxy, and its controllers' log."""

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


class Scene(Protocol):
    """What differs between the ways in which real Kafka is run, for those who look at it.

    Attributes:
        release: decides how one asks.
        nodes: the names of all nodes, the brokers first.
        broker_names: the names of those nodes that hold replicas.
        controllers: the nodes one of which controls the cluster.
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
        """Where one of KRaft's controllers answers the harness itself; None: brokers are asked, which forward it."""
        ...

    def address(self, node: str) -> Address:
        """Where a broker answers the harness."""
        ...

    def zookeeper(self) -> Address:
        """Where ZooKeeper answers."""
        ...

    def controller_log(self) -> ControllerLog:
        """The controllers' log from its beginning, with the brokers' ids of scenarios."""
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
        controller_disks: where each controller keeps the metadata log, or ZooKeeper its own, by the node's name.
        logs: what each broker prints, by its name.
    """

    layout: Layout
    release: Release
    controller_disks: Mapping[str, Path]
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
    def controllers(self) -> Sequence[str]:
        """See :class:`Scene`."""
        return self.layout.controllers

    def controller_named(self, elected: NodeId) -> str:
        """See :class:`Scene`."""
        return node_name(elected)

    def controller_address(self, controller: str) -> Address | None:
        """See :class:`Scene`."""
        return self.layout.real(controller, Listener.CONTROLLER)

    def address(self, node: str) -> Address:
        """See :class:`Scene`."""
        return self.layout.real(node, Listener.HARNESS)

    def zookeeper(self) -> Address:
        """See :class:`Scene`."""
        return self.layout.zookeeper

    def controller_log(self) -> ControllerLog:
        """See :class:`Scene`."""
        disks = list(self.controller_disks.values())
        if self.release.metadata is Metadata.ZOOKEEPER:
            return zookeeper_log.ZooKeeperLog(disks[0] / zookeeper_log.DIRECTORY)
        logs = [disk / metadata_log.DIRECTORY for disk in disks]
        return metadata_log.MetadataLog(logs[0]) if len(logs) == 1 else QuorumLog(logs)

    def printed(self, broker: str) -> Path:
        """See :class:`Scene`."""
        return self.logs[broker]

    def kafka_id(self, node: NodeId) -> int:
        """See :class:`Scene`."""
        return node

    def node(self, kafka_id: int) -> NodeId:
        """See :class:`Scene`."""
        return NodeId(kafka_id)
