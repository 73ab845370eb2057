"""A coordinator of transactions has the leaders of their partitions write the markers, until all have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import cast

from harness.broker.injected_bugs import is_taken_for_deleted
from harness.broker.metadata import ClusterMetadata
from harness.broker.peers import Peers
from harness.broker.ports import Network
from harness.broker.transaction_markers import MarkerServices, write_marker
from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.wire.batches import Marker
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_REQUEST = (ApiKey.WRITE_TXN_MARKERS, 1)
_AGAIN_S = 0.05
_TIMEOUT_S = 10.0
_SUPERSEDED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Another coordinator, or this one in a later decision, has ended the transaction."""


@dataclass(frozen=True, slots=True)
class MarkerRoutes:
    """What a coordinator needs to have markers written: itself, and other brokers."""

    node: NodeId
    metadata: ClusterMetadata
    network: Network
    peers: Peers
    here: MarkerServices


class MarkerSender:
    """The markers of one transaction.

    Args:
        routes: the broker's.
        producer: whose transaction ends.
        marker: how.
        partitions: where.
        written: is called once all leaders have written it; never if the sender gives up.
        is_over: whether the broker does not coordinate the transaction any more.
    """

    def __init__(
        self, routes: MarkerRoutes, producer: ProducerIdentity, marker: Marker, partitions: Collection[TopicPartition],
        *, written: Callable[[], None], is_over: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._routes = routes
        self._producer = producer
        self._marker = marker
        self._left = set(partitions)
        self._asked: set[TopicPartition] = set()
        self._is_superseded = False
        self._written = written
        self._is_over = is_over

    def start(self) -> None:
        """Ask the leaders of the partitions that have no marker yet; what has no leader waits for the next time.

        A topic that there is not any more needs none (``TransactionMarkerChannelManager``).
        """
        if self._is_over():
            return
        self._left = {name for name in self._left if not self._is_deleted(name)}
        by_leader: defaultdict[NodeId, list[TopicPartition]] = defaultdict(list)
        for name in sorted(self._left):
            state = self._routes.metadata.partition(*name)
            if state is not None and self._routes.metadata.address(state.leader) is not None:
                by_leader[NodeId(state.leader)].append(name)
        self._asked = {name for names in by_leader.values() for name in names}
        if not self._asked:
            self._go_on_later()
        for leader, names in by_leader.items():
            if leader == self._routes.node:
                for name in names:
                    write_marker(self._routes.here, name, self._producer, self._marker, partial(self._answered, name))
            else:
                self._ask(leader, names)

    def _is_deleted(self, name: TopicPartition) -> bool:
        metadata, knobs = self._routes.metadata, self._routes.here.knobs
        return metadata.is_deleted(name.topic) or is_taken_for_deleted(knobs, metadata.partition(*name))

    def _ask(self, leader: NodeId, names: Iterable[TopicPartition]) -> None:
        topics: defaultdict[str, list[int]] = defaultdict(list)
        for name in names:
            topics[name.topic].append(name.partition)
        body = WriteTxnMarkersRequest(
            [
                WritableTxnMarker(
                    *self._producer,
                    self._marker.commits,
                    [WritableTxnMarkerTopic(*one) for one in topics.items()],
                    self._marker.coordinator_epoch,
                )
            ]
        )
        self._routes.peers.call(leader, _REQUEST, body, _TIMEOUT_S, partial(self._all_answered, list(names)))

    def _all_answered(self, names: list[TopicPartition], answer: Message | None) -> None:
        errors: dict[TopicPartition, int] = {}
        if answer is not None:
            errors = {
                TopicPartition(topic.name, one.partition_index): one.error_code
                for marker in cast("WriteTxnMarkersResponse", answer).markers
                for topic in marker.topics
                for one in topic.partitions
            }
        for name in names:
            self._answered(name, errors.get(name, ErrorCode.REQUEST_TIMED_OUT))

    def _answered(self, name: TopicPartition, error: int) -> None:
        self._asked.discard(name)
        if not error:
            self._left.discard(name)
        self._is_superseded |= error in _SUPERSEDED
        if not self._asked:
            self._go_on_later()

    def _go_on_later(self) -> None:
        """Everything that was asked is answered: finish, or ask again for what is left."""
        if not self._is_superseded:
            self._routes.network.call_later(_AGAIN_S if self._left else 0, self._go_on)

    def _go_on(self) -> None:
        if self._left:
            self.start()
        elif not self._is_over():
            self._written()
