"""A broker's metadata cache, which the controller updates with ``UpdateMetadata`` and clients query."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.broker.settings import Address
from harness.broker.topic_config import Configs
from harness.broker.topic_ids import topic_id
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.wire.messages.control import (
    LeaderAndIsrTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from harness.wire.messages.metadata import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic


@dataclass(slots=True)
class ClusterMetadata:
    """The latest picture. It may be old: a cut-off broker answers with what it last received.

    Attributes:
        controller_epoch: of the controller that drew it; -1 before the first.
        brokers: live brokers and their listeners.
        topics: ``topics[name][partition]``.
        cluster_id: part of every topic's id.
        tells_epochs: whether clients get leader epochs (KIP-320, Kafka 2.1).
        sessions: the live brokers, each with the epoch that it is registered with.
        version: how often it was drawn again.
        configs: of each topic, those that are not the cluster's.
    """

    cluster_id: str
    tells_epochs: bool
    controller_epoch: int = -1
    brokers: dict[NodeId, Address] | None = None
    topics: dict[str, dict[int, UpdateMetadataPartitionState]] | None = None
    sessions: tuple[tuple[NodeId, int], ...] = ()
    version: int = 0
    configs: dict[str, Configs] = field(default_factory=dict)
    _incarnations: dict[str, int] = field(default_factory=dict)
    _names: dict[bytes, str] = field(default_factory=dict)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Replace everything: each ``UpdateMetadata`` is the whole cluster."""
        self.version += 1
        self.controller_epoch = request.controller_epoch
        self.brokers = {
            NodeId(broker.id): (endpoint.host, endpoint.port)
            for broker in request.live_brokers
            for endpoint in broker.endpoints[:1]
        }
        self.sessions = tuple((NodeId(broker.id), broker.broker_epoch) for broker in request.live_brokers)
        self.topics = {
            topic.topic_name: {state.partition_index: state for state in topic.partition_states}
            for topic in request.topic_states
        }
        self.configs = {topic.topic_name: configs_in(topic) for topic in request.topic_states}
        self._incarnations = {topic.topic_name: topic.incarnation for topic in request.topic_states}
        self._names = {self._id_of(name): name for name in self.topics}

    def _id_of(self, topic: str) -> bytes:
        return topic_id(self.cluster_id, topic, self._incarnations[topic])

    def live_brokers(self) -> list[MetadataResponseBroker]:
        """The live brokers by id, for a Metadata response."""
        return [MetadataResponseBroker(node, *address) for node, address in sorted((self.brokers or {}).items())]

    def names(self) -> list[str]:
        """Every topic, sorted."""
        return sorted(self.topics or {})

    def topic_id(self, topic: str) -> bytes | None:
        """The id of a topic; None when it is not known."""
        return topic_id(self.cluster_id, topic) if self.knows(topic) else None

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None when it is not known."""
        return self._names.get(topic_id)

    def knows(self, topic: str, partition: int | None = None) -> bool:
        """Whether there is such a topic, or such a partition."""
        partitions = (self.topics or {}).get(topic)
        return partitions is not None and (partition is None or partition in partitions)

    def is_deleted(self, topic: str) -> bool:
        """Whether a topic that there was is gone; before the first ``UpdateMetadata`` that is not known of any."""
        return self.topics is not None and topic not in self.topics

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 when it is not known."""
        return len((self.topics or {}).get(topic, ()))

    def address(self, node: int) -> Address | None:
        """The listener of a live broker; None when it is not known."""
        return (self.brokers or {}).get(NodeId(node))

    def partition(self, topic: str, partition: int) -> UpdateMetadataPartitionState | None:
        """One partition's state; None when it is not known."""
        return (self.topics or {}).get(topic, {}).get(partition)

    def topic(self, name: str) -> MetadataResponseTopic:
        """One topic for a Metadata response; UNKNOWN_TOPIC_OR_PARTITION when it is not known."""
        if not self.knows(name):
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        states = (self.topics or {})[name]
        return MetadataResponseTopic(
            ErrorCode.NONE,
            name,
            self._id_of(name),
            is_internal=name in INTERNAL_TOPICS,
            partitions=[self._partition(states[number]) for number in sorted(states)],
        )

    def _partition(self, state: UpdateMetadataPartitionState) -> MetadataResponsePartition:
        # A leader that is not alive is no leader to a client: Kafka answers LEADER_NOT_AVAILABLE then.
        live = state.leader in (self.brokers or {})
        return MetadataResponsePartition(
            ErrorCode.NONE if live else ErrorCode.LEADER_NOT_AVAILABLE,
            state.partition_index,
            state.leader if live else NO_LEADER,
            state.leader_epoch if self.tells_epochs else -1,
            state.replicas,
            state.isr,
            [node for node in state.replicas if node not in (self.brokers or {}) or node in state.offline_replicas],
        )


def configs_in(topic: LeaderAndIsrTopicState | UpdateMetadataTopicState) -> Configs:
    """The configurations of a topic that the controller has pushed."""
    return tuple((config.name, config.value) for config in topic.configs)
