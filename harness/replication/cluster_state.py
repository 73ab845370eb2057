"""The durable state of the controller, and its form as plain JSON data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller_messages import DoomedReplica, PartitionState, TopicState
from harness.replication.knobs import Knobs

FORMAT_VERSION = 3


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

    Brokers, topics and partitions are in ascending order. ``deleted`` counts the topics of a name that were deleted,
    and ``doomed`` are their replicas that brokers still have to delete, in the order of the deletions.
    """

    controller_epoch: int = 0
    next_broker_epoch: int = 1
    next_producer_id: int = 0
    brokers: dict[NodeId, BrokerRecord] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    topics: dict[str, TopicState] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    doomed: tuple[DoomedReplica, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data that :meth:`from_json` understands."""
        return {
            "version": FORMAT_VERSION,
            "controller_epoch": self.controller_epoch,
            "next_broker_epoch": self.next_broker_epoch,
            "next_producer_id": self.next_producer_id,
            "brokers": [_broker_to_json(record) for record in self.brokers.values()],
            "partitions": [_partition_to_json(partition) for partition in self.partitions.values()],
            "topics": [[topic, incarnation, dict(configs)] for topic, incarnation, configs in self.topics.values()],
            "deleted": dict(self.deleted),
            "doomed": [[broker, *name, *rest] for broker, name, *rest in self.doomed],
        }

    @property
    def live_brokers(self) -> tuple[NodeId, ...]:
        """The brokers with a session, ascending."""
        return tuple([broker for broker, record in self.brokers.items() if record.live])

    def broker_error(self, broker: NodeId, broker_epoch: int) -> ErrorCode:
        """Why a request of a broker is refused that names this epoch; ``NONE`` when it is not."""
        known = self.brokers.get(broker)
        if known is None:
            return ErrorCode.BROKER_ID_NOT_REGISTERED
        return NO_ERROR if known.epoch == broker_epoch else ErrorCode.STALE_BROKER_EPOCH

    def register(self, record: BrokerRecord) -> None:
        """A broker, new or with a new registration."""
        self.brokers = dict(sorted({**self.brokers, record.broker: record}.items()))

    def create(self, partitions: Iterable[PartitionState]) -> None:
        """Partitions of a new topic."""
        created = {partition.topic_partition: partition for partition in partitions}
        self.partitions = dict(sorted({**self.partitions, **created}.items()))

    def configure(self, topic: str, configs: Mapping[str, str]) -> None:
        """A topic, perhaps a new one, has these configurations, by ascending name."""
        state = TopicState(topic, self.deleted.get(topic, 0), tuple(configs.items()))
        self.topics = dict(sorted({**self.topics, topic: state}.items()))

    def delete(self, topic: str, doomed: Iterable[DoomedReplica]) -> None:
        """A topic is gone but for its replicas."""
        self.partitions = {name: state for name, state in self.partitions.items() if name.topic != topic}
        del self.topics[topic]
        self.deleted[topic] = self.deleted.get(topic, 0) + 1
        self.doomed = (*self.doomed, *doomed)

    def check_invariants(self, sessions: Collection[NodeId], knobs: Knobs, *, may_be_empty: bool) -> None:
        """Assert what always holds; ``may_be_empty``: whether an ISR may have no member."""
        assert set(sessions) == set(self.live_brokers), f"sessions {sorted(sessions)}, live {self.live_brokers}"
        for partition in self.partitions.values():
            name, isr, elr = partition.topic_partition, set(partition.isr), set(partition.elr)
            assert isr | elr <= set(partition.replicas), f"{name}: ISR {isr} or ELR {elr} beyond replicas"
            assert not isr & elr, f"{name}: ISR {isr} and ELR {elr} overlap"
            if not knobs.empty_isr_retry:
                assert isr or may_be_empty, f"{name}: empty ISR"
                assert partition.leader in isr or partition.leader == NO_LEADER, f"{name}: leader outside {isr}"

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
            topics={
                topic: TopicState(topic, incarnation, tuple(configs.items()))
                for topic, incarnation, configs in state["topics"]
            },
            deleted=dict(state["deleted"]),
            doomed=tuple(
                DoomedReplica(broker, TopicPartition(topic, number), incarnation, epoch)
                for broker, topic, number, incarnation, epoch in state["doomed"]
            ),
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
