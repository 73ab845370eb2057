"""Produce (``ProduceRequest.json``, ``ProduceResponse.json``).

Versions 0 to 2 carried the record formats before v2; there is no codec for them. They are advertised all the
same, because librdkafka before 2.1 stops compressing when the first version is not 0 (KAFKA-18659). Version 13, which
names topics by their ids, is for wire taps: no built-in node serves it.
"""

from __future__ import annotations

from harness.model import NO_OFFSET
from harness.wire.declaration import (
    Buffer,
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nullable_string,
    nullable_struct,
    records,
    request,
    response,
    sentence,
    string,
    struct,
    uuid,
)
from harness.wire.keys import ApiKey
from harness.wire.messages.leadership import LeaderIdAndEpoch, NodeEndpoint


@struct
class PartitionProduceData(Struct):
    """Batches for one partition. ``records`` points into the frame it was decoded from."""

    index: int = int32()
    records: Buffer | None = records()


@struct
class TopicProduceData(Struct):
    """Batches for the partitions of one topic."""

    name: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@request(ApiKey.PRODUCE, versions=(3, 13), flexible=9)
class ProduceRequest(Message):
    """Sends batches to be appended. ``acks`` is 0, 1, or -1 for all; 0 means that no response is expected at all."""

    transactional_id: str | None = nullable_string()
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)

    def error_response(self, error: int) -> Message | None:
        """See :meth:`Message.error_response`."""
        if self.acks == 0:
            return None
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [PartitionProduceResponse(one.index, error, NO_OFFSET) for one in topic.partition_data],
                )
                for topic in self.topic_data
            ]
        )


@struct
class BatchIndexAndErrorMessage(Struct):
    """Why one record of a batch was refused."""

    batch_index: int = int32(since=8)
    batch_index_error_message: str | None = sentence(since=8)


@struct
class PartitionProduceResponse(Struct):
    """The result for one partition; ``base_offset`` is -1 on error."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(since=2, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, since=8)
    error_message: str | None = sentence(since=8)
    current_leader: LeaderIdAndEpoch | None = nullable_struct(LeaderIdAndEpoch, since=10, tag=0)


@struct
class TopicProduceResponse(Struct):
    """The results for one topic."""

    name: str = string(until=12)
    topic_id: bytes = uuid(since=13)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@response(ApiKey.PRODUCE, versions=(3, 13), flexible=9)
class ProduceResponse(Message):
    """The results of the appends. ``node_endpoints`` belong to the leaders named in it (KIP-951)."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(since=1)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)
