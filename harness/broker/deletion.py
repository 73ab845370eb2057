"""DeleteRecords: the beginning of a partition goes because a client says so (KIP-107)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from harness.broker.kafka_time import kafka_time_ns
from harness.model import NO_OFFSET, Offset, TopicPartition
from harness.replication.messages import DeleteRecordsRequested, ErrorCode
from harness.wire.messages import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from harness.broker.broker import Broker
    from harness.broker.session import Request


class _Slot:
    """One partition's part of the request: the core's token for it."""

    def __init__(self, index: int) -> None:
        self.result = DeleteRecordsPartitionResult(index)

    def deleted(self, error: ErrorCode, low_watermark: Offset) -> None:
        """See :class:`harness.broker.partition.DeleteRecordsToken`."""
        self.result.error_code = error
        self.result.low_watermark = low_watermark


def delete_records(broker: Broker, request: Request) -> None:
    """Serve DeleteRecords. The answer does not wait for followers, which learn the log start when they fetch."""
    body = cast("DeleteRecordsRequest", request.body)
    response = DeleteRecordsResponse()
    for topic in body.topics:
        slots = [
            _delete(broker, TopicPartition(topic.name, one.partition_index), one.offset) for one in topic.partitions
        ]
        response.topics.append(DeleteRecordsTopicResult(topic.name, [slot.result for slot in slots]))
    request.answer(response)


def _delete(broker: Broker, name: TopicPartition, before_offset: Offset) -> _Slot:
    slot = _Slot(name.partition)
    partition = broker.partitions.get(name)
    if partition is None:
        slot.deleted(broker.absence_of(name), NO_OFFSET)
    else:
        partition.handle(DeleteRecordsRequested(slot, before_offset, kafka_time_ns(broker.clock)))
    return slot
