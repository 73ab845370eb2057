"""Fetch, by consumers and by replicas (``FetchRequest.json``, ``FetchResponse.json``).

Version 3 is for real brokers of 0.10.2, which know no later one.
"""

from __future__ import annotations

from harness.model import NO_OFFSET
from harness.wire.declaration import (
    Buffer,
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int32s,
    int64,
    nullable_array,
    nullable_string,
    nullable_struct,
    records,
    request,
    response,
    string,
    struct,
    uuid,
)
from harness.wire.keys import ApiKey
from harness.wire.messages.leadership import LeaderIdAndEpoch, NodeEndpoint

NO_HIGH_WATERMARK = (1 << 63) - 1
"""The high watermark in a fetch that does not contain the fetcher's own (KIP-1166)."""


@struct
class ReplicaState(Struct):
    """The fetching replica, and the broker epoch of its registration (KIP-903)."""

    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


@struct
class FetchPartition(Struct):
    """The fetch position of one partition; epochs are -1 where the fetcher does not send them."""

    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(since=17, tag=0)
    high_watermark: int = int64(since=18, default=NO_HIGH_WATERMARK, tag=1)


@struct
class FetchTopic(Struct):
    """The partitions to fetch of one topic."""

    topic: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic(Struct):
    """Partitions to drop from an incremental fetch session."""

    topic: str = string(since=7, until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[int] = int32s(since=7)


@request(ApiKey.FETCH, versions=(3, 18), flexible=12)
class FetchRequest(Message):
    """Fetches records. ``replica_id`` is -1 for a consumer; session epoch -1 means without a session.

    Topics have names up to v12 and ids from v13 on; from v15 on the replica is in ``replica_state``.
    """

    cluster_id: str | None = nullable_string(since=12, tag=0)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState | None = nullable_struct(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    isolation_level: int = int8(since=4)
    session_id: int = int32(since=7)
    session_epoch: int = int32(since=7, default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""

        def part(number: int) -> PartitionData:
            return PartitionData(number, error, NO_OFFSET, records=b"")

        return FetchResponse(
            error_code=error,
            responses=[
                FetchableTopicResponse(topic.topic, topic.topic_id, [part(one.partition) for one in topic.partitions])
                for topic in self.topics
            ],
        )


@struct
class DivergingEpoch(Struct):
    """Where the leader's log ends for an epoch (KIP-595): ``end_offset`` is exclusive.

    Kafka's definition calls it ``EpochEndOffset``, which is also a part of OffsetForLeaderEpoch.
    """

    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@struct
class SnapshotId(Struct):
    """A snapshot to fetch instead (KRaft only): ``end_offset`` is exclusive."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction(Struct):
    """An aborted transaction within the fetched range."""

    producer_id: int = int64()
    first_offset: int = int64()


@struct
class PartitionData(Struct):
    """One partition's batches; the last one may be cut short.

    ``high_watermark`` and ``last_stable_offset`` are exclusive. ``diverging_epoch`` None means that the logs agree.
    """

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(since=4, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    diverging_epoch: DivergingEpoch | None = nullable_struct(DivergingEpoch, since=12, tag=0)
    current_leader: LeaderIdAndEpoch | None = nullable_struct(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId | None = nullable_struct(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = nullable_array(AbortedTransaction, since=4)
    preferred_read_replica: int = int32(since=11, default=-1)
    records: Buffer | None = records()


@struct
class FetchableTopicResponse(Struct):
    """The fetched partitions of one topic."""

    topic: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partitions: list[PartitionData] = array(PartitionData)


@response(ApiKey.FETCH, versions=(3, 18), flexible=12)
class FetchResponse(Message):
    """The fetched batches. ``session_id`` 0 means that the broker keeps no session."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=7)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
