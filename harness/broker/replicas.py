"""The replicas that one broker hosts: the part of Kafka's ``ReplicaManager`` that its request handlers use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.broker.log_directory import LogDirectory
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.timeline import StorageRefusal
from harness.broker.topic_ids import TopicIds
from harness.model import NodeId, TopicPartition
from harness.replication.messages import ErrorCode, ReplicaEvent, SessionsHeard

MakePartition = Callable[[TopicPartition, LogDirectory], Partition]
"""Opens the replica of a partition in a log directory, or creates it there; raises ``OSError``."""

DirectoryFailed = Callable[[LogDirectory, str, StorageRefusal], None]
"""Takes a log directory that has failed, what the broker could not do there, and the refusal of storage."""


class Replicas:
    """The hosted replicas by partition.

    Args:
        node: the broker.
        metadata: what the broker knows of the cluster.
        cluster_id: part of every topic's id.
        make: see :data:`MakePartition`.
        failed: see :data:`DirectoryFailed`.

    Attributes:
        by_name: the replicas; only :meth:`open` adds to them.
    """

    def __init__(
        self, node: NodeId, metadata: ClusterMetadata, cluster_id: str, make: MakePartition, failed: DirectoryFailed
    ) -> None:
        self.node = node
        self.by_name: dict[TopicPartition, Partition] = {}
        self._metadata = metadata
        self._topic_ids = TopicIds(cluster_id)
        self._make = make
        self._failed = failed
        self._unavailable: set[TopicPartition] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self.by_name.values()))

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, name: TopicPartition) -> Partition | None:
        """The replica of ``name``; None when this broker hosts none: see :meth:`absence_of`."""
        return self.by_name.get(name)

    def within(self, directory: LogDirectory) -> list[Partition]:
        """The replicas that lie in ``directory``."""
        return [partition for partition in self.by_name.values() if partition.directory is directory]

    def topic_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: this broker has hosted no replica of it."""
        return self._topic_ids.name_of(topic_id)

    def absence_of(self, name: TopicPartition) -> ErrorCode:
        """The error that tells a client that this broker hosts no replica of ``name``."""
        if name in self._unavailable:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self._metadata.partition(*name) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def handle(self, event: ReplicaEvent) -> None:
        """Hand ``event`` to every replica."""
        for partition in self:
            partition.handle(event)

    def open(self, name: TopicPartition, directory: LogDirectory) -> Partition | None:
        """Open the replica of ``name`` in ``directory``, or create it there; None when storage refuses."""
        try:
            partition = self._make(name, directory)
        except OSError as error:
            self._failed(directory, f"open {name}", StorageRefusal(error.errno or 0, str(name), "open"))
            return None
        self.by_name[name] = partition
        partition.handle(SessionsHeard(self._metadata.sessions))
        self._unavailable.discard(name)
        self._topic_ids.of(name.topic)
        return partition

    def mark_unavailable(self, name: TopicPartition) -> None:
        """The replica of ``name`` may lie in a log directory that has failed."""
        self._unavailable.add(name)
