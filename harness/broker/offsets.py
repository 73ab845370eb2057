"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, cast

from harness.broker.partition import Partition
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.wire.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

_OFFSET_NOT_AVAILABLE_SINCE = 5


class _Found(NamedTuple):
    """An offset, and the timestamp and leader epoch that belong to it; -1 where there is none."""

    offset: Offset
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


def list_offsets(replicas: Replicas, knobs: Knobs, request: Request) -> None:
    """Serve ListOffsets: the latest offset is the high watermark, or the log end for a (claimed) replica.

    For a reader of committed records it is the last stable offset.

    The broker refuses a partition that the request names several times each time, as Kafka does.
    """
    body = cast("ListOffsetsRequest", request.body)
    is_replica = body.replica_id >= 0
    named = Counter((topic.name, one.partition_index) for topic in body.topics for one in topic.partitions)
    once = {name for name, count in named.items() if count == 1}
    request.answer(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    topic.name,
                    [
                        _list_one((replicas, knobs), request, topic.name, one, is_replica)
                        if (topic.name, one.partition_index) in once
                        else ListOffsetsPartitionResponse(one.partition_index, ErrorCode.INVALID_REQUEST)
                        for one in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )
    )  # fmt: skip


def _list_one(
    services: tuple[Replicas, Knobs], request: Request, topic: str, asked: ListOffsetsPartition, is_replica: bool
) -> ListOffsetsPartitionResponse:
    (replicas, knobs), name = services, TopicPartition(topic, asked.partition_index)
    partition = replicas.get(name)
    error = replicas.absence_of(name) if partition is None else _leader_error(partition, asked.current_leader_epoch)
    if partition is None or error is not ErrorCode.NONE:
        return ListOffsetsPartitionResponse(name.partition, error)
    replica = partition.replica
    if asked.timestamp == LATEST_TIMESTAMP and not is_replica and not replica.knows_latest():
        return ListOffsetsPartitionResponse(name.partition, _not_yet(request.version))
    bound = replica.log_end_offset if is_replica else replica.high_watermark
    if cast("ListOffsetsRequest", request.body).isolation_level == READ_COMMITTED and not is_replica:
        bound = replica.log.last_stable_offset
    found = _find(partition, asked.timestamp, bound, knobs)
    if found.offset == NO_OFFSET and not is_replica and not replica.knows_latest():
        return ListOffsetsPartitionResponse(name.partition, _not_yet(request.version))
    return ListOffsetsPartitionResponse(
        name.partition, ErrorCode.NONE, found.timestamp, found.offset, found.leader_epoch
    )


def _not_yet(version: int) -> int:
    """The error while the leader does not know its watermark yet: the client asks again (KIP-207)."""
    return ErrorCode.OFFSET_NOT_AVAILABLE if version >= _OFFSET_NOT_AVAILABLE_SINCE else ErrorCode.LEADER_NOT_AVAILABLE


def _find(partition: Partition, timestamp: int, bound: Offset, knobs: Knobs) -> _Found:
    match timestamp:
        case _ if timestamp == LATEST_TIMESTAMP:
            return _Found(bound, leader_epoch=partition.replica.leader_epoch)
        case _ if timestamp == EARLIEST_TIMESTAMP:
            return _Found(partition.replica.log_start_offset, leader_epoch=_first_epoch(partition))
        case _ if timestamp == MAX_TIMESTAMP:
            return _latest_record(partition, bound)
        case _:
            is_strict = "lookup_is_strict" in knobs.bugs
            return _first_since(partition, timestamp + is_strict, bound)


def _first_epoch(partition: Partition) -> int:
    entries = partition.replica.epoch_entries
    return entries[0].leader_epoch if entries else NO_EPOCH


def _first_since(partition: Partition, timestamp: int, bound: Offset) -> _Found:
    """The first batch with a record that young: exact to the batch, while Kafka looks for the record in it."""
    header = partition.log.first_since(timestamp, bound)
    if header is None:
        return _Found(NO_OFFSET)
    first = max(header.base_offset, partition.replica.log_start_offset)
    return _Found(first, header.max_timestamp, header.leader_epoch)


def _latest_record(partition: Partition, bound: Offset) -> _Found:
    """The batch with the largest timestamp, the first of several (KIP-734)."""
    header = partition.log.latest(bound)
    if header is None:
        return _Found(NO_OFFSET)
    return _Found(header.end_offset - 1, header.max_timestamp, header.leader_epoch)


def offset_for_leader_epoch(replicas: Replicas, request: Request) -> None:
    """Serve OffsetForLeaderEpoch (KIP-101, KIP-320)."""
    body = cast("OffsetForLeaderEpochRequest", request.body)
    request.answer(
        OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic,
                    [_epoch_end(replicas, TopicPartition(topic.topic, one.partition), one) for one in topic.partitions],
                )
                for topic in body.topics
            ]
        )
    )


def _epoch_end(replicas: Replicas, name: TopicPartition, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = replicas.get(name)
    if partition is None:
        return EpochEndOffset(replicas.absence_of(name), name.partition)
    error, end = partition.replica.judge_lookup(
        max(asked.current_leader_epoch, NO_EPOCH), max(asked.leader_epoch, NO_EPOCH)
    )
    if error is not ErrorCode.NONE:
        return EpochEndOffset(error, name.partition)
    return EpochEndOffset(ErrorCode.NONE, name.partition, end.leader_epoch, end.end_offset)


def _leader_error(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    return partition.replica.leader_error(max(current_leader_epoch, NO_EPOCH))
