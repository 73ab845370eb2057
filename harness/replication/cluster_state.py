"""The durable state of the controller, and its form as plain JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model import NodeId, TopicPartition
from harness.replication.controller_messages import PartitionState

FORMAT_VERSION = 2


@dataclass(slots=True)
class BrokerRecord:
    """A registered broker.

    Attributes:
        incarnation_id: of the process that registered last.
        epoch: of that registration; the controller refuses requests with another.
        live: whether it had a session when the state was written.
    """

    broker: NodeId
    incarnation_id: str
    epoch: int
    host: str
    port: int
    live: bool


@dataclass(slots=True)
class ClusterState:
    """The durable state of the cluster. Epochs and ids are assigned in ascending order, never twice.

    Brokers and partitions are in ascending order.
    """

    controller_epoch: int = 0
    next_broker_epoch: int = 1
    next_producer_id: int = 0
    brokers: dict[NodeId, BrokerRecord] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionState] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data that :meth:`from_json` understands."""
        return {
            "version": FORMAT_VERSION,
            "controller_epoch": self.controller_epoch,
            "next_broker_epoch": self.next_broker_epoch,
            "next_producer_id": self.next_producer_id,
            "brokers": [_broker_to_json(record) for record in self.brokers.values()],
            "partitions": [_partition_to_json(partition) for partition in self.partitions.values()],
        }

    def register(self, record: BrokerRecord) -> None:
        """A broker, new or with a new registration."""
        self.brokers = dict(sorted({**self.brokers, record.broker: record}.items()))

    def create(self, partitions: Iterable[PartitionState]) -> None:
        """Partitions of a new topic."""
        created = {partition.topic_partition: partition for partition in partitions}
        self.partitions = dict(sorted({**self.partitions, **created}.items()))

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> ClusterState:
        """The state written by :meth:`to_json`."""
        assert state["version"] == FORMAT_VERSION, f"controller state of version {state['version']}"
        partitions = [_partition_from_json(row) for row in state["partitions"]]
        return cls(
            controller_epoch=state["controller_epoch"],
            next_broker_epoch=state["next_broker_epoch"],
            next_producer_id=state["next_producer_id"],
            brokers={row["broker"]: BrokerRecord(**row) for row in state["brokers"]},
            partitions={partition.topic_partition: partition for partition in partitions},
        )


def _broker_to_json(record: BrokerRecord) -> dict[str, Any]:
    return {field: getattr(record, field) for field in BrokerRecord.__slots__}


def _partition_to_json(partition: PartitionState) -> dict[str, Any]:
    row = partition._asdict()
    topic, number = row.pop("topic_partition")
    return {
        "topic": topic,
        "partition": number,
        **row,
        **{nodes: list(row[nodes]) for nodes in ("isr", "replicas", "elr", "last_known_elr")},
    }


def _partition_from_json(row: Mapping[str, Any]) -> PartitionState:
    return PartitionState(
        topic_partition=TopicPartition(row["topic"], row["partition"]),
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=row["partition_epoch"],
        isr=tuple(row["isr"]),
        replicas=tuple(row["replicas"]),
        elr=tuple(row["elr"]),
        last_known_elr=tuple(row["last_known_elr"]),
        last_known_leader=row["last_known_leader"],
    )
