"""WriteTxnMarkers: a leader writes into its log how the transactions of producers ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from harness.broker.coordinator_log import Appends
from harness.broker.group_coordinator import GroupCoordinator
from harness.broker.injected_bugs import marked, marker_is_lost
from harness.broker.ports import Network
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.clock import Clock
from harness.coordination.internal_topics import GROUPS_TOPIC
from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.replication.knobs import Knobs
from harness.wire import batches as wire
from harness.wire.batches import Marker
from harness.wire.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Written = Callable[[int], None]
"""Takes the error code: 0 once all in-sync replicas have the marker."""


@dataclass(frozen=True, slots=True)
class MarkerServices:
    """What a broker needs to write markers."""

    replicas: Replicas
    network: Network
    clock: Clock
    groups: GroupCoordinator
    appends: Appends
    knobs: Knobs


def write_marker(
    services: MarkerServices, name: TopicPartition, producer: ProducerIdentity, marker: Marker, written: Written
) -> None:
    """Append a marker with acks=all; a commit of offsets takes effect with it.

    Args:
        services: the broker's.
        name: the partition, which the broker should lead.
        producer: whose transaction ends.
        marker: how.
        written: takes the error code, in a later turn.
    """
    partition = services.replicas.get(name)
    if partition is None:
        error = services.replicas.absence_of(name)
        services.network.call_later(0, lambda: written(error))
        return
    if marker_is_lost(services.knobs, services.clock):
        services.network.call_later(0, lambda: written(ErrorCode.NONE))
        return
    marker = marked(services.knobs, services.clock, marker)
    batch = wire.build_marker(
        marker, timestamp_ms=services.clock.wall_ms(), producer_id=producer.producer_id, producer_epoch=producer.epoch
    )

    def stored(error: int) -> None:
        if not error and name.topic == GROUPS_TOPIC:
            services.groups.transaction_ended(name.partition, producer.producer_id, commits=marker.commits)
        written(error)

    services.appends.append(partition, batch, stored)


def write_txn_markers(services: MarkerServices, request: Request) -> None:
    """Serve WriteTxnMarkers: the answer waits until every marker is decided."""
    body = cast("WriteTxnMarkersRequest", request.body)
    named = [
        (number, TopicPartition(topic.name, index))
        for number, marker in enumerate(body.markers)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    places = dict.fromkeys(named)
    errors: dict[tuple[int, TopicPartition], int] = {}

    def written(place: tuple[int, TopicPartition], error: int) -> None:
        errors[place] = error
        if len(errors) == len(places):
            request.answer(_response(body, errors))

    if not places:
        request.answer(_response(body, errors))
    for number, name in places:
        one = body.markers[number]
        marker = Marker(one.transaction_result, one.coordinator_epoch)
        producer = ProducerIdentity(one.producer_id, one.producer_epoch)
        write_marker(services, name, producer, marker, partial(written, (number, name)))


def _response(body: WriteTxnMarkersRequest, errors: dict[tuple[int, TopicPartition], int]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            WritableTxnMarkerPartitionResult(index, errors[number, TopicPartition(topic.name, index)])
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for number, marker in enumerate(body.markers)
        ]
    )
