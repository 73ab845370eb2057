"""The replicas that one broker hosts: the part of Kafka's ``ReplicaManager`` that its request handlers use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.broker.log_directory import LogDirectory
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.timeline import StorageRefusal
from harness.broker.topic_config import Configs
from harness.broker.topic_ids import topic_id
from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.messages import ReplicaEvent, SessionsHeard

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
        by_name: the replicas; only :meth:`open` adds to them, and :meth:`delete` takes from them.
    """

    def __init__(
        self, node: NodeId, metadata: ClusterMetadata, cluster_id: str, make: MakePartition, failed: DirectoryFailed
    ) -> None:
        self.node = node
        self.by_name: dict[TopicPartition, Partition] = {}
        self._metadata = metadata
        self._cluster_id = cluster_id
        self._names: dict[bytes, str] = {}
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

    def id_of(self, partition: Partition) -> bytes:
        """The id of its topic."""
        return topic_id(self._cluster_id, partition.name.topic, partition.incarnation)

    def topic_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: this broker has hosted no replica of it."""
        return self._names.get(topic_id)

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
        self._names[self.id_of(partition)] = name.topic
        return partition

    def configure(self, partition: Partition, incarnation: int, configs: Configs) -> None:
        """Let a replica obey the configurations of its topic, as the controller has pushed them."""
        partition.configure(incarnation, configs)
        self._names[self.id_of(partition)] = partition.name.topic

    def learn_configs(self) -> None:
        """Let every replica obey the configurations that the controller has pushed with the metadata."""
        for partition in self:
            configs = self._metadata.configs.get(partition.name.topic)
            if configs is not None and partition.is_configured:
                partition.configure(partition.incarnation, configs)

    def delete(self, partition: Partition) -> bool:
        """Delete a replica with all that its directory has of it; False: storage refuses, and the directory fails."""
        try:
            partition.delete()
        except OSError as error:
            name = str(partition.name)
            self._failed(partition.directory, f"delete {name}", StorageRefusal(error.errno or 0, name, "delete"))
            return False
        del self.by_name[partition.name]
        self._names.pop(self.id_of(partition), None)
        return True

    def mark_unavailable(self, name: TopicPartition) -> None:
        """The replica of ``name`` may lie in a log directory that has failed."""
        self._unavailable.add(name)
