"""Requests leader elections from a real cluster, as an operator does.

On request Kafka elects the preferred leader, the first replica of a partition. So the harness reassigns the same
replicas in another order, with the wanted leader first, and afterwards back. From 2.4 on there are requests for both
(KIP-460, KIP-455), which only the active controller serves. Before 2.4 the harness writes a node into ZooKeeper, which
the controller removes when it is done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from kazoo.exceptions import NodeExistsError

from harness.clients.conversation import Conversation
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import NO_LEADER, NodeId, TopicPartition, node_name
from harness.target import PartitionView
from harness.targets.awaiting import answered_view
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.releases import numbers
from harness.targets.kafka.zookeeper import zookeeper
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse
from harness.wire.messages.operators import (
    PREFERRED_ELECTION,
    UNCLEAN_ELECTION,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)

ON_REQUEST_SINCE = "2.4"
"""The release from which on elections and reassignments are requests."""

_ELECTED = frozenset({0, 84})
"""The error codes after which the requested leader leads: NONE and ELECTION_NOT_NEEDED."""

_TIMEOUT_S = 30.0
_POLL_S = 0.02
_NEWEST = 2
_METADATA = 1
_ELECTION = "/admin/preferred_replica_election"
_REASSIGNMENT = "/admin/reassign_partitions"


class Electing:
    """The elections of :class:`harness.controls.Elections`."""

    def __init__(self, observation: ClusterObservation) -> None:
        self._observation = observation
        self._by_request = observation.release.numbers >= numbers(ON_REQUEST_SINCE)

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        seen = answered_view(self._observation.view, _TIMEOUT_S, _POLL_S).partitions.get(partition)
        if seen is None:
            raise _refusal(partition, "it knows no such partition")
        if leader is not None and leader not in seen.replicas:
            raise _refusal(partition, f"broker {leader} has no replica of it")
        if unclean and not self._by_request:
            raise EnvironmentFault(
                f"Kafka {self._observation.release.version} has no request for an unclean election.",
                "Set unclean.leader.election.enable, for the next election without a live replica in the ISR.",
            )
        preferred = None if unclean else seen.replicas[0]
        with self._preferring(partition, seen, leader):
            if self._by_request:
                self._request_election(partition, unclean=unclean)
            else:
                self._write_wish(_ELECTION, {"topic": partition.topic, "partition": partition.partition})
            self._await_leader(partition, preferred if leader is None else leader)

    # ------------------------------------------------------------------------------------------------ preferred leaders

    @contextmanager
    def _preferring(self, partition: TopicPartition, seen: PartitionView, leader: NodeId | None) -> Iterator[None]:
        """Keep ``leader`` the first of the replicas meanwhile."""
        if leader is None or leader == seen.replicas[0]:
            yield
            return
        self._reassign(partition, [leader, *(node for node in seen.replicas if node != leader)])
        try:
            yield
        finally:
            self._reassign(partition, seen.replicas)

    def _reassign(self, partition: TopicPartition, replicas: Sequence[NodeId]) -> None:
        if self._by_request:
            self._request_reassignment(partition, replicas)
        else:
            wish = {"topic": partition.topic, "partition": partition.partition, "replicas": list(replicas)}
            self._write_wish(_REASSIGNMENT, wish)
        self._await(
            lambda: tuple(replicas) == self._seen(partition).replicas,
            _refusal(partition, f"its replicas did not become {list(replicas)} within {_TIMEOUT_S:g} s"),
        )

    # ------------------------------------------------------------------------------------------------ how one asks

    def _request_reassignment(self, partition: TopicPartition, replicas: Sequence[NodeId]) -> None:
        known = [self._observation.cluster.kafka_id(node) for node in replicas]
        wish = ReassignableTopic(partition.topic, [ReassignablePartition(partition.partition, known)])
        request = AlterPartitionReassignmentsRequest(topics=[wish])
        with closing(self._controller()) as controller:
            answer = controller.ask(request, AlterPartitionReassignmentsResponse, _NEWEST)
        codes = [answer.error_code, *(one.error_code for topic in answer.responses for one in topic.partitions)]
        if any(codes):
            raise _refusal(partition, f"error {max(codes)} for the order {list(replicas)} of its replicas")

    def _request_election(self, partition: TopicPartition, *, unclean: bool) -> None:
        request = ElectLeadersRequest(
            UNCLEAN_ELECTION if unclean else PREFERRED_ELECTION,
            [TopicPartitions(partition.topic, [partition.partition])],
        )
        with closing(self._controller()) as controller:
            answer = controller.ask(request, ElectLeadersResponse, _NEWEST)
        results = [one for topic in answer.replica_election_results for one in topic.partition_result]
        for result in results:
            if result.error_code not in _ELECTED:
                raise _refusal(partition, f"error {result.error_code}, {result.error_message or 'no reason given'}")
        if answer.error_code:
            raise _refusal(partition, f"error {answer.error_code}")

    def _controller(self) -> Conversation:
        """A conversation with the active controller.

        Raises:
            NoAnswer: no broker names it.
        """
        if self._observation.asks_controllers():
            return self._observation.conversation_with_controller(_TIMEOUT_S)
        metadata = self._observation.first_answer(
            lambda talk: talk.ask(MetadataRequest(topics=[]), MetadataResponse, _METADATA),
            lambda answer: answer.controller_id >= 0,
        )
        if metadata is None:
            raise NoAnswer("no broker knows Kafka's controller.")
        controller = self._observation.cluster.node(metadata.controller_id)
        return self._observation.conversation(node_name(controller), _TIMEOUT_S)

    def _write_wish(self, path: str, wish: dict[str, object]) -> None:
        """Write ``wish`` into ZooKeeper and wait until the controller has removed it."""
        with zookeeper(self._observation.cluster.zookeeper()) as client:
            text = json.dumps({"version": 1, "partitions": [wish]}).encode()
            try:
                client.create(path, text)
            except NodeExistsError:
                raise EnvironmentFault(f"ZooKeeper has a wish at {path} already, which no controller obeys.") from None
            gone = f"the controller did not obey what was written at {path} within {_TIMEOUT_S:g} s."
            self._await(lambda: client.exists(path) is None, EnvironmentFault(gone))

    # ------------------------------------------------------------------------------------------------ what became of it

    def _await_leader(self, partition: TopicPartition, leader: NodeId | None) -> None:
        """Wait until ``leader`` leads; None: any broker."""

        def leads() -> bool:
            now = self._seen(partition).leader
            return now != NO_LEADER if leader is None else now == leader

        self._await(leads, _refusal(partition, f"{leader} did not become its leader within {_TIMEOUT_S:g} s"))

    def _seen(self, partition: TopicPartition) -> PartitionView:
        seen = self._observation.view().partitions.get(partition)
        if seen is None:
            raise NoAnswer(f"the controller does not know {partition} any more.")
        return seen

    def _await(self, holds: Callable[[], bool], complaint: EnvironmentFault) -> None:
        """Wait until ``holds`` does; ask a node that did not answer again."""
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            with suppress(NoAnswer):
                if holds():
                    return
            time.sleep(_POLL_S)
        raise complaint


def _refusal(partition: TopicPartition, why: str) -> EnvironmentFault:
    return EnvironmentFault(f"the controller refuses to elect a leader of {partition}: {why}.")
