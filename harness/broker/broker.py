"""A broker: its partitions, its clients, its peers and its controller, on nothing but ports."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from harness.broker.checkpoints import HIGH_WATERMARKS, GarbledCheckpoint, format_high_watermarks, parse_high_watermarks
from harness.broker.controller_link import ControllerLink
from harness.broker.fetcher import Fetcher
from harness.broker.handlers import handlers
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.producer_ids import ProducerIds
from harness.broker.purgatory import Purgatory
from harness.broker.session import Sessions
from harness.broker.settings import Address, NodeConfig
from harness.broker.surroundings import Surroundings
from harness.broker.timeline import ReplicaState, StorageRefusal
from harness.model import CONTROLLER, NO_LEADER, NodeId, Offset, TopicPartition
from harness.replication.messages import AppendFailed, ErrorCode, PartitionStateChanged, ProposeIsr, ReplicaEvent, Tick

_EXIT_HALTED = 1
_MAX_TICK_MS = 250


class Broker:
    """One broker.

    Args:
        config: who it is.
        surroundings: what it lives on.
    """

    def __init__(self, config: NodeConfig, surroundings: Surroundings) -> None:
        self.node = config.node_id
        self.cluster_id = config.cluster_id
        self.settings = config.settings
        self.knobs = config.knobs
        self.network = surroundings.network
        self.files = surroundings.files
        self.clock = surroundings.clock
        self.timeline = surroundings.timeline
        self.say = surroundings.say
        self.partitions: dict[TopicPartition, Partition] = {}
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
        self._checkpointed: dict[TopicPartition, Offset] = {}

    # ------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover the logs, listen, and register with the controller."""
        self._checkpointed = self._read_high_watermarks()
        for directory in self.files.list(""):
            topic, dash, number = directory.rpartition("-")
            if dash and number.isdecimal():
                self._open(TopicPartition(topic, int(number)))
        self.network.listen(self._config.listener, Sessions(handlers(self)).accept)
        self.say(f"Started with {len(self.partitions)} replicas, incarnation {self._config.incarnation}.")
        self.controller.start()
        self._every(min(self.settings.replica_lag_time_max_ms // 2, _MAX_TICK_MS), self._tick)
        self._every(self.settings.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks)

    def stop(self) -> None:
        """Answer waiting fetches, write the high watermarks down, and close the logs."""
        self.consumer_fetches.expire_all()
        self.follower_fetches.expire_all()
        self._checkpoint_high_watermarks()
        for partition in self.partitions.values():
            partition.log.close()

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        return {
            "registered": self.controller.registered,
            "controller_epoch": self._controller_epoch,
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
                self.network.call_later(interval_ms / 1000, again)

        self.network.call_later(interval_ms / 1000, again)

    def _tick(self) -> None:
        self._all_handle(Tick(kafka_time_ns(self.clock)))

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
        if controller_epoch < self._controller_epoch or session < self._controller_session:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if not self.controller.registered or 0 <= broker_epoch < self.controller.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        self._controller_epoch = controller_epoch
        self._controller_session = session
        return ErrorCode.NONE

    def learn_leaders(self, leaders: dict[NodeId, Address]) -> None:
        """Where leaders are reached."""
        self._leaders.update(leaders)

    def change_state(self, name: TopicPartition, state: PartitionStateChanged) -> ErrorCode:
        """Lead or follow ``name``, which is created when it is new."""
        partition = self.partitions.get(name) or self._open(name)
        if partition is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition.handle(state)
        return ErrorCode.KAFKA_STORAGE_ERROR if partition.replica.role == "offline" else ErrorCode.NONE

    def absence_of(self, name: TopicPartition) -> ErrorCode:
        """How to say that there is no replica of ``name`` here."""
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

    def storage_failed(self, refusal: StorageRefusal, reason: str) -> None:
        """See :class:`harness.broker.partition.Owner`. A broker whose only log directory fails halts, as Kafka's."""
        if self._halted:
            return
        self._halted = True
        self._all_handle(AppendFailed(refusal.errno))
        if refusal.errno:
            self.say(f"Halting: the log directory failed with errno {refusal.errno}.")
            self.timeline.about_node("storage_failed", refusal._asdict())
        else:
            self.say(f"Halting: {reason}.")
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
            fetcher = Fetcher(self._config, self._surroundings, state.leader, address)
            self._fetchers[state.leader] = fetcher
        fetcher.add(partition)

    def _open(self, name: TopicPartition) -> Partition | None:
        try:
            partition = Partition(self, name, self._checkpointed.get(name, 0))
        except OSError as error:
            self.say(f"Storage failed: cannot open {name}: {error.strerror}.")
            self.storage_failed(StorageRefusal(error.errno or 0, str(name), "open"), f"{name} cannot be opened")
            return None
        self.partitions[name] = partition
        return partition

    # ------------------------------------------------------------------------------------ checkpoints

    def _read_high_watermarks(self) -> dict[TopicPartition, Offset]:
        text = self.files.read_text(HIGH_WATERMARKS)
        try:
            return parse_high_watermarks(text) if text is not None else {}
        except GarbledCheckpoint as error:
            self.say(f"Ignored the garbled {HIGH_WATERMARKS} ({error}); high watermarks start at 0.")
            return {}

    def _checkpoint_high_watermarks(self) -> None:
        watermarks = {name: partition.replica.high_watermark for name, partition in self.partitions.items()}
        try:
            self.files.replace_text(HIGH_WATERMARKS, format_high_watermarks(watermarks), flush=False)
        except OSError as error:
            self.say(f"Storage failed: cannot checkpoint the high watermarks: {error.strerror}.")
            refusal = StorageRefusal(error.errno or 0, None, "checkpoint high watermarks")
            self.storage_failed(refusal, "high watermarks cannot be checkpointed")
