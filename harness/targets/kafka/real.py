"""The part of a target that is the same for every way to run real Kafka: its topics, observation and evidence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.history.blocks import Block
from harness.model import NodeId, Offset, TopicPartition, node_id
from harness.target import ClusterView, Leadership, ReplicaView, TopicSpec
from harness.targets.kafka.electing import Electing
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.timeline_sampler import TimelineSampler
from harness.targets.kafka.topics import TIMEOUT_S, is_whole
from harness.targets.owned_nodes import OwnedNodes, SomeNode
from harness.targets.replica_logs import ReplicaDisk, metadata_log_blocks, replica_log_blocks


class RealKafka(OwnedNodes[SomeNode]):
    """The methods of :class:`harness.target.Target` that all targets of real Kafka share."""

    def __init__(self) -> None:
        self._topics: set[str] = set()

    @property
    @abstractmethod
    def _has_begun(self) -> bool:
        """Whether the cluster has started far enough to leave evidence."""

    @property
    @abstractmethod
    def observation(self) -> ClusterObservation:
        """Observes the running cluster."""

    @property
    @abstractmethod
    def sampler(self) -> TimelineSampler:
        """Samples the timeline of the running cluster."""

    @abstractmethod
    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""

    @abstractmethod
    def brokers(self) -> list[str]:
        """The names of the brokers that hold replicas, in order."""

    @abstractmethod
    def _create_topic(self, topic: TopicSpec) -> None:
        """Ask for the topic, with its replicas on the brokers proper."""

    @abstractmethod
    def _disk(self, broker: str) -> Path:
        """Where the files of a broker are read when the cluster has stopped."""

    @abstractmethod
    def _metadata_logs(self) -> Mapping[NodeId, Path]:
        """The copies of KRaft's metadata log then, by the node that has them; not each need exist."""

    # ------------------------------------------------------------------------------------------------ topics

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        self._create_topic(topic)
        self._topics.add(topic.name)
        complaint = f"topic {topic.name!r} does not have a leader and a full ISR everywhere"
        self._await(complaint, lambda: is_whole(self, topic), TIMEOUT_S)

    # ------------------------------------------------------------------------------------------------ observation

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        return self.observation.view()

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """See :class:`harness.observations.KnowsLeaders`: what the sampler has read; this does not make one."""
        sampler: TimelineSampler | None = vars(self).get("sampler")
        return {} if sampler is None else sampler.known_leaders()

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        return self.observation.replica(node, partition) if self._goes_on(node) else None

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        return self.observation.committed(group)

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        Electing(self.observation).elect(partition, leader, unclean=unclean)

    # ------------------------------------------------------------------------------------------------ evidence

    def timeline(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        return self.sampler.rows(run) if self._has_begun else iter(())

    def replica_logs(self) -> Iterator[Block]:
        """See :class:`harness.target.Target`.

        The logs of the topics that it created, and of KRaft's metadata log; not of Kafka's other topics.
        """
        brokers = self.brokers() if self._has_begun else ()
        yield from replica_log_blocks(
            (ReplicaDisk(node_id(name), self._disk(name), self.sampler.last_log_starts(name)) for name in brokers),
            self._topics,
        )
        for node, directory in self._metadata_logs().items():
            yield from metadata_log_blocks(node, directory)
