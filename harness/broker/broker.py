"""A broker: its partitions, its clients, its peers and its controller, on nothing but ports."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from harness.broker.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from harness.broker.complaints import Complaints
from harness.broker.control_channel import Operation
from harness.broker.controller_link import ControllerLink
from harness.broker.fetcher import Fetcher
from harness.broker.handlers import handlers
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.log_directories import LogDirectories
from harness.broker.log_directory import LogDirectory
from harness.broker.metadata import ClusterMetadata
from harness.broker.node_environment import NodeEnvironment
from harness.broker.partition import Partition
from harness.broker.producer_ids import ProducerIds
from harness.broker.purgatory import Purgatory
from harness.broker.session import Sessions
from harness.broker.settings import Address, NodeConfig
from harness.broker.timeline import ReplicaState, StorageRefusal
from harness.broker.topic_ids import TopicIds
from harness.model import CONTROLLER, NO_LEADER, NodeId, Offset, TopicPartition
from harness.replication.messages import (
    AppendFailed,
    ErrorCode,
    PartitionStateChanged,
    ProposeIsr,
    ReplicaEvent,
    SessionsHeard,
    Tick,
)
from harness.wire.messages import UpdateMetadataRequest

_EXIT_HALTED = 1
_MAX_TICK_MS = 250


class Broker:
    """One broker.

    Args:
        config: who it is.
        surroundings: what it lives on.

    Attributes:
        partition_type: what holds its replicas; somebody who wants to watch them sets another.
    """

    partition_type: ClassVar[type[Partition]] = Partition

    def __init__(self, config: NodeConfig, surroundings: NodeEnvironment) -> None:
        self.node = config.node_id
        self.cluster_id = config.cluster_id
        self.settings = config.settings
        self.knobs = config.knobs
        self.network = surroundings.network
        self.clock = surroundings.clock
        self.timeline = surroundings.timeline
        self.say = surroundings.say
        self.partitions: dict[TopicPartition, Partition] = {}
        self.topic_ids = TopicIds(config.cluster_id)
        self.metadata = ClusterMetadata(config.cluster_id, tells_epochs=config.knobs.fetch_fencing)
        self.consumer_fetches = Purgatory(self.network)
        self.follower_fetches = Purgatory(self.network)
        incarnation_id = struct.pack(">qq", config.incarnation, self.clock.monotonic_ns())
        self.controller = ControllerLink(config, self.network, incarnation_id, self.say)
        self.producer_ids = ProducerIds(self.controller)
        self._config = config
        self._surroundings = surroundings
        self._halted = False
        self._fetchers: dict[NodeId, Fetcher] = {}
        self._leaders: dict[NodeId, Address] = {}
        self._controller_epoch = -1
        self._controller_session = -1
        self._sessions = Sessions(
            handlers(self), surroundings.report, Complaints(self.say, self.clock).about, serves_clients=False
        )
        self.directories = LogDirectories(config, surroundings.files, self.say)
        self._unreachable: set[TopicPartition] = set()

    # ------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover the logs, listen, and register with the controller."""
        self._load()
        if self._halted:
            return
        self.network.listen(self._config.listener, self._sessions.accept)
        self.say(f"Started with {len(self.partitions)} replicas, incarnation {self._config.incarnation}.")
        self.controller.start(self.directories.previous_broker_epoch, self.directories.offline_ids)
        settings = self.settings
        self._every(min(settings.replica_lag_time_max_ms // 2, _MAX_TICK_MS), self._tick)
        self._every(settings.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks)
        self._every(settings.log_flush_offset_checkpoint_interval_ms, self._checkpoint_recovery_points)
        self._every(settings.log_flush_start_offset_checkpoint_interval_ms, self._checkpoint_log_starts)
        self._every(settings.log_retention_check_interval_ms, self._retire)

    def stop(self) -> None:
        """Answer waiting fetches, flush the logs, write down what a clean shutdown writes down, and close."""
        self.consumer_fetches.expire_all()
        self.follower_fetches.expire_all()
        for partition in self.partitions.values():
            partition.flush()
        self._checkpoint_recovery_points()
        self._checkpoint_log_starts()
        self._checkpoint_high_watermarks()
        life = self.controller.broker_epoch, self._config.incarnation
        for directory in self.directories.online if not self._halted else ():
            self._write(directory, "mark the shutdown as clean", partial(directory.close, *life))
        for partition in self.partitions.values():
            partition.log.close()

    def operations(self) -> dict[str, Operation]:
        """See :class:`harness.broker.node.Node`."""
        return {}

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        return {
            "registered": self.controller.registered,
            "known_brokers": sorted(self.metadata.brokers or ()),
            "controller_epoch": self._controller_epoch,
            "log_dirs": [{"errno": directory.failure} for directory in self.directories],
            "replicas": [self.partitions[name].status() for name in sorted(self.partitions)],
        }

    def address_of(self, node: str) -> Address:
        """The listener of another node; brokers of one cluster all listen at the same port.

        Raises:
            ValueError: there is no such node.
        """
        if node == CONTROLLER:
            return self._config.controller
        for host, name in self._config.names.items():
            if name == node:
                return host, self._config.listener[1]
        raise ValueError(f"there is no node {node!r}")

    def _every(self, interval_ms: int, act: Callable[[], None]) -> None:
        def again() -> None:
            if not self._halted:
                act()
                self.network.call_later(max(interval_ms, 1) / 1000, again)

        self.network.call_later(max(interval_ms, 1) / 1000, again)

    def _tick(self) -> None:
        self._all_handle(Tick(kafka_time_ns(self.clock)))
        for partition in list(self.partitions.values()):
            partition.flush_when_due()

    def _retire(self) -> None:
        for partition in list(self.partitions.values()):
            partition.retire()

    def _load(self) -> None:
        """Open every log in every directory."""
        for directory in self.directories:
            self._write(directory, "load the logs", partial(self._load_from, directory))
        if self._halted:
            return
        if self._config.faults.dies_while_loading:
            self.say("Fault: dying while the logs are being loaded.")
            self._halted = True
            self._surroundings.halt(_EXIT_HALTED)
            return
        for directory in self.directories.online:
            self._write(directory, "remove the marker of a clean shutdown", directory.loaded)

    def _load_from(self, directory: LogDirectory) -> None:
        directory.load()
        self.say(f"The last shutdown was {'' if directory.clean else 'not '}clean.")
        for name in directory.partitions():
            other = self.partitions.get(name)
            if other is not None:
                numbers = f"{other.directory.number} and {directory.number}"
                self._halt(f"{name} lies in log directories {numbers}; remove it from the one that has failed recently")
            elif directory.online:
                self._open(name, directory)

    def _all_handle(self, event: ReplicaEvent) -> None:
        for partition in list(self.partitions.values()):
            partition.handle(event)

    # ------------------------------------------------------------------------------------ the controller's word

    def refusal_of_controller(self, session: int, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Whether a controller's request must be refused: it is from an older controller, connection or life of ours.

        Connections count because a mended link may deliver what an abandoned connection had carried, after what
        its successor has brought. Before it is registered, a broker obeys nobody: what reaches it then was meant for
        an earlier life, whose log it may not have any more. The controller says it again until it is obeyed.
        """
        is_older = controller_epoch < self._controller_epoch or session < self._controller_session
        if is_older and self.knobs.controller_epoch_fencing:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if not self.controller.registered or 0 <= broker_epoch < self.controller.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        self._controller_epoch = controller_epoch
        self._controller_session = session
        return ErrorCode.NONE

    def learn_leaders(self, leaders: dict[NodeId, Address]) -> None:
        """Where leaders are reached."""
        self._leaders.update(leaders)

    def learn_metadata(self, metadata: UpdateMetadataRequest) -> None:
        """What clients are told from now on, and what replicas know of who has a session.

        Until a broker has heard it for the first time in its life it serves no clients: it would tell them that there
        is no broker and no topic. A broker of Kafka begins to process requests when it has caught up with the metadata
        (KRaft), or when all of it has started and it is registered (ZooKeeper).
        """
        before = self.metadata.sessions
        self.metadata.update(metadata)
        self._sessions.serve_clients()
        if self.metadata.sessions != before:
            self._all_handle(SessionsHeard(self.metadata.sessions))

    def change_state(self, name: TopicPartition, state: PartitionStateChanged, *, is_new: bool) -> ErrorCode:
        """Lead or follow ``name``; a replica that ``is_new``, or that no directory holds, is created."""
        partition = self._partition_for(name, state, is_new=is_new)
        if partition is None:
            self._unreachable.add(name)
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition.handle(state)
        return ErrorCode.KAFKA_STORAGE_ERROR if partition.replica.role == "offline" else ErrorCode.NONE

    def _partition_for(self, name: TopicPartition, state: PartitionStateChanged, *, is_new: bool) -> Partition | None:
        partition = self.partitions.get(name)
        if partition is None:
            may_be_offline = bool(self.directories.offline_ids) and not is_new
            return None if may_be_offline else self._create(name, is_new=is_new)
        is_news = state.partition_epoch > partition.replica.partition_epoch
        if self.knobs.recreated_elsewhere and is_news and not partition.directory.online:
            return self._create(name) or partition
        return partition

    def absence_of(self, name: TopicPartition) -> ErrorCode:
        """How to say that there is no replica of ``name`` here."""
        if name in self._unreachable:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self.metadata.partition(*name) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # ------------------------------------------------------------------------------------ for partitions

    def propose_isr(self, partition: Partition, proposal: ProposeIsr) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        self.say(f"Proposing ISR {list(proposal.isr)} for {partition.name}, leader epoch {proposal.leader_epoch}.")
        self.controller.propose_isr(partition.name, proposal, partition.handle)

    def replica_changed(self, partition: Partition, before: ReplicaState, after: ReplicaState) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        moved = (before.role, before.leader, before.leader_epoch) != (after.role, after.leader, after.leader_epoch)
        if moved:
            self.say(
                f"{partition.name}: {after.role} in leader epoch {after.leader_epoch}, leader {after.leader}, "
                f"log end {after.log_end_offset}, high watermark {after.high_watermark}."
            )
            self._follow(partition, after)
        if before.isr != after.isr:
            self.say(f"{partition.name}: ISR {list(after.isr)}, partition epoch {after.partition_epoch}.")
        if moved or before.log_end_offset != after.log_end_offset:
            self.follower_fetches.wake(partition.name)
        if moved or before.high_watermark != after.high_watermark:
            self.consumer_fetches.wake(partition.name)

    def storage_refused(self) -> None:
        """See :class:`harness.broker.partition.Owner`.

        Since log directories fail on their own (KIP-112) a broker answers what it can no longer do; before, it was
        gone (``Runtime.halt``) without another word.
        """
        if self.knobs.disk_full == "halt_broker":
            self._sessions.silence()

    def storage_failed(self, directory: LogDirectory, refusal: StorageRefusal) -> None:
        """See :class:`harness.broker.partition.Owner`.

        Since KIP-112 the directory goes offline with all its replicas, and the controller hears of it; before, and
        when it was the last one, the broker halts.
        """
        if self._halted or not directory.online:
            return
        directory.failure = refusal.errno
        halts = self.knobs.disk_full == "halt_broker" or not self.directories.online
        for partition in list(self.partitions.values()):
            if halts or partition.directory is directory:
                partition.handle(AppendFailed(refusal.errno))
        row = refusal._replace(log_dir=directory.number, halts=halts)
        self.timeline.about_node("storage_failed", row._asdict())
        if halts:
            self._halt(f"the log directory failed with errno {refusal.errno}")
        else:
            self.say(f"Log directory {directory.number} is offline: it failed with errno {refusal.errno}.")
            self.controller.report_offline(self.directories.offline_ids)

    def protocol_failed(self, reason: str) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        self._halt(reason)
        self._all_handle(AppendFailed(0))

    def _halt(self, reason: str) -> None:
        if not self._halted:
            self._halted = True
            self.say(f"FATAL: Halting: {reason}.")
            self._surroundings.halt(_EXIT_HALTED)

    def _follow(self, partition: Partition, state: ReplicaState) -> None:
        """Fetch ``partition`` from its leader, and from nobody else."""
        for other in self._fetchers.values():
            other.remove(partition.name)
        if state.role != "follower" or state.leader in (NO_LEADER, self.node):
            return
        address = self._leaders.get(state.leader) or self.address_of(str(state.leader))
        fetcher = self._fetchers.get(state.leader)
        if fetcher is None or fetcher.address != address:
            fetcher = Fetcher(
                self._config, self._surroundings, state.leader, address, lambda: self.controller.broker_epoch
            )
            self._fetchers[state.leader] = fetcher
        fetcher.add(partition)

    def _create(self, name: TopicPartition, *, is_new: bool = False) -> Partition | None:
        """Make a replica; the controller is told where one that is not new now is, if it makes anything of that."""
        directory = self.directories.emptiest(partition.directory for partition in self.partitions.values())
        created = None if directory is None else self._open(name, directory)
        if created is not None and not is_new and self.knobs.placing_forgets_eligible:
            self.controller.place(name, self.directories.id_of(created.directory))
        return created

    def _open(self, name: TopicPartition, directory: LogDirectory) -> Partition | None:
        try:
            partition = self.partition_type(self, name, directory)
        except OSError as error:
            self._complain(directory, f"open {name}", StorageRefusal(error.errno or 0, str(name), "open"))
            return None
        self.partitions[name] = partition
        partition.handle(SessionsHeard(self.metadata.sessions))
        self._unreachable.discard(name)
        self.topic_ids.of(name.topic)
        return partition

    # ------------------------------------------------------------------------------------ checkpoints

    def _checkpoint_high_watermarks(self) -> None:
        self._checkpoint(HIGH_WATERMARKS, "high watermarks", lambda partition: partition.replica.high_watermark)

    def _checkpoint_recovery_points(self) -> None:
        self._checkpoint(RECOVERY_POINTS, "recovery points", lambda partition: partition.log.recovery_point)

    def _checkpoint_log_starts(self) -> None:
        self._checkpoint(LOG_STARTS, "log starts", lambda partition: partition.log.log_start_offset)

    def _checkpoint(self, file: str, what: str, offset: Callable[[Partition], Offset]) -> None:
        """Write one checkpoint into every directory: of the replicas that lie there."""
        for directory in self.directories.online:
            here = [partition for partition in self.partitions.values() if partition.directory is directory]
            offsets = {partition.name: offset(partition) for partition in here}
            self._write(directory, f"checkpoint the {what}", partial(directory.write, file, offsets))

    def _write(self, directory: LogDirectory, what: str, write: Callable[[], None]) -> None:
        """Read or write something beside the logs of ``directory``, which is offline if that does not work."""
        try:
            write()
        except OSError as error:
            self._complain(directory, what, StorageRefusal(error.errno or 0, None, what))

    def _complain(self, directory: LogDirectory, what: str, refusal: StorageRefusal) -> None:
        self.storage_refused()
        self.say(f"Storage failed: cannot {what}: {os.strerror(refusal.errno)}.")
        self.storage_failed(directory, refusal)
