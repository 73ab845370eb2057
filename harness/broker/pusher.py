"""Sends StopReplica, LeaderAndIsr and UpdateMetadata from the controller to one broker, until it has all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import cast

from harness.broker.caller import Caller
from harness.broker.controller_link import LISTENER_NAME
from harness.broker.ports import Network
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID, NodeId, TopicPartition, node_name
from harness.replication.cluster_state import BrokerRecord
from harness.replication.controller_messages import (
    BrokerEndpoint,
    DoomedReplica,
    PartitionState,
    ReplicasAnswered,
    ReplicasDeleted,
    SendMetadata,
    SendPartitionStates,
    TopicState,
)
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.control import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    TopicConfig,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

STOP_REPLICA_VERSION = 3
LEADER_AND_ISR_VERSION = 4
UPDATE_METADATA_VERSION = 6
_RETRY_S = 0.05
MAX_STATES = 20
"""The most replicas in one ``LeaderAndIsr``: a broker that has to create them does nothing else meanwhile."""
_FINAL = (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR)


class Pusher:
    """Pushes deletions, states and metadata to one broker, in this order, and one request at a time.

    What was not answered, or was refused, is sent again after a while, for as long as the broker's session lives: a
    broker that does not know of its registration yet refuses everything (``STALE_BROKER_EPOCH``). Two refusals are
    final: ``STALE_CONTROLLER_EPOCH``, for the broker obeys a newer controller, and ``KAFKA_STORAGE_ERROR``, for such a
    replica stays offline until its broker restarts and registers, and the controller then sends everything again.

    Args:
        network: the port.
        broker: the receiver; it refuses what was meant for an earlier life of it.
        timeout_s: how long an acknowledgement may take.
        endpoints: returns the addresses of all live brokers.
        answered: takes which replicas the broker can use, and which it cannot; or those that it has deleted.
    """

    def __init__(
        self,
        network: Network,
        broker: BrokerRecord,
        timeout_s: float,
        endpoints: Callable[[], Iterable[BrokerEndpoint]],
        answered: Callable[[ReplicasAnswered | ReplicasDeleted], None],
    ) -> None:
        self._network = network
        self._broker = broker.broker
        self._broker_epoch = broker.epoch
        self._replicas_answered = answered
        self._new: set[TopicPartition] = set()
        self._timeout_s = timeout_s
        self._endpoints = endpoints
        self._caller = Caller(network, (broker.host, broker.port), node_name(broker.broker), "controller")
        self._doomed: dict[TopicPartition, DoomedReplica] = {}
        self._states: dict[TopicPartition, PartitionState] = {}
        self._topics: dict[str, TopicState] = {}
        self._metadata: SendMetadata | None = None
        self._controller_epoch = -1
        self._busy = False
        self._stopped = False

    def push_deletions(self, controller_epoch: int, replicas: Iterable[DoomedReplica]) -> None:
        """Send ``StopReplica`` for ``replicas``, of which there is nothing else to be said any more."""
        self._controller_epoch = controller_epoch
        for one in replicas:
            name = one.topic_partition
            self._doomed[name] = one
            if self._topics.get(name.topic, TopicState(name.topic)).incarnation <= one.incarnation:
                self._states.pop(name, None)
        self._next()

    def push_states(self, pushed: SendPartitionStates) -> None:
        """Send ``LeaderAndIsr``; flag replicas that ``are_new`` until the broker obeys."""
        self._controller_epoch = pushed.controller_epoch
        self._topics.update({topic.topic: topic for topic in pushed.topics})
        states = {state.topic_partition: state for state in pushed.partitions}
        self._states.update(states)
        if pushed.are_new:
            self._new.update(states)
        self._next()

    def push_metadata(self, metadata: SendMetadata) -> None:
        """Send ``UpdateMetadata``."""
        self._metadata = metadata
        self._next()

    def stop(self) -> None:
        """The broker's session ended: nothing is owed to it any more."""
        self._stopped = True
        self._caller.close()

    def _next(self) -> None:
        if self._busy or self._stopped:
            return
        if self._doomed:
            self._busy = True
            doomed = tuple(islice(self._doomed.values(), MAX_STATES))
            self._caller.call(
                ApiKey.STOP_REPLICA,
                STOP_REPLICA_VERSION,
                self._stop_replica(doomed),
                self._timeout_s,
                lambda body: self._deletions_answered(doomed, body),
            )
        elif self._states:
            self._busy = True
            sent = dict(islice(self._states.items(), MAX_STATES))
            for name in sent:
                del self._states[name]
            self._caller.call(
                ApiKey.LEADER_AND_ISR,
                LEADER_AND_ISR_VERSION,
                self._leader_and_isr(sent.values()),
                self._timeout_s,
                lambda body: self._states_answered(sent, body),
            )
        elif self._metadata is not None:
            self._busy = True
            metadata, self._metadata = self._metadata, None
            self._caller.call(
                ApiKey.UPDATE_METADATA,
                UPDATE_METADATA_VERSION,
                self._update_metadata(metadata),
                self._timeout_s,
                lambda body: self._metadata_answered(metadata, body),
            )

    def _deletions_answered(self, sent: tuple[DoomedReplica, ...], body: Message | None) -> None:
        response = cast("StopReplicaResponse | None", body)
        failed = {
            TopicPartition(one.topic_name, one.partition_index)
            for one in (response.partition_errors if response is not None else ())
            if one.error_code
        }
        settled = response is not None and response.error_code in _FINAL
        for one in sent if settled else ():  # a broker is asked for what its disk refuses when it registers again
            if self._doomed.get(one.topic_partition) == one:
                del self._doomed[one.topic_partition]
        done = tuple(one for one in sent if one.topic_partition not in failed)
        if done and response is not None and not response.error_code and not self._stopped:
            self._replicas_answered(ReplicasDeleted(self._broker, self._broker_epoch, done))
        self._answered(settled=settled)

    def _states_answered(self, sent: dict[TopicPartition, PartitionState], body: Message | None) -> None:
        response = cast("LeaderAndIsrResponse | None", body)
        owed = {name: state for name, state in _owed(sent, response).items() if name not in self._doomed}
        self._states = {**owed, **self._states}
        if response is not None and not response.error_code and not self._stopped:
            self._tell_of_replicas(response)
        self._answered(settled=not owed)

    def _tell_of_replicas(self, response: LeaderAndIsrResponse) -> None:
        names: dict[int, list[TopicPartition]] = defaultdict(list)
        for one in response.partition_errors:
            names[one.error_code].append(TopicPartition(one.topic_name, one.partition_index))
        online, offline = tuple(names[ErrorCode.NONE]), tuple(names[ErrorCode.KAFKA_STORAGE_ERROR])
        self._new.difference_update(online)
        if online or offline:
            self._replicas_answered(ReplicasAnswered(self._broker, self._broker_epoch, offline, online))

    def _metadata_answered(self, sent: SendMetadata, body: Message | None) -> None:
        response = cast("UpdateMetadataResponse | None", body)
        settled = response is not None and response.error_code in _FINAL
        if not settled:
            self._metadata = self._metadata or sent
        self._answered(settled=settled)

    def _answered(self, *, settled: bool) -> None:
        if settled:
            self._again()
        else:
            self._network.call_later(_RETRY_S, self._again)

    def _again(self) -> None:
        self._busy = False
        self._next()

    # ------------------------------------------------------------------------------------ messages

    def _stop_replica(self, replicas: Iterable[DoomedReplica]) -> StopReplicaRequest:
        topics: dict[str, StopReplicaTopicState] = {}
        for _, name, incarnation, leader_epoch in replicas:
            topic = topics.setdefault(name.topic, StopReplicaTopicState(name.topic, [], incarnation))
            topic.partition_states.append(
                StopReplicaPartitionState(name.partition, leader_epoch, delete_partition=True)
            )
        return StopReplicaRequest(CONTROLLER_ID, self._controller_epoch, self._broker_epoch, list(topics.values()))

    def _leader_and_isr(self, states: Iterable[PartitionState]) -> LeaderAndIsrRequest:
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: set[NodeId] = set()
        for state in states:
            name = state.topic_partition
            leaders.add(state.leader)
            _, incarnation, configs = self._topics.get(name.topic, TopicState(name.topic))
            new = LeaderAndIsrTopicState(name.topic, [], incarnation, [TopicConfig(*config) for config in configs])
            topics.setdefault(name.topic, new).partition_states.append(
                LeaderAndIsrPartitionState(
                    name.partition,
                    self._controller_epoch,
                    state.leader,
                    state.leader_epoch,
                    list(state.isr),
                    state.partition_epoch,
                    list(state.replicas),
                    is_new=name in self._new,
                )
            )
        return LeaderAndIsrRequest(
            CONTROLLER_ID,
            self._controller_epoch,
            self._broker_epoch,
            list(topics.values()),
            [LeaderAndIsrLiveLeader(*endpoint) for endpoint in self._endpoints() if endpoint.broker in leaders],
        )

    def _update_metadata(self, metadata: SendMetadata) -> UpdateMetadataRequest:
        topics = {
            name: UpdateMetadataTopicState(name, [], incarnation, [TopicConfig(*config) for config in configs])
            for name, incarnation, configs in metadata.topics
        }
        offline: dict[TopicPartition, list[int]] = defaultdict(list)
        for name, broker in metadata.offline:
            offline[name].append(broker)
        for state in metadata.partitions:
            name = state.topic_partition
            topics.setdefault(name.topic, UpdateMetadataTopicState(name.topic)).partition_states.append(
                UpdateMetadataPartitionState(
                    name.partition,
                    metadata.controller_epoch,
                    state.leader,
                    state.leader_epoch,
                    list(state.isr),
                    state.partition_epoch,
                    list(state.replicas),
                    offline[name],
                )
            )
        brokers = [
            UpdateMetadataBroker(
                one.broker, [UpdateMetadataEndpoint(one.port, one.host, LISTENER_NAME)], broker_epoch=epoch
            )
            for one, epoch in zip(metadata.live_brokers, metadata.broker_epochs, strict=True)
        ]
        return UpdateMetadataRequest(
            CONTROLLER_ID, metadata.controller_epoch, self._broker_epoch, list(topics.values()), brokers
        )


def _owed(
    sent: dict[TopicPartition, PartitionState], response: LeaderAndIsrResponse | None
) -> dict[TopicPartition, PartitionState]:
    """What of ``sent`` must be sent again."""
    if response is None or response.error_code not in _FINAL:
        return sent
    if response.error_code:
        return {}
    refused = [
        TopicPartition(one.topic_name, one.partition_index)
        for one in response.partition_errors
        if one.error_code not in _FINAL
    ]
    return {name: sent[name] for name in refused if name in sent}
