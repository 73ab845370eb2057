"""A broker: serves clients and replicates, on nothing but the ports of :mod:`.ports`."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from harness.broker.complaints import Complaints
from harness.broker.control_channel import Operation
from harness.broker.controller_fence import ControllerFence
from harness.broker.controller_link import ControllerLink
from harness.broker.controller_pushes import leader_and_isr, stop_replica, update_metadata
from harness.broker.coordinator_log import appends
from harness.broker.deletion import DeletionServices, delete_records
from harness.broker.describe_client_quotas import describe_client_quotas
from harness.broker.describe_configs import describe_configs
from harness.broker.describe_log_dirs import describe_log_dirs
from harness.broker.describe_metadata import metadata
from harness.broker.describe_transactions import describe_producers, describe_transactions, list_transactions
from harness.broker.fetch import FetchPurgatories, FetchServices, fetch
from harness.broker.fetcher import Fetcher
from harness.broker.find_coordinator import find_coordinator
from harness.broker.forwarding import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
)
from harness.broker.group_coordinator import GroupCoordinator
from harness.broker.group_requests import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.log_cleaner import LogCleaner
from harness.broker.log_directories import LogDirectories
from harness.broker.log_directory import LogDirectory
from harness.broker.log_manager import LogManager
from harness.broker.marker_sender import MarkerRoutes
from harness.broker.metadata import ClusterMetadata
from harness.broker.node_environment import NodeEnvironment
from harness.broker.offsets import list_offsets, offset_for_leader_epoch
from harness.broker.partition import Partition
from harness.broker.peers import Peers
from harness.broker.produce import ProduceRules, ProduceServices, produce
from harness.broker.producer_ids import ProducerIds
from harness.broker.purgatory import Purgatory
from harness.broker.replica_fetchers import ReplicaFetchers
from harness.broker.replica_placement import ReplicaPlacement
from harness.broker.replicas import Replicas
from harness.broker.served_versions import served_by
from harness.broker.session import Handle, Sessions, answer_api_versions, only_from
from harness.broker.settings import Address, NodeConfig
from harness.broker.timeline import ReplicaState, StorageRefusal
from harness.broker.transaction_coordinator import TransactionCoordinator
from harness.broker.transaction_markers import MarkerServices, write_txn_markers
from harness.broker.transaction_requests import (
    OffsetsInTransactions,
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from harness.broker.transaction_verifier import TransactionVerifier
from harness.model import CONTROLLER, NodeId, TopicPartition
from harness.replication.messages import AppendFailed, ProposeIsr, SessionsHeard, Tick
from harness.wire.keys import ApiKey
from harness.wire.messages.control import UpdateMetadataRequest

_EXIT_HALTED = 1
_MAX_TICK_MS = 250


class Broker:
    """One broker: makes the services of its request handlers, and reacts to what its partitions report.

    Args:
        config: its identity and settings.
        environment: its ports.

    Attributes:
        handlers: serves each API.
    """

    def __init__(self, config: NodeConfig, environment: NodeEnvironment) -> None:
        self.node = config.node_id
        self.settings = config.settings
        self.knobs = config.knobs
        self.network = environment.network
        self.clock = environment.clock
        self.timeline = environment.timeline
        self.say = environment.supervisor.say
        self._config = config
        self._exit = environment.supervisor.halt
        self._halted = False
        self.metadata = ClusterMetadata(config.cluster_id, tells_epochs=config.knobs.fetch_fencing)
        self.consumer_fetches = Purgatory(self.network)
        self.follower_fetches = Purgatory(self.network)
        incarnation_id = struct.pack(">qq", config.incarnation, self.clock.monotonic_ns())
        self.controller = ControllerLink(config, self.network, incarnation_id, self.say)
        self.directories = LogDirectories(config, environment.files, self.say)
        self._replicas = Replicas(
            self.node, self.metadata, config.cluster_id, self.new_partition, self._directory_failed
        )
        self._logs = LogManager(self._replicas, self.directories, self.say, self._directory_failed, self._halt)
        self._cleaner = LogCleaner(self, self._replicas, self._directory_failed)
        self._fetchers = ReplicaFetchers(config, self._fetcher)
        self._groups = GroupCoordinator(self, config)
        producer_ids, self._markers = ProducerIds(self.controller), self._marker_services()
        self._transactions = self._transaction_coordinator(producer_ids)
        verifier = self._transaction_verifier()
        self._fence = ControllerFence(self.controller, fences_epochs=config.knobs.controller_epoch_fencing)
        self.handlers: Mapping[ApiKey, Handle] = {
            ApiKey.API_VERSIONS: answer_api_versions,
            **self._handlers_for_clients(verifier),
            **self._handlers_for_groups(),
            **self._handlers_for_transactions(producer_ids, verifier),
            **{key: only_from(CONTROLLER.__eq__, handle) for key, handle in self._handlers_for_controller().items()},
        }
        complain = Complaints(self.say, self.clock).about
        self._sessions = Sessions(
            self.handlers, environment.supervisor.report, complain, serves_clients=False, served=served_by(self.knobs)
        )

    def new_partition(self, name: TopicPartition, directory: LogDirectory) -> Partition:
        """A replica of this broker, whose arguments are as of :class:`Partition`; a simulation may observe it."""
        return Partition(self, name, directory)

    def _fetcher(self, leader: NodeId, address: Address) -> Fetcher:
        return Fetcher(
            self._config, leader, address,
            network=self.network, clock=self.clock, say=self.say, broker_epoch=lambda: self.controller.broker_epoch,
        )  # fmt: skip

    def _marker_services(self) -> MarkerServices:
        return MarkerServices(
            self._replicas, self.network, self.clock, self._groups, appends(self, self._config), self.knobs
        )

    def _transaction_coordinator(self, producer_ids: ProducerIds) -> TransactionCoordinator:
        # Leaders answer markers late, and answers keep their order: connections of their own.
        routes = MarkerRoutes(self.node, self.metadata, self.network, Peers(self._config, self.network), self._markers)
        return TransactionCoordinator(self, self._config, producer_ids, routes)

    def _transaction_verifier(self) -> TransactionVerifier | None:
        if self.knobs.transactions not in ("verified", "numbered"):
            return None
        return TransactionVerifier(self.node, self.metadata, Peers(self._config, self.network), self._transactions)

    def _handlers_for_clients(self, verifier: TransactionVerifier | None) -> dict[ApiKey, Handle]:
        replicas, network, clock, knobs = self._replicas, self.network, self.clock, self.knobs
        purgatories = FetchPurgatories(self.consumer_fetches, self.follower_fetches)
        producing = ProduceServices(replicas, self.metadata, network, clock, verifier)
        fetching = FetchServices(replicas, self.metadata, purgatories, network, clock, knobs)
        return {
            ApiKey.PRODUCE: partial(produce, producing, ProduceRules(self.settings, knobs)),
            ApiKey.FETCH: partial(fetch, fetching),
            ApiKey.LIST_OFFSETS: partial(list_offsets, replicas, knobs),
            ApiKey.METADATA: partial(metadata, self.metadata, self.controller, self._config),
            ApiKey.FIND_COORDINATOR: partial(find_coordinator, self.metadata, self.controller, self._config),
            ApiKey.CREATE_TOPICS: partial(create_topics, self.controller),
            ApiKey.DELETE_TOPICS: partial(delete_topics, self.controller),
            ApiKey.CREATE_PARTITIONS: partial(create_partitions, self.controller),
            ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
            ApiKey.DESCRIBE_CONFIGS: partial(describe_configs, self.metadata, self._config),
            ApiKey.ALTER_CONFIGS: partial(alter_configs, self.controller),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(incremental_alter_configs, self.controller),
            ApiKey.DELETE_RECORDS: partial(delete_records, DeletionServices(replicas, network, clock, knobs)),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: partial(offset_for_leader_epoch, replicas),
            ApiKey.ELECT_LEADERS: partial(elect_leaders, self.controller),
            ApiKey.DESCRIBE_LOG_DIRS: partial(describe_log_dirs, self.directories, replicas),
        }

    def _handlers_for_groups(self) -> dict[ApiKey, Handle]:
        groups, metadata, clock = self._groups, self.metadata, self.clock
        of_consumer_protocol: dict[ApiKey, Handle] = {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: partial(consumer_group_heartbeat, groups),
            ApiKey.CONSUMER_GROUP_DESCRIBE: partial(consumer_group_describe, groups),
        }
        return (of_consumer_protocol if self.knobs.consumer_protocol else {}) | {
            ApiKey.OFFSET_COMMIT: partial(offset_commit, groups, metadata, clock),
            ApiKey.OFFSET_FETCH: partial(offset_fetch, groups),
            ApiKey.JOIN_GROUP: partial(join_group, groups),
            ApiKey.HEARTBEAT: partial(heartbeat, groups),
            ApiKey.LEAVE_GROUP: partial(leave_group, groups),
            ApiKey.SYNC_GROUP: partial(sync_group, groups),
            ApiKey.DESCRIBE_GROUPS: partial(describe_groups, groups),
            ApiKey.LIST_GROUPS: partial(list_groups, groups),
            ApiKey.DELETE_GROUPS: partial(delete_groups, groups),
            ApiKey.OFFSET_DELETE: partial(offset_delete, groups, metadata),
        }

    def _handlers_for_transactions(
        self, producer_ids: ProducerIds, verifier: TransactionVerifier | None
    ) -> dict[ApiKey, Handle]:
        coordinator, metadata = self._transactions, self.metadata
        offsets = OffsetsInTransactions(self._replicas, metadata, verifier)
        return {
            ApiKey.INIT_PRODUCER_ID: partial(init_producer_id, coordinator, producer_ids),
            ApiKey.ADD_PARTITIONS_TO_TXN: partial(add_partitions_to_txn, coordinator, metadata),
            ApiKey.ADD_OFFSETS_TO_TXN: partial(add_offsets_to_txn, coordinator, metadata),
            ApiKey.END_TXN: partial(end_txn, coordinator),
            ApiKey.WRITE_TXN_MARKERS: partial(write_txn_markers, self._markers),
            ApiKey.TXN_OFFSET_COMMIT: partial(txn_offset_commit, self._groups, metadata, self.clock, offsets),
            ApiKey.DESCRIBE_PRODUCERS: partial(describe_producers, self._replicas),
            ApiKey.DESCRIBE_TRANSACTIONS: partial(describe_transactions, coordinator),
            ApiKey.LIST_TRANSACTIONS: partial(list_transactions, coordinator),
        }

    def _handlers_for_controller(self) -> dict[ApiKey, Handle]:
        placement = ReplicaPlacement(self._replicas, self.directories, self.controller, self.knobs)
        return {
            ApiKey.LEADER_AND_ISR: partial(leader_and_isr, self._fence, self._fetchers, placement, self.clock),
            ApiKey.STOP_REPLICA: partial(stop_replica, self._fence, placement, self.clock),
            ApiKey.UPDATE_METADATA: partial(update_metadata, self._fence, self._learn_metadata),
        }

    # ------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Recover the logs, listen, and register with the controller."""
        self._load()
        if self._halted:
            return
        self.network.listen(self._config.listener, self._sessions.accept)
        self.say(f"Started with {len(self._replicas)} replicas, incarnation {self._config.incarnation}.")
        self.controller.start(self.directories.previous_broker_epoch, self.directories.offline_ids)
        settings, logs = self.settings, self._logs
        self._every(min(settings.replica_lag_time_max_ms // 2, _MAX_TICK_MS), self._tick)
        self._every(settings.replica_high_watermark_checkpoint_interval_ms, logs.checkpoint_high_watermarks)
        self._every(settings.log_flush_offset_checkpoint_interval_ms, logs.checkpoint_recovery_points)
        self._every(settings.log_flush_start_offset_checkpoint_interval_ms, logs.checkpoint_log_starts)
        self._every(settings.log_retention_check_interval_ms, logs.retire)
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)
        self._every(settings.log_cleaner_backoff_ms, self._cleaner.clean)

    def stop(self) -> None:
        """Shut down cleanly: answer waiting fetches, flush, mark the shutdown as clean, and close the logs."""
        self.consumer_fetches.expire_all()
        self.follower_fetches.expire_all()
        self._logs.flush()
        if not self._halted:
            self._logs.mark_clean(self.controller.broker_epoch, self._config.incarnation)
        self._logs.close()

    def operations(self) -> dict[str, Operation]:
        """See :class:`harness.broker.node.Node`."""
        return {}

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """The replicas that it hosts."""
        return self._replicas.by_name

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        return {
            "registered": self.controller.registered,
            "known_brokers": sorted(self.metadata.brokers or ()),
            "controller_epoch": self._fence.controller_epoch,
            "log_dirs": [{"errno": directory.failure} for directory in self.directories],
            "replicas": [self.partitions[name].status() for name in sorted(self.partitions)],
            "groups": self._groups.status(),
        }

    def address_of(self, node: str) -> Address:
        """See :meth:`harness.broker.settings.NodeConfig.address_of`."""
        return self._config.address_of(node)

    def _every(self, interval_ms: int, act: Callable[[], None]) -> None:
        def again() -> None:
            if not self._halted:
                act()
                self.network.call_later(max(interval_ms, 1) / 1000, again)

        self.network.call_later(max(interval_ms, 1) / 1000, again)

    def _expire_producers(self) -> None:
        self._logs.expire_producers(self.clock.wall_ms() - self.settings.producer_id_expiration_ms)

    def _tick(self) -> None:
        self._replicas.handle(Tick(kafka_time_ns(self.clock)))
        self._logs.flush_when_due()

    def _load(self) -> None:
        self._logs.load()
        if self._halted:
            return
        if self._config.faults.dies_while_loading:
            self.say("Fault: dying while the logs are being loaded.")
            self._halted = True
            self._exit(_EXIT_HALTED)
            return
        self._logs.finish_loading()

    def _learn_metadata(self, news: UpdateMetadataRequest) -> None:
        """Take the controller's metadata for clients, and tell the replicas which brokers have a session.

        A broker serves no clients before the first metadata of its life, for it would answer that there is no broker
        and no topic. A broker of Kafka begins to process requests when it has caught up with the metadata (KRaft), or
        when all of it has started and it is registered (ZooKeeper).
        """
        before = self.metadata.sessions
        self.metadata.update(news)
        self._sessions.serve_clients()
        self._replicas.learn_configs()
        if self.metadata.sessions != before:
            self._replicas.handle(SessionsHeard(self.metadata.sessions))

    # ------------------------------------------------------------------------------------ for partitions

    def propose_isr(self, partition: Partition, proposal: ProposeIsr) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        self.say(f"Proposing ISR {list(proposal.isr)} for {partition.name}, leader epoch {proposal.leader_epoch}.")
        topic_id = self._replicas.id_of(partition)
        self.controller.propose_isr(partition.name.partition, topic_id, proposal, partition.handle)

    def replica_changed(self, partition: Partition, before: ReplicaState, after: ReplicaState) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        moved = (before.role, before.leader, before.leader_epoch) != (after.role, after.leader, after.leader_epoch)
        if moved:
            self.say(
                f"{partition.name}: {after.role} in leader epoch {after.leader_epoch}, leader {after.leader}, "
                f"log end {after.log_end_offset}, high watermark {after.high_watermark}."
            )
            self._fetchers.follow(partition, after)
            self._groups.replica_changed(partition, after)
            self._transactions.replica_changed(partition, after)
        if before.isr != after.isr:
            self.say(f"{partition.name}: ISR {list(after.isr)}, partition epoch {after.partition_epoch}.")
        if moved or before.log_end_offset != after.log_end_offset:
            self.follower_fetches.wake(partition.name)
        if moved or before.high_watermark != after.high_watermark:
            self.consumer_fetches.wake(partition.name)

    def lower_recovery_points(self, directory: LogDirectory) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        self._logs.lower_recovery_points(directory)

    def lower_log_starts(self, directory: LogDirectory) -> None:
        """See :class:`harness.broker.partition.Owner`."""
        self._logs.lower_log_starts(directory)

    def storage_refused(self) -> None:
        """See :class:`harness.broker.partition.Owner`.

        Since log directories fail on their own (KIP-112) a broker still answers requests that it can no longer serve;
        before, it halted (``Runtime.halt``) without another answer.
        """
        if self.knobs.disk_full == "halt_broker":
            self._sessions.silence()

    def storage_failed(self, directory: LogDirectory, refusal: StorageRefusal) -> None:
        """See :class:`harness.broker.partition.Owner`.

        Since KIP-112 the directory goes offline with all its replicas, and the broker reports it to the controller;
        before, and when it was the last one, the broker halts.
        """
        if self._halted or not directory.online:
            return
        directory.failure = refusal.errno
        halts = self.knobs.disk_full == "halt_broker" or not self.directories.online
        for partition in self._replicas if halts else self._replicas.within(directory):
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
        self._replicas.handle(AppendFailed(0))

    def _halt(self, reason: str) -> None:
        if not self._halted:
            self._halted = True
            self.say(f"FATAL: Halting: {reason}.")
            self._exit(_EXIT_HALTED)

    def _directory_failed(self, directory: LogDirectory, what: str, refusal: StorageRefusal) -> None:
        self.storage_refused()
        self.say(f"Storage failed: cannot {what}: {os.strerror(refusal.errno)}.")
        self.storage_failed(directory, refusal)
