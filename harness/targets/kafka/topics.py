"""Creates the topics of a real cluster with the replica assignment of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.client_properties import Access
from harness.clients.topics import create_topic
from harness.model import NodeId, TopicPartition
from harness.target import ClusterView, ReplicaView, TopicSpec

TIMEOUT_S = 60.0
"""How long it may take to create a topic, and then again until all of its replicas are in sync."""


class Visible(Protocol):
    """The observing methods of :class:`harness.target.Target`."""

    def view(self) -> ClusterView:
        """The controller's view of it."""
        ...

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """A node's state of its replica."""
        ...


def create_assigned(bootstrap: str, topic: TopicSpec, kafka_ids: Sequence[int]) -> None:
    """Create the topic with its replicas on the brokers with these Kafka ids: broker 0 first.

    Raises:
        EnvironmentFault: the cluster refused, or did not answer in time.
    """
    wanted = assignment_of(topic, len(kafka_ids))
    assignment = tuple(tuple(NodeId(kafka_ids[node]) for node in replicas) for replicas in wanted)
    asked = TopicSpec(topic.name, topic.partitions, topic.replication_factor, assignment, topic.configs)
    create_topic(Access(bootstrap), asked, TIMEOUT_S)


def assignment_of(topic: TopicSpec, brokers: int) -> Sequence[Sequence[NodeId]]:
    """The brokers of each partition's replicas: as the topic assigns them, or round-robin over so many brokers."""
    return topic.assignment or tuple(
        tuple(NodeId((number + place) % brokers) for place in range(topic.replication_factor))
        for number in range(topic.partitions)
    )


def is_whole(cluster: Visible, topic: TopicSpec) -> bool:
    """Whether every partition has a leader that all of its replicas know, and all replicas are in the ISR."""
    return all(_is_whole(cluster, TopicPartition(topic.name, number)) for number in range(topic.partitions))


def _is_whole(cluster: Visible, name: TopicPartition) -> bool:
    partition = cluster.view().partitions.get(name)
    if partition is None or set(partition.isr) != set(partition.replicas):
        return False
    seen = [cluster.replica(str(node), name) for node in partition.replicas]
    return all(replica is not None and replica.leader == partition.leader for replica in seen)
