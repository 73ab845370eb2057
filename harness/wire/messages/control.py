"""Requests between brokers and the controller, which clients are not offered.

``LeaderAndIsr`` v4, ``StopReplica`` v3 and ``UpdateMetadata`` v6 are the push-based control plane of ZooKeeper times
(removed in Kafka 4); registration, heartbeats and ``AlterPartition`` are KRaft's (KIP-631, KIP-497).
"""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int32s,
    int64,
    nullable_string,
    request,
    response,
    string,
    struct,
    uint16,
    uuid,
    uuids,
)
from harness.wire.keys import ApiKey

# ------------------------------------------------------------------------------------- controller -> broker


@struct
class LeaderAndIsrPartitionState(Struct):
    """The state of one partition; ``leader`` -1 when it has none."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = int32s()
    partition_epoch: int = int32()
    replicas: list[int] = int32s()
    adding_replicas: list[int] = int32s(since=3)
    removing_replicas: list[int] = int32s(since=3)
    is_new: bool = boolean(since=1)


@struct
class TopicConfig(Struct):
    """A configuration of a topic that is not the cluster's."""

    name: str = string(since=4)
    value: str = string(since=4)


@struct
class LeaderAndIsrTopicState(Struct):
    """The states of one topic's partitions.

    The tagged fields are not in Kafka's, whose brokers read configurations in ZooKeeper or in the metadata log.
    ``incarnation`` says how many topics of this name were deleted before it, and so gives its id.
    """

    topic_name: str = string(since=2)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)
    incarnation: int = int32(since=4, tag=0)
    configs: list[TopicConfig] = array(TopicConfig, since=4, tag=1)


@struct
class LeaderAndIsrLiveLeader(Struct):
    """The address of a leader named above."""

    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


@request(ApiKey.LEADER_AND_ISR, versions=(4, 4), flexible=4)
class LeaderAndIsrRequest(Message):
    """Makes a broker leader or follower of partitions. A broker refuses an older ``controller_epoch``."""

    controller_id: int = int32()
    controller_epoch: int = int32()
    broker_epoch: int = int64(since=2, default=-1)
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, since=2)
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return LeaderAndIsrResponse(error)


@struct
class LeaderAndIsrPartitionError(Struct):
    """The result for one partition."""

    topic_name: str = string(until=4)
    partition_index: int = int32()
    error_code: int = int16()


@response(ApiKey.LEADER_AND_ISR, versions=(4, 4), flexible=4)
class LeaderAndIsrResponse(Message):
    """The results for the partitions."""

    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, until=4)


@struct
class StopReplicaPartitionState(Struct):
    """A replica to stop, and to delete; ``leader_epoch`` is that in which the controller decided so."""

    partition_index: int = int32(since=3)
    leader_epoch: int = int32(since=3, default=-1)
    delete_partition: bool = boolean(since=3)


@struct
class StopReplicaTopicState(Struct):
    """The replicas of one topic; ``incarnation`` as in :class:`LeaderAndIsrTopicState`."""

    topic_name: str = string(since=3)
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, since=3)
    incarnation: int = int32(since=3, tag=0)


@request(ApiKey.STOP_REPLICA, versions=(3, 3), flexible=2)
class StopReplicaRequest(Message):
    """Makes a broker stop replicas, and delete them. A broker refuses an older ``controller_epoch``."""

    controller_id: int = int32()
    controller_epoch: int = int32()
    broker_epoch: int = int64(since=1, default=-1)
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return StopReplicaResponse(error)


@struct
class StopReplicaPartitionError(Struct):
    """The result for one replica."""

    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


@response(ApiKey.STOP_REPLICA, versions=(3, 3), flexible=2)
class StopReplicaResponse(Message):
    """The results for the replicas."""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)


@struct
class UpdateMetadataPartitionState(Struct):
    """The metadata of one partition for clients."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = int32s()
    zk_version: int = int32()
    replicas: list[int] = int32s()
    offline_replicas: list[int] = int32s(since=4)


@struct
class UpdateMetadataTopicState(Struct):
    """The metadata of one topic for clients. For the tagged fields see :class:`LeaderAndIsrTopicState`."""

    topic_name: str = string(since=5)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, since=5)
    incarnation: int = int32(since=6, tag=0)
    configs: list[TopicConfig] = array(TopicConfig, since=6, tag=1)


@struct
class UpdateMetadataEndpoint(Struct):
    """One listener of a broker; security protocol 0 is plain text."""

    port: int = int32(since=1)
    host: str = string(since=1)
    listener: str = string(since=3)
    security_protocol: int = int16(since=1)


@struct
class UpdateMetadataBroker(Struct):
    """A live broker.

    ``broker_epoch`` is not in Kafka's: KRaft's brokers read it in the metadata log (``RegisterBrokerRecord``).
    """

    id: int = int32()
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, since=1)
    rack: str | None = nullable_string(since=2)
    broker_epoch: int = int64(since=6, tag=0, default=-1)


@request(ApiKey.UPDATE_METADATA, versions=(6, 6), flexible=6, max_elements=1_000_000)
class UpdateMetadataRequest(Message):
    """Sends a broker the cluster's metadata. A broker refuses an older ``controller_epoch``."""

    controller_id: int = int32()
    controller_epoch: int = int32()
    broker_epoch: int = int64(since=5, default=-1)
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, since=5)
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return UpdateMetadataResponse(error)


@response(ApiKey.UPDATE_METADATA, versions=(6, 6), flexible=6)
class UpdateMetadataResponse(Message):
    """The broker's acknowledgement, or an error."""

    error_code: int = int16()


# ------------------------------------------------------------------------------------- broker -> controller


@struct
class Listener(Struct):
    """An address of a registering broker."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class Feature(Struct):
    """A feature of a registering broker, both levels inclusive."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@request(ApiKey.BROKER_REGISTRATION, versions=(0, 3), flexible=0)
class BrokerRegistrationRequest(Message):
    """Registers a broker; ``incarnation_id`` is new at each start of the process.

    ``previous_broker_epoch`` is the epoch of its last process if that shut down cleanly, else -1 (KIP-966).
    """

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = nullable_string()
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[bytes] = uuids(since=2)
    previous_broker_epoch: int = int64(since=3, default=-1)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return BrokerRegistrationResponse(error_code=error)


@response(ApiKey.BROKER_REGISTRATION, versions=(0, 3), flexible=0)
class BrokerRegistrationResponse(Message):
    """The registered broker's epoch, -1 on error."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)


@request(ApiKey.BROKER_HEARTBEAT, versions=(0, 1), flexible=0)
class BrokerHeartbeatRequest(Message):
    """Keeps a broker's session alive, and names its failed log directories (KIP-858)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = uuids(since=1, tag=0)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return BrokerHeartbeatResponse(error_code=error)


@response(ApiKey.BROKER_HEARTBEAT, versions=(0, 1), flexible=0)
class BrokerHeartbeatResponse(Message):
    """The broker's state at the controller."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


@struct
class BrokerState(Struct):
    """A broker with its broker epoch; -1: any (KIP-903)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class AlterPartitionPartitionData(Struct):
    """The ISR that the leader proposes; ``partition_epoch`` is the newest that it knows."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = int32s(until=2)
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, since=3)
    leader_recovery_state: int = int8(since=1)
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicData(Struct):
    """The proposals for one topic."""

    topic_id: bytes = uuid(since=2)
    partitions: list[AlterPartitionPartitionData] = array(AlterPartitionPartitionData)


@request(ApiKey.ALTER_PARTITION, versions=(2, 3), flexible=0)
class AlterPartitionRequest(Message):
    """A leader proposes new ISRs (KIP-497)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionTopicData] = array(AlterPartitionTopicData)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AlterPartitionResponse(error_code=error)


@struct
class AlterPartitionPartitionResult(Struct):
    """The partition's state after the proposal, or why it was refused."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = int32s()
    leader_recovery_state: int = int8(since=1)
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(since=2)
    partitions: list[AlterPartitionPartitionResult] = array(AlterPartitionPartitionResult)


@response(ApiKey.ALTER_PARTITION, versions=(2, 3), flexible=0)
class AlterPartitionResponse(Message):
    """The results of the proposals."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionTopicResult] = array(AlterPartitionTopicResult)


@request(ApiKey.ALLOCATE_PRODUCER_IDS, versions=(0, 0), flexible=0)
class AllocateProducerIdsRequest(Message):
    """Asks the controller for a block of producer ids."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AllocateProducerIdsResponse(error_code=error)


@response(ApiKey.ALLOCATE_PRODUCER_IDS, versions=(0, 0), flexible=0)
class AllocateProducerIdsResponse(Message):
    """The block ``producer_id_start`` (inclusive) to ``producer_id_start + producer_id_len`` (exclusive)."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()


@struct
class AssignedPartition(Struct):
    """A replica of the sender."""

    partition_index: int = int32()


@struct
class AssignedTopic(Struct):
    """The replicas of one topic."""

    topic_id: bytes = uuid()
    partitions: list[AssignedPartition] = array(AssignedPartition)


@struct
class AssignedDirectory(Struct):
    """The replicas in one log directory."""

    id_: bytes = uuid()
    topics: list[AssignedTopic] = array(AssignedTopic)


@request(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions=(0, 0), flexible=0)
class AssignReplicasToDirsRequest(Message):
    """Reports replicas whose log directories the controller does not know yet (KIP-858)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[AssignedDirectory] = array(AssignedDirectory)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AssignReplicasToDirsResponse(error_code=error)


@struct
class AssignedPartitionResult(Struct):
    """The result for one replica."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AssignedTopicResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid()
    partitions: list[AssignedPartitionResult] = array(AssignedPartitionResult)


@struct
class AssignedDirectoryResult(Struct):
    """The outcomes for one log directory."""

    id_: bytes = uuid()
    topics: list[AssignedTopicResult] = array(AssignedTopicResult)


@response(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions=(0, 0), flexible=0)
class AssignReplicasToDirsResponse(Message):
    """The results of the report."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[AssignedDirectoryResult] = array(AssignedDirectoryResult)
