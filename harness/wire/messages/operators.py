"""Operators' requests: DeleteRecords, ElectLeaders, AlterPartitionReassignments (the ``*.json`` of those names)."""

from __future__ import annotations

from harness.model import NO_OFFSET
from harness.wire.declaration import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int32s,
    int64,
    nullable_array,
    nullable_int32s,
    request,
    response,
    sentence,
    string,
    struct,
)
from harness.wire.keys import ApiKey

PREFERRED_ELECTION = 0
"""ElectLeaders: the first replica that is in sync."""

UNCLEAN_ELECTION = 1
"""ElectLeaders: any replica, where there is no leader (KIP-460)."""


@struct
class DeleteRecordsPartition(Struct):
    """Deletes the records below ``offset``; -1: all below the high watermark."""

    partition_index: int = int32()
    offset: int = int64()


@struct
class DeleteRecordsTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@request(ApiKey.DELETE_RECORDS, versions=(0, 2), flexible=2)
class DeleteRecordsRequest(Message):
    """Deletes the first records of partitions (KIP-107)."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    topic.name,
                    [DeleteRecordsPartitionResult(one.partition_index, NO_OFFSET, error) for one in topic.partitions],
                )
                for topic in self.topics
            ]
        )


@struct
class DeleteRecordsPartitionResult(Struct):
    """The new low watermark of one partition."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult(Struct):
    """The new low watermarks of one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@response(ApiKey.DELETE_RECORDS, versions=(0, 2), flexible=2)
class DeleteRecordsResponse(Message):
    """The new low watermarks."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)


@struct
class TopicPartitions(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = int32s()


@request(ApiKey.ELECT_LEADERS, versions=(0, 2), flexible=2)
class ElectLeadersRequest(Message):
    """Elects new leaders; ``topic_partitions`` None: of all partitions."""

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = nullable_array(TopicPartitions)
    timeout_ms: int = int32(default=60_000)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return ElectLeadersResponse(
            error_code=error,
            replica_election_results=[
                ReplicaElectionResult(topic.topic, [PartitionResult(number, error) for number in topic.partitions])
                for topic in self.topic_partitions or ()
            ],
        )


@struct
class PartitionResult(Struct):
    """The result of one election."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()


@struct
class ReplicaElectionResult(Struct):
    """The results of one topic's elections."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@response(ApiKey.ELECT_LEADERS, versions=(0, 2), flexible=2)
class ElectLeadersResponse(Message):
    """The results of the elections."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


@struct
class ReassignablePartition(Struct):
    """The new replicas of a partition, preferred leader first; None: the old ones."""

    partition_index: int = int32()
    replicas: list[int] | None = nullable_int32s()


@struct
class ReassignableTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 0), flexible=0)
class AlterPartitionReassignmentsRequest(Message):
    """Assigns partitions other replicas, or the same in another order (KIP-455)."""

    timeout_ms: int = int32(default=60_000)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()


@struct
class ReassignableTopicResponse(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 0), flexible=0)
class AlterPartitionReassignmentsResponse(Message):
    """The results of the reassignments."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
