"""DeleteRecords: a client deletes the records of a partition before an offset (KIP-107)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from harness.broker.delayed import Delayed
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.partition import Partition
from harness.broker.ports import Network
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import NO_OFFSET, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.messages import DeleteRecordsExpired, DeleteRecordsRequested
from harness.wire.messages.operators import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@dataclass(frozen=True, slots=True)
class DeletionServices:
    """What a broker needs to serve DeleteRecords."""

    replicas: Replicas
    network: Network
    clock: Clock
    knobs: Knobs


class _Slot:
    """One partition's part of the request: the core's token for it."""

    def __init__(self, deleting: _Deleting, index: int, partition: Partition | None) -> None:
        self._deleting = deleting
        self.partition = partition
        self.result = DeleteRecordsPartitionResult(index)

    def deleted(self, error: ErrorCode, low_watermark: Offset) -> None:
        """See :class:`harness.broker.partition.DeleteRecordsToken`."""
        self.result.error_code = error
        self.result.low_watermark = low_watermark
        self._deleting.slot_done(self)


class _Deleting(Delayed[_Slot]):
    """One request until every broker with a session has deleted too, or until its timeout has passed."""

    def __init__(self, services: DeletionServices, request: Request) -> None:
        super().__init__(services.network, request)
        self._services = services
        self._body = cast("DeleteRecordsRequest", request.body)
        self._response = DeleteRecordsResponse()

    def start(self) -> None:
        """Delete; answer at once unless brokers have to follow."""
        todo: list[tuple[_Slot, TopicPartition, Offset]] = []
        for topic in self._body.topics:
            slots = []
            for one in topic.partitions:
                name = TopicPartition(topic.name, one.partition_index)
                slots.append(_Slot(self, one.partition_index, self._services.replicas.get(name)))
                todo.append((slots[-1], name, one.offset))
            self._response.topics.append(DeleteRecordsTopicResult(topic.name, [slot.result for slot in slots]))
        self._wait_for(slot for slot, _, _ in todo)
        for slot, name, before_offset in todo:
            self._delete(slot, name, before_offset)
        self._wait_at_most(self._body.timeout_ms)

    def _delete(self, slot: _Slot, name: TopicPartition, before_offset: Offset) -> None:
        if slot.partition is None:
            slot.deleted(self._services.replicas.absence_of(name), NO_OFFSET)
        elif "deletes_nothing" in self._services.knobs.bugs:
            slot.deleted(ErrorCode.NONE, before_offset)
        else:
            before_offset += "deletes_one_more" in self._services.knobs.bugs
            slot.partition.handle(DeleteRecordsRequested(slot, before_offset, kafka_time_ns(self._services.clock)))

    def _expiry(self, slot: _Slot) -> DeleteRecordsExpired:
        return DeleteRecordsExpired(slot)

    def _answer(self) -> None:
        self._request.answer(self._response)


def delete_records(services: DeletionServices, request: Request) -> None:
    """Serve DeleteRecords."""
    _Deleting(services, request).start()
