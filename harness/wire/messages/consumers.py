"""The committed offsets of consumer groups: OffsetCommit and OffsetFetch (the ``*.json`` of those names)."""

from __future__ import annotations

from harness.model import NO_EPOCH, NO_OFFSET
from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int32s,
    int64,
    nullable_array,
    nullable_string,
    request,
    response,
    string,
    struct,
)
from harness.wire.keys import ApiKey


@struct
class OffsetCommitRequestPartition(Struct):
    """The next offset to be read of one partition, and the leader epoch of the record before it (KIP-320)."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=6, default=-1)
    committed_metadata: str | None = nullable_string()


@struct
class OffsetCommitRequestTopic(Struct):
    """The offsets of one topic."""

    name: str = string()
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@request(ApiKey.OFFSET_COMMIT, versions=(2, 9), flexible=8)
class OffsetCommitRequest(Message):
    """Commits offsets. Generation -1 and an empty member id: a consumer that assigns itself its partitions."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=7)
    retention_time_ms: int = int64(until=4, default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic.name,
                    [OffsetCommitResponsePartition(one.partition_index, error) for one in topic.partitions],
                )
                for topic in self.topics
            ]
        )


@struct
class OffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@response(ApiKey.OFFSET_COMMIT, versions=(2, 9), flexible=8)
class OffsetCommitResponse(Message):
    """The results of the commit."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)


@struct
class OffsetFetchRequestTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = int32s()


@struct
class OffsetFetchRequestGroup(Struct):
    """The partitions of one group; ``topics`` None: all that it has.

    ``member_id`` None and ``member_epoch`` -1: the sender is no member of a group of the consumer protocol.
    """

    group_id: str = string()
    member_id: str | None = nullable_string(since=9)
    member_epoch: int = int32(since=9, default=-1)
    topics: list[OffsetFetchRequestTopic] | None = nullable_array(OffsetFetchRequestTopic)


@request(ApiKey.OFFSET_FETCH, versions=(1, 9), flexible=6)
class OffsetFetchRequest(Message):
    """Asks for committed offsets, of one group up to v7, of several from v8 on. ``topics`` as in a group above."""

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = nullable_array(OffsetFetchRequestTopic, until=7, nullable=2)
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`. Version 1 has no place for an error but those of its partitions."""
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    topic.name,
                    [
                        OffsetFetchResponsePartition(index, NO_OFFSET, NO_EPOCH, "", error)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in self.topics or ()
            ],
            error_code=error,
            groups=[OffsetFetchResponseGroup(group.group_id, error_code=error) for group in self.groups],
        )


@struct
class OffsetFetchResponsePartition(Struct):
    """The committed offset of one partition; -1 when there is none."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=5, default=-1)
    metadata: str | None = nullable_string()
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic(Struct):
    """The committed offsets of one topic."""

    name: str = string()
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


@struct
class OffsetFetchResponseGroup(Struct):
    """The committed offsets of one group."""

    group_id: str = string()
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic)
    error_code: int = int16()


@response(ApiKey.OFFSET_FETCH, versions=(1, 9), flexible=6)
class OffsetFetchResponse(Message):
    """The committed offsets."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
