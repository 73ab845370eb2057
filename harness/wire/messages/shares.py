"""What consumers of share groups fetch and acknowledge (KIP-932): ``ShareFetch*.json``, ``ShareAcknowledge*.json``.

The built-in nodes serve neither: they are read where a wire tap looks on.
"""

from __future__ import annotations

from harness.wire.declaration import (
    Buffer,
    Message,
    Struct,
    array,
    boolean,
    int8,
    int8s,
    int16,
    int32,
    int32s,
    int64,
    nullable_string,
    part,
    request,
    response,
    sentence,
    struct,
    uuid,
    whole_records,
)
from harness.wire.keys import ApiKey
from harness.wire.messages.leadership import NodeEndpoint


@struct
class ShareLeader(Struct):
    """The present leader of a partition, where a broker says that it is another one."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcknowledgementBatch(Struct):
    """What became of the records from ``first_offset`` to ``last_offset``, both inclusive.

    ``acknowledge_types`` has one for each of them, or one for all: 0 there is no record, 1 accept, 2 release,
    3 reject, 4 renew (KIP-1222).
    """

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = int8s()


@struct
class ShareFetchPartition(Struct):
    """A partition to fetch, and what is acknowledged of it."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class ShareFetchTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[ShareFetchPartition] = array(ShareFetchPartition)


@struct
class ForgottenShareTopic(Struct):
    """Partitions to drop from a share session."""

    topic_id: bytes = uuid()
    partitions: list[int] = int32s()


@request(ApiKey.SHARE_FETCH, versions=(1, 2), flexible=0)
class ShareFetchRequest(Message):
    """Acquires records, and acknowledges others. Session epoch 0 opens a session, -1 closes it.

    Partitions that the session has already need not be named again.
    """

    group_id: str | None = nullable_string()
    member_id: str | None = nullable_string()
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(since=2)
    is_renew_ack: bool = boolean(since=2)
    topics: list[ShareFetchTopic] = array(ShareFetchTopic)
    forgotten_topics_data: list[ForgottenShareTopic] = array(ForgottenShareTopic)


@struct
class AcquiredRecords(Struct):
    """Records that the consumer holds from now on, from ``first_offset`` to ``last_offset``, both inclusive."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class SharePartitionData(Struct):
    """One partition: its batches, which may hold more than what was acquired."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = sentence()
    current_leader: ShareLeader = part(ShareLeader)
    records: Buffer = whole_records()
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@struct
class ShareFetchableTopicResponse(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[SharePartitionData] = array(SharePartitionData)


@response(ApiKey.SHARE_FETCH, versions=(1, 2), flexible=0)
class ShareFetchResponse(Message):
    """What was acquired, and what came of the acknowledgements."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)


@struct
class AcknowledgePartition(Struct):
    """What is acknowledged of one partition."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class AcknowledgeTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@request(ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 2), flexible=0)
class ShareAcknowledgeRequest(Message):
    """Acknowledges records, and fetches none."""

    group_id: str | None = nullable_string()
    member_id: str | None = nullable_string()
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(since=2)
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@struct
class AcknowledgedPartition(Struct):
    """What came of the acknowledgements of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    current_leader: ShareLeader = part(ShareLeader)


@struct
class ShareAcknowledgeTopicResponse(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[AcknowledgedPartition] = array(AcknowledgedPartition)


@response(ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 2), flexible=0)
class ShareAcknowledgeResponse(Message):
    """What came of the acknowledgements."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    acquisition_lock_timeout_ms: int = int32(since=2)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
