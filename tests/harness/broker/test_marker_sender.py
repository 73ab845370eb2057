"""For which partitions a coordinator of transactions has markers written."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.broker.marker_sender import MarkerRoutes, MarkerSender
from harness.broker.metadata import ClusterMetadata
from harness.broker.ports import Network
from harness.broker.transaction_markers import MarkerServices
from harness.coordination.ports import ProducerIdentity
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.wire.batches import Marker
from harness.wire.messages.control import UpdateMetadataPartitionState, UpdateMetadataRequest, UpdateMetadataTopicState
from harness.wire.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

NAME = TopicPartition("t", 0)


class Sending:
    """Broker 0 coordinates a transaction whose one partition broker 1 leads."""

    def __init__(self, bugs: str = "") -> None:
        self.metadata = ClusterMetadata("c", tells_epochs=True)
        self.later: list[Callable[[], None]] = []
        self.asked: list[Any] = []
        self.written = 0
        knobs = generation(CURRENT_GENERATION, {"bugs": bugs} if bugs else {})
        here = cast("MarkerServices", SimpleNamespace(knobs=knobs))
        routes = MarkerRoutes(NodeId(0), self.metadata, cast("Network", self), cast("Any", self), here)
        self._sender = MarkerSender(
            routes, ProducerIdentity(7, 1), Marker(commits=True, coordinator_epoch=3), [NAME],
            written=self._count, is_over=lambda: False,
        )  # fmt: skip

    def _count(self) -> None:
        self.written += 1

    def call_later(self, _: float, then: Callable[[], None]) -> None:
        self.later.append(then)

    def call(self, node: int, request: Any, body: Any, timeout_s: float, answered: Any) -> None:
        self.asked.append(answered)

    def start(self) -> None:
        self._sender.start()

    def learn(self, *topics: str, leader: int = 1) -> None:
        """The broker is sent the cluster's metadata."""
        states = [UpdateMetadataPartitionState(partition_index=0, leader=leader)]
        known = [UpdateMetadataTopicState(topic, partition_states=states) for topic in topics]
        self.metadata.update(UpdateMetadataRequest(topic_states=known))
        self.metadata.brokers = {NodeId(1): ("10.0.0.11", 9092)}

    def go_on(self) -> None:
        self.later.pop(0)()


@pytest.fixture
def sending() -> Sending:
    return Sending()


def test_a_topic_that_was_deleted_needs_no_marker(sending: Sending) -> None:
    sending.learn("another")
    sending.start()
    sending.go_on()
    assert (sending.written, sending.asked) == (1, [])


def test_a_broker_that_has_no_metadata_yet_takes_no_topic_for_deleted(sending: Sending) -> None:
    sending.start()  # as a coordinator that has just started, which knows nothing but what it leads
    sending.go_on()
    assert (sending.written, sending.asked) == (0, [])
    sending.learn("t")
    sending.go_on()
    (answered,) = sending.asked
    topic = WritableTxnMarkerTopicResult("t", [WritableTxnMarkerPartitionResult(0, 0)])
    answered(WriteTxnMarkersResponse([WritableTxnMarkerResult(7, [topic])]))
    sending.go_on()
    assert sending.written == 1


@pytest.mark.parametrize("bugs", ["", "leaderless_unmarked"])
def test_a_partition_without_a_leader_is_waited_for_unless_a_bug_takes_it_for_deleted(bugs: str) -> None:
    sending = Sending(bugs)
    sending.learn("t", leader=NO_LEADER)
    sending.start()
    sending.go_on()
    assert (sending.written, sending.asked) == (int(bool(bugs)), [])
