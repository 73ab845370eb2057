"""The state of a KRaft quorum: DescribeQuorum (KIP-595, KIP-836, the ``*.json`` of that name)."""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
)
from harness.wire.keys import ApiKey

METADATA_TOPIC = "__cluster_metadata"
"""The topic whose only partition the metadata log is."""


@struct
class DescribedPartition(Struct):
    """One partition."""

    partition_index: int = int32()


@struct
class DescribedTopic(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    partitions: list[DescribedPartition] = array(DescribedPartition)


@request(ApiKey.DESCRIBE_QUORUM, versions=(0, 1), flexible=0)
class DescribeQuorumRequest(Message):
    """Asks for the leader and the replicas' progress; only the leader answers without an error."""

    topics: list[DescribedTopic] = array(DescribedTopic)


@struct
class QuorumReplica(Struct):
    """One voter or observer; unknown values are -1. Times are by the leader's wall clock."""

    replica_id: int = int32()
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(since=1, default=-1)
    last_caught_up_timestamp: int = int64(since=1, default=-1)


@struct
class QuorumPartition(Struct):
    """The quorum of one partition; ``leader_id`` is -1 where it is unknown."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[QuorumReplica] = array(QuorumReplica)
    observers: list[QuorumReplica] = array(QuorumReplica)


@struct
class QuorumTopic(Struct):
    """The quorums of one topic's partitions."""

    topic_name: str = string()
    partitions: list[QuorumPartition] = array(QuorumPartition)


@response(ApiKey.DESCRIBE_QUORUM, versions=(0, 1), flexible=0)
class DescribeQuorumResponse(Message):
    """The quorums of the requested partitions."""

    error_code: int = int16()
    topics: list[QuorumTopic] = array(QuorumTopic)
