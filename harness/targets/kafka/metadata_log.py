"""Reads KRaft's metadata log from the controller's disk while the controller writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.model import NodeId, Offset, TopicPartition
from harness.replication.controller_messages import PartitionState
from harness.targets.kafka.decisions import ControllerDecision, Decision, PartitionDecision, SessionDecision
from harness.targets.kafka.growing_log import GrowingLog, Mark
from harness.targets.kafka.metadata_records import (
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    decode,
    leader_change,
)
from harness.wire import batches
from harness.wire.batches import BatchHeader

DIRECTORY = "__cluster_metadata-0"
"""Of the log, below a controller's metadata directory."""


class MetadataLog(GrowingLog):
    """A :class:`~harness.targets.kafka.decisions.ControllerLog`.

    Args:
        directory: the log's segments; it need not exist yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._readable_end: Offset = sys.maxsize
        super().__init__()

    def _forget(self) -> None:
        self._position: dict[Path, int] = {}
        self._next_offset = 0
        self._topics: dict[bytes, str] = {}
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._live: dict[int, bool] = {}
        self._registered_anew: set[int] = set()
        self._controller: NodeId | None = None

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return self._partitions

    @property
    def live(self) -> Sequence[NodeId]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return [NodeId(broker) for broker, live in sorted(self._live.items()) if live]

    @property
    def controller(self) -> NodeId | None:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return self._controller

    def _read(self) -> Iterator[Decision]:
        for segment in sorted(self._directory.glob("*.log")):
            for data, header in self._new_batches(segment):
                yield from self._apply(data, header)

    def _new_batches(self, segment: Path) -> Iterator[tuple[bytes, BatchHeader]]:
        """The whole batches behind those that have been read."""
        position = self._position.get(segment, 0)
        try:
            with segment.open("rb") as file:
                file.seek(position)
                data = file.read()
        except FileNotFoundError:
            return  # it went with its disk, or was too old
        for header in batches.headers(data[: batches.complete_size(data)]):
            if header.end_offset > self._readable_end:
                return
            self._position[segment] = position + header.position + header.size
            start = data[header.position : header.position + batches.HEADER_BYTES]
            self._last = Mark(segment, position + header.position, start)
            if header.base_offset >= self._next_offset:
                self._next_offset = header.end_offset
                yield data, header

    def _apply(self, data: bytes, header: BatchHeader) -> Iterator[Decision]:
        if header.attributes & batches.CONTROL:
            yield from self._apply_control(data, header)
            return
        for record in batches.records(data, header):
            source = f"offset {record.offset} of the metadata log"
            match decode(record.value or b""):
                case TopicRecord() as topic:
                    self._topics[topic.topic_id] = topic.name
                case RemoveTopicRecord() as topic:
                    self._remove(self._topics.pop(topic.topic_id))
                case PartitionRecord() | PartitionChangeRecord() as change:
                    yield self._decided(change, header, record.timestamp, source)
                case RegisterBrokerRecord() as broker:
                    self._registered_anew.add(broker.broker_id)
                    yield from self._session(broker.broker_id, not broker.fenced, record.timestamp, source)
                case UnfenceBrokerRecord() as broker:
                    yield from self._session(broker.broker_id, True, record.timestamp, source)
                case FenceBrokerRecord() | UnregisterBrokerRecord() as broker:
                    yield from self._session(broker.broker_id, False, record.timestamp, source)
                case BrokerRegistrationChangeRecord() as broker if broker.fenced:
                    yield from self._session(broker.broker_id, broker.fenced < 0, record.timestamp, source)

    def _apply_control(self, data: bytes, header: BatchHeader) -> Iterator[Decision]:
        for record in batches.records(data, header):
            change = leader_change(record.key or b"", record.value or b"")
            if change is not None:
                self._controller = NodeId(change.leader_id)
                voters = tuple(NodeId(one.voter_id) for one in change.voters)
                source = f"offset {record.offset} of the metadata log"
                yield ControllerDecision(self._controller, header.leader_epoch, voters, record.timestamp, source)

    def _remove(self, topic: str) -> None:
        self._partitions = {name: state for name, state in self._partitions.items() if name.topic != topic}

    def _decided(
        self, change: PartitionRecord | PartitionChangeRecord, header: BatchHeader, wall_ms: int, source: str
    ) -> Decision:
        name = TopicPartition(self._topics[change.topic_id], change.partition_id)
        before = self._partitions.get(name)
        if isinstance(change, PartitionRecord):
            after, places = _created(name, change), False
        else:
            assert before is not None, f"{source} changes {name}, which has not been created"
            after, places = _changed(before, change), change.directories is not None and change.replicas is None
        self._partitions[name] = after
        return PartitionDecision(before, after, header.leader_epoch, wall_ms, source, places)

    def _session(self, broker: int, live: bool, wall_ms: int, source: str) -> Iterator[Decision]:
        if live == self._live.get(broker, False):
            return
        self._live[broker] = live
        if not live:
            yield SessionDecision(NodeId(broker), "expired", wall_ms, source)
            return
        anew = broker in self._registered_anew
        self._registered_anew.discard(broker)
        yield SessionDecision(NodeId(broker), "registered" if anew else "returned", wall_ms, source)


def _created(name: TopicPartition, record: PartitionRecord) -> PartitionState:
    return PartitionState(
        name,
        NodeId(record.leader),
        record.leader_epoch,
        record.partition_epoch,
        _nodes(record.isr),
        _nodes(record.replicas),
        _nodes(record.eligible_leader_replicas or ()),
        _nodes(record.last_known_elr or ()),
    )


def _changed(before: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """As in Kafka's ``PartitionRegistration.merge``: a named leader begins a new epoch, even if it led before."""
    elected = record.leader != NO_LEADER_CHANGE
    return before._replace(
        leader=NodeId(record.leader) if elected else before.leader,
        leader_epoch=before.leader_epoch + elected,
        partition_epoch=before.partition_epoch + 1,
        isr=before.isr if record.isr is None else _nodes(record.isr),
        replicas=before.replicas if record.replicas is None else _nodes(record.replicas),
        elr=before.elr if record.eligible_leader_replicas is None else _nodes(record.eligible_leader_replicas),
        last_known_elr=before.last_known_elr if record.last_known_elr is None else _nodes(record.last_known_elr),
    )


def _nodes(ids: Sequence[int]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))
