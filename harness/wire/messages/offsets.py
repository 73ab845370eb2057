"""Offsets by timestamp and by leader epoch: ListOffsets and OffsetForLeaderEpoch (the ``*.json`` of those names)."""

from __future__ import annotations

from harness.model import NO_OFFSET
from harness.wire.declaration import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
)
from harness.wire.keys import ApiKey

READ_COMMITTED = 1
"""The isolation level of a client that wants no records of transactions that are not committed."""

LATEST_TIMESTAMP = -1
"""ListOffsets: the high watermark (or last stable offset)."""

EARLIEST_TIMESTAMP = -2
"""ListOffsets: the log start offset."""

MAX_TIMESTAMP = -3
"""ListOffsets v7+: the offset of the record with the largest timestamp (KIP-734)."""


_NO_TIMESTAMP = -1


@struct
class ListOffsetsPartition(Struct):
    """The first offset whose timestamp is at least ``timestamp``, or one of the special timestamps above."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1)
    timestamp: int = int64()


@struct
class ListOffsetsTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@request(ApiKey.LIST_OFFSETS, versions=(1, 8), flexible=6)
class ListOffsetsRequest(Message):
    """Asks for offsets by timestamp. ``replica_id`` is -1 for a consumer."""

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""

        def part(number: int) -> ListOffsetsPartitionResponse:
            return ListOffsetsPartitionResponse(number, error, timestamp=_NO_TIMESTAMP, offset=NO_OFFSET)

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(topic.name, [part(one.partition_index) for one in topic.partitions])
                for topic in self.topics
            ]
        )


@struct
class ListOffsetsPartitionResponse(Struct):
    """The offset found, -1 when there is none, with its timestamp and leader epoch."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(since=4, default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    """The offsets found in one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@response(ApiKey.LIST_OFFSETS, versions=(1, 8), flexible=6)
class ListOffsetsResponse(Message):
    """The offsets found."""

    throttle_time_ms: int = int32(since=2)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)


@struct
class OffsetForLeaderPartition(Struct):
    """Asks where ``leader_epoch`` ends. ``current_leader_epoch`` is for fencing, -1 without."""

    partition: int = int32()
    current_leader_epoch: int = int32(since=2, default=-1)
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@request(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(0, 4), flexible=4)
class OffsetForLeaderEpochRequest(Message):
    """Asks a leader where epochs end in its log (KIP-101). ``replica_id`` -2 means before v3, -1 a consumer."""

    replica_id: int = int32(since=3, default=-2)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic, [EpochEndOffset(error, one.partition) for one in topic.partitions]
                )
                for topic in self.topics
            ]
        )


@struct
class EpochEndOffset(Struct):
    """The largest epoch not above the one asked for, and its end: ``end_offset`` is exclusive, -1 if undefined.

    v0 lacks the epoch, the gap that KIP-279 closed.
    """

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(since=1, default=-1)
    end_offset: int = int64(default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    """The epoch ends of one topic."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@response(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(0, 4), flexible=4)
class OffsetForLeaderEpochResponse(Message):
    """The epoch ends."""

    throttle_time_ms: int = int32(since=2)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
