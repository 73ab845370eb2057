"""Finds or creates the replicas that the controller assigns to a broker with LeaderAndIsr."""

from __future__ import annotations

from harness.broker.controller_link import ControllerLink
from harness.broker.log_directories import LogDirectories
from harness.broker.partition import Partition
from harness.broker.replicas import Replicas
from harness.model import TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.messages import PartitionStateChanged


class ReplicaPlacement:
    """Creates replicas in the log directories of one broker.

    Args:
        replicas: of the broker.
        directories: of the broker.
        controller: takes the log directory of a replica that the broker has created anew.
        knobs: of the generation.

    Attributes:
        replicas: as above.
    """

    def __init__(
        self, replicas: Replicas, directories: LogDirectories, controller: ControllerLink, knobs: Knobs
    ) -> None:
        self.replicas = replicas
        self._directories = directories
        self._controller = controller
        self._knobs = knobs

    @property
    def may_hide_replicas(self) -> bool:
        """Whether there may be replicas in log directories that cannot be used."""
        return bool(self._directories.offline_ids)

    def replica_of(self, name: TopicPartition, state: PartitionStateChanged, *, is_new: bool) -> Partition | None:
        """The replica that ``state`` is for; one that ``is_new``, or that no log directory holds, is created.

        None: its log directory has failed.
        """
        partition = self._find(name, state, is_new=is_new)
        if partition is None:
            self.replicas.mark_unavailable(name)
        return partition

    def _find(self, name: TopicPartition, state: PartitionStateChanged, *, is_new: bool) -> Partition | None:
        partition = self.replicas.get(name)
        if partition is None:
            may_be_offline = self.may_hide_replicas and not is_new
            return None if may_be_offline else self._create(name, is_new=is_new)
        is_news = state.partition_epoch > partition.replica.partition_epoch
        if self._knobs.recreated_elsewhere and is_news and not partition.directory.online:
            return self._create(name) or partition
        return partition

    def _create(self, name: TopicPartition, *, is_new: bool = False) -> Partition | None:
        """Create a replica; where the generation has it so, tell the controller where one lies that is not new."""
        directory = self._directories.emptiest(partition.directory for partition in self.replicas)
        created = None if directory is None else self.replicas.open(name, directory)
        if created is not None and not is_new and self._knobs.placing_forgets_eligible:
            log_dir = self._directories.id_of(created.directory)
            self._controller.place(name.partition, self.replicas.id_of(created), log_dir)
        return created
