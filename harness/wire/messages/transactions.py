"""Transactions, between producers, coordinators and leaders (the ``*.json`` of those names, KIP-98)."""

from __future__ import annotations

from harness.model import NO_EPOCH, NO_GENERATION
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
)
from harness.wire.keys import ApiKey


@struct
class AddPartitionsToTxnTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partitions: list[int] = int32s()


@struct
class AddPartitionsToTxnTransaction(Struct):
    """The partitions to add to one transaction, or to look for in it if ``verify_only`` (KIP-890)."""

    transactional_id: str = string(since=4)
    producer_id: int = int64(since=4)
    producer_epoch: int = int16(since=4)
    verify_only: bool = boolean(since=4)
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, since=4)


@request(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 4), flexible=3)
class AddPartitionsToTxnRequest(Message):
    """Adds partitions to transactions: a producer to its own up to v3, a broker to those of several from v4 on."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, since=4)
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AddPartitionsToTxnResponse(
            error_code=error, results_by_topic_v3_and_below=of_each(self.v3_and_below_topics, error)
        )


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@struct
class AddPartitionsToTxnTopicResult(Struct):
    """The results for one topic."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@struct
class AddPartitionsToTxnResult(Struct):
    """The results for one transaction."""

    transactional_id: str = string(since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, since=4)


def of_each(topics: list[AddPartitionsToTxnTopic], error: int) -> list[AddPartitionsToTxnTopicResult]:
    """The same error for every partition."""
    return [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(partition, error) for partition in topic.partitions]
        )
        for topic in topics
    ]


@response(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 4), flexible=3)
class AddPartitionsToTxnResponse(Message):
    """The result for every partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, until=3)


@request(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest(Message):
    """Adds the offsets of a group to the producer's transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return AddOffsetsToTxnResponse(error_code=error)


@response(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse(Message):
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()


@request(ApiKey.END_TXN, versions=(0, 5), flexible=3)
class EndTxnRequest(Message):
    """Commits or aborts the producer's transaction; from v5 on its epoch is raised with that (KIP-890)."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return EndTxnResponse(error_code=error)


@response(ApiKey.END_TXN, versions=(0, 5), flexible=3)
class EndTxnResponse(Message):
    """The result: the coordinator has stored it, the partitions have yet to get their markers.

    From v5 on it says who the producer is in its next transaction.
    """

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1)
    producer_epoch: int = int16(since=5, default=-1)


@struct
class WritableTxnMarkerTopic(Struct):
    """The partitions of one topic that get a marker."""

    name: str = string()
    partition_indexes: list[int] = int32s()


@struct
class WritableTxnMarker(Struct):
    """The end of one transaction; ``transaction_result`` is whether it is committed."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2)


@request(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2), flexible=1)
class WriteTxnMarkersRequest(Message):
    """A coordinator has leaders write down how transactions ended."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [WritableTxnMarkerPartitionResult(index, error) for index in topic.partition_indexes],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in self.markers
            ]
        )


@struct
class WritableTxnMarkerPartitionResult(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult(Struct):
    """The results for one transaction."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@response(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2), flexible=1)
class WriteTxnMarkersResponse(Message):
    """The result for every marker in every partition."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)


@struct
class TxnOffsetCommitRequestPartition(Struct):
    """The next offset to be read of one partition, and the leader epoch of the record before it (KIP-320)."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=2, default=NO_EPOCH)
    committed_metadata: str | None = nullable_string()


@struct
class TxnOffsetCommitRequestTopic(Struct):
    """The offsets of one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@request(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest(Message):
    """Commits offsets with the producer's transaction; from v3 on as a member of the group (KIP-447).

    From v5 on it also adds the partition of the group to the transaction (KIP-890).
    """

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=NO_GENERATION)
    member_id: str = string(since=3)
    group_instance_id: str | None = nullable_string(since=3)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic.name,
                    [TxnOffsetCommitResponsePartition(one.partition_index, error) for one in topic.partitions],
                )
                for topic in self.topics
            ]
        )


@struct
class TxnOffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@response(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse(Message):
    """The result for every partition."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
