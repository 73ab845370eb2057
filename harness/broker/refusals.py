"""The answer to any request as a whole: one error code, in all the places where that API has room for one.

Kafka's ``AbstractRequest.getErrorResponse``: for a caller that may not ask, and for a request that could not be served.
"""

from __future__ import annotations

from functools import singledispatch

from harness.model import NO_EPOCH, NO_OFFSET
from harness.wire import messages as wire
from harness.wire.declaration import NO_UUID, Message

_NO_NODE = -1
_NO_TIMESTAMP = -1


@singledispatch
def refusal(body: Message, error: int) -> Message | None:
    """The answer that says ``error`` of everything in the request ``body``.

    None: there is none to be given, so that the connection is closed instead (Produce with acks 0).

    Raises:
        NotImplementedError: no node serves such requests.
    """
    raise NotImplementedError(f"{type(body).__name__} is served by no node")


@refusal.register
def _produce(body: wire.ProduceRequest, error: int) -> Message | None:
    if body.acks == 0:
        return None
    return wire.ProduceResponse(
        [
            wire.TopicProduceResponse(
                topic.name,
                [wire.PartitionProduceResponse(one.index, error, NO_OFFSET) for one in topic.partition_data],
            )
            for topic in body.topic_data
        ]
    )


@refusal.register
def _fetch(body: wire.FetchRequest, error: int) -> Message:
    def part(number: int) -> wire.PartitionData:
        return wire.PartitionData(number, error, NO_OFFSET, records=b"")

    return wire.FetchResponse(
        error_code=error,
        responses=[
            wire.FetchableTopicResponse(topic.topic, topic.topic_id, [part(one.partition) for one in topic.partitions])
            for topic in body.topics
        ],
    )


@refusal.register
def _list_offsets(body: wire.ListOffsetsRequest, error: int) -> Message:
    def part(number: int) -> wire.ListOffsetsPartitionResponse:
        return wire.ListOffsetsPartitionResponse(number, error, timestamp=_NO_TIMESTAMP, offset=NO_OFFSET)

    return wire.ListOffsetsResponse(
        topics=[
            wire.ListOffsetsTopicResponse(topic.name, [part(one.partition_index) for one in topic.partitions])
            for topic in body.topics
        ]
    )


@refusal.register
def _offset_for_leader_epoch(body: wire.OffsetForLeaderEpochRequest, error: int) -> Message:
    return wire.OffsetForLeaderEpochResponse(
        topics=[
            wire.OffsetForLeaderTopicResult(
                topic.topic, [wire.EpochEndOffset(error, one.partition) for one in topic.partitions]
            )
            for topic in body.topics
        ]
    )


@refusal.register
def _delete_records(body: wire.DeleteRecordsRequest, error: int) -> Message:
    return wire.DeleteRecordsResponse(
        topics=[
            wire.DeleteRecordsTopicResult(
                topic.name,
                [wire.DeleteRecordsPartitionResult(one.partition_index, NO_OFFSET, error) for one in topic.partitions],
            )
            for topic in body.topics
        ]
    )


@refusal.register
def _metadata(body: wire.MetadataRequest, error: int) -> Message:
    return wire.MetadataResponse(
        topics=[wire.MetadataResponseTopic(error, topic.name or "", topic.topic_id) for topic in body.topics or ()]
    )


@refusal.register
def _api_versions(_: wire.ApiVersionsRequest, error: int) -> Message:
    return wire.ApiVersionsResponse(error)


@refusal.register
def _find_coordinator(body: wire.FindCoordinatorRequest, error: int) -> Message:
    """A port of 0 would poison librdkafka's table of brokers."""
    keys = [wire.Coordinator(key, _NO_NODE, "", _NO_NODE, error) for key in body.coordinator_keys]
    return wire.FindCoordinatorResponse(error_code=error, node_id=_NO_NODE, port=_NO_NODE, coordinators=keys)


@refusal.register
def _init_producer_id(_: wire.InitProducerIdRequest, error: int) -> Message:
    return wire.InitProducerIdResponse(error_code=error, producer_epoch=NO_EPOCH)


@refusal.register
def _offset_commit(body: wire.OffsetCommitRequest, error: int) -> Message:
    return wire.OffsetCommitResponse(
        topics=[
            wire.OffsetCommitResponseTopic(
                topic.name,
                [wire.OffsetCommitResponsePartition(one.partition_index, error) for one in topic.partitions],
            )
            for topic in body.topics
        ]
    )


@refusal.register
def _offset_fetch(body: wire.OffsetFetchRequest, error: int) -> Message:
    """Version 1 has no place for an error but those of its partitions."""
    return wire.OffsetFetchResponse(
        topics=[
            wire.OffsetFetchResponseTopic(
                topic.name,
                [
                    wire.OffsetFetchResponsePartition(index, NO_OFFSET, NO_EPOCH, "", error)
                    for index in topic.partition_indexes
                ],
            )
            for topic in body.topics or ()
        ],
        error_code=error,
        groups=[wire.OffsetFetchResponseGroup(group.group_id, error_code=error) for group in body.groups],
    )


@refusal.register
def _create_topics(body: wire.CreateTopicsRequest, error: int) -> Message:
    return wire.CreateTopicsResponse(
        topics=[wire.CreatableTopicResult(topic.name, NO_UUID, error) for topic in body.topics]
    )


@refusal.register
def _elect_leaders(body: wire.ElectLeadersRequest, error: int) -> Message:
    def parts(numbers: list[int]) -> list[wire.PartitionResult]:
        return [wire.PartitionResult(number, error) for number in numbers]

    return wire.ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            wire.ReplicaElectionResult(
                topic.topic, [wire.PartitionResult(number, error) for number in topic.partitions]
            )
            for topic in body.topic_partitions or ()
        ],
    )


@refusal.register
def _describe_log_dirs(_: wire.DescribeLogDirsRequest, error: int) -> Message:
    """Before version 3 an answer without log directories has to do, as in Kafka."""
    return wire.DescribeLogDirsResponse(error_code=error)


# ------------------------------------------------------------------------------------- between brokers and controller


@refusal.register
def _leader_and_isr(_: wire.LeaderAndIsrRequest, error: int) -> Message:
    return wire.LeaderAndIsrResponse(error)


@refusal.register
def _update_metadata(_: wire.UpdateMetadataRequest, error: int) -> Message:
    return wire.UpdateMetadataResponse(error)


@refusal.register
def _broker_registration(_: wire.BrokerRegistrationRequest, error: int) -> Message:
    return wire.BrokerRegistrationResponse(error_code=error)


@refusal.register
def _broker_heartbeat(_: wire.BrokerHeartbeatRequest, error: int) -> Message:
    return wire.BrokerHeartbeatResponse(error_code=error)


@refusal.register
def _alter_partition(_: wire.AlterPartitionRequest, error: int) -> Message:
    return wire.AlterPartitionResponse(error_code=error)


@refusal.register
def _allocate_producer_ids(_: wire.AllocateProducerIdsRequest, error: int) -> Message:
    return wire.AllocateProducerIdsResponse(error_code=error)


@refusal.register
def _assign_replicas_to_dirs(_: wire.AssignReplicasToDirsRequest, error: int) -> Message:
    return wire.AssignReplicasToDirsResponse(error_code=error)
