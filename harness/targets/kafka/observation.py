"""Observes a real cluster past every proxy: the controller's decisions, and the state of the brokers' replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.model import CONTROLLER, CONTROLLER_ID, NO_LEADER, NodeId, Offset, TopicPartition, node_id, node_name
from harness.target import ClusterView, QuorumView, ReplicaView
from harness.targets.kafka.decisions import ControllerLog, Decision, PartitionDecision, Withdrawal, partition_view
from harness.targets.kafka.logged_roles import LoggedRoles
from harness.targets.kafka.observed_cluster import ObservedCluster
from harness.targets.kafka.quorum import QuorumProbe, described
from harness.targets.kafka.releases import Metadata, numbers
from harness.targets.kafka.replica_probe import ReplicaProbe
from harness.targets.kafka.zookeeper import answers
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from harness.wire.messages.consumers import OffsetFetchRequest, OffsetFetchResponse
from harness.wire.messages.coordination import FindCoordinatorRequest, FindCoordinatorResponse

TELLS_EPOCHS_SINCE = "2.4"
"""The first release that is asked for leader epochs. Brokers return them since 2.1 (KIP-320), but 2.1.1 not for every
replica; followers serve consumers since 2.4 (KIP-392)."""

_TIMEOUT_S = 1.0
_FIND_COORDINATOR, _OFFSET_FETCH = 2, 7
"""The newest request versions that are used: those about one group."""

_NO_COMMIT = -1

Answer = TypeVar("Answer")


class ClusterObservation:
    """The observing methods of :class:`harness.target.Target`.

    Args:
        cluster: where the nodes and the controller's log are.
    """

    def __init__(self, cluster: ObservedCluster) -> None:
        self.cluster = cluster
        self.release = cluster.release
        self._log = self.controller_log()
        self._leaders = Leaders()
        self._probes = {name: self.replica_probe(name, _TIMEOUT_S) for name in cluster.broker_names}
        self._talks = {name: self.conversation(name, _TIMEOUT_S) for name in cluster.broker_names}
        self._controllers = {
            name: Conversation(node_id(name), address, _TIMEOUT_S)
            for name in (cluster.controllers if cluster.release.metadata is Metadata.KRAFT else ())
            if (address := cluster.controller_address(name)) is not None
        }

    # ------------------------------------------------------------------------------------------------ views

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        now_ns, controllers = time.monotonic_ns(), tuple(self.cluster.controllers)
        controlling = self._controlling()
        if controlling is None:
            only = controllers[0] if len(controllers) == 1 else None
            return ClusterView(now_ns, (), {}, only, controllers)
        controller, quorum = controlling
        self._read_on()
        live = tuple(node for node in self._log.live if node != CONTROLLER_ID)
        partitions = {name: partition_view(state) for name, state in self._log.partitions.items()}
        return ClusterView(now_ns, live, partitions, controller, controllers, quorum)

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`. Real brokers return neither their ISR nor their followers' state."""
        try:
            seen = self._probes[node].look([partition]).get(partition)
        except NoAnswer:
            return None
        if seen is None:
            return None
        self._read_on()
        return ReplicaView(
            role=seen.role,
            leader=self._leaders.of(partition, seen.leader_epoch),
            leader_epoch=seen.leader_epoch,
            high_watermark=seen.high_watermark,
            log_end_offset=seen.log_end_offset,
            log_start_offset=seen.log_start_offset,
            isr=(),
            remote_log_end_offsets={},
        )

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        request = FindCoordinatorRequest(key=group)
        found = self.first_answer(
            lambda talk: talk.ask(request, FindCoordinatorResponse, _FIND_COORDINATOR), lambda one: one.error_code == 0
        )
        if found is None or (name := node_name(self.cluster.node(found.node_id))) not in self._talks:
            return {}
        return self._committed(self._talks[name], group)

    def _committed(self, coordinator: Conversation, group: str) -> Mapping[TopicPartition, Offset]:
        try:
            request = OffsetFetchRequest(group_id=group, topics=None)
            answer = coordinator.ask(request, OffsetFetchResponse, _OFFSET_FETCH)
        except NoAnswer:
            return {}
        return {
            TopicPartition(topic.name, one.partition_index): one.committed_offset
            for topic in answer.topics
            for one in topic.partitions
            if one.error_code == 0 and one.committed_offset != _NO_COMMIT
        }

    # ------------------------------------------------------------------------------------------------ for others

    def controller_log(self) -> ControllerLog:
        """The controller's log, from its beginning."""
        return self.cluster.controller_log()

    def replica_probe(self, broker: str, timeout_s: float) -> ReplicaProbe:
        """A new probe for the replicas of a broker."""
        tells = self.release.numbers >= numbers(TELLS_EPOCHS_SINCE)
        logged_roles = None if tells else LoggedRoles(self.cluster.printed(broker))
        return ReplicaProbe(node_id(broker), self.cluster.address(broker), timeout_s, logged_roles)

    def quorum_probe(self, controllers: Iterable[str], timeout_s: float) -> QuorumProbe:
        """A new probe for the quorum of these controllers."""
        addresses = {name: self.cluster.controller_address(name) for name in controllers}
        return QuorumProbe(
            {name: Conversation(node_id(name), at, timeout_s) for name, at in addresses.items() if at is not None}
        )

    def conversation(self, broker: str, timeout_s: float) -> Conversation:
        """A new conversation with a broker."""
        return Conversation(node_id(broker), self.cluster.address(broker), timeout_s)

    def asks_controllers(self) -> bool:
        """Whether requests go to KRaft's controllers directly; else brokers forward them."""
        return bool(self._controllers)

    def conversation_with_controller(self, timeout_s: float) -> Conversation:
        """A new conversation with the active KRaft controller.

        Raises:
            NoAnswer: there is none.
        """
        controlling = self._controlling()
        if controlling is None:
            raise NoAnswer("no controller is active.")
        address = self.cluster.controller_address(controlling[0])
        assert address is not None, "controllers are asked themselves"
        return Conversation(node_id(controlling[0]), address, timeout_s)

    def first_answer(self, ask: Callable[[Conversation], Answer], serves: Callable[[Answer], bool]) -> Answer | None:
        """The first broker's answer that ``serves``; None: there is none."""
        for name in self.cluster.broker_names:
            try:
                answer = ask(self._talks[name])
            except NoAnswer:
                continue
            if serves(answer):
                return answer
        return None

    def close(self) -> None:
        """Close all connections; idempotent. A later request connects again."""
        for probe in self._probes.values():
            probe.close()
        for talk in (*self._talks.values(), *self._controllers.values()):
            talk.close()

    # ------------------------------------------------------------------------------------------------ the controller

    def _read_on(self) -> None:
        self._leaders.note(self._log.read_on())

    def _controlling(self) -> tuple[str, QuorumView | None] | None:
        """The active controller, if it answers, and its view of the quorum, if it is asked; None: there is none."""
        if self.release.metadata is Metadata.ZOOKEEPER:
            return (CONTROLLER, None) if answers(self.cluster.zookeeper()) else None
        self._read_on()
        if self._log.controller is None:
            return None
        name = self.cluster.controller_named(self._log.controller)
        if name not in self._controllers:
            return None if self.first_answer(_ping, lambda _: True) is None else (name, None)
        quorum = self._quorum(name)
        return None if quorum is None else (name, quorum)

    def _quorum(self, controller: str) -> QuorumView | None:
        """Its view while it is active; None: it is not, or does not answer. A broker may have asked another."""
        quorum = described(self._controllers[controller])
        if quorum is None or self._named(quorum.leader_id) != controller:
            return None
        ends = {self._named(voter.replica_id): voter.log_end_offset for voter in quorum.current_voters}
        return QuorumView(quorum.leader_epoch, quorum.high_watermark, ends)

    def _named(self, kafka_id: int) -> str:
        return self.cluster.controller_named(self.cluster.node(kafka_id))


def _ping(talk: Conversation) -> ApiVersionsResponse:
    return talk.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)


class Leaders:
    """The elected leader of each epoch of each partition; no other broker can lead in that epoch."""

    def __init__(self) -> None:
        self._elected: dict[tuple[TopicPartition, int], NodeId] = {}

    def note(self, decisions: Iterable[Decision | Withdrawal]) -> None:
        """Apply decisions and withdrawals."""
        for decision in decisions:
            if isinstance(decision, PartitionDecision):
                state = decision.after
                self._elected[state.topic_partition, state.leader_epoch] = state.leader
            elif isinstance(decision, Withdrawal):
                self._withdraw(decision.decisions)

    def _withdraw(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, PartitionDecision):
                before, after = decision.before, decision.after
                if before is None or before.leader_epoch < after.leader_epoch:
                    self._elected.pop((after.topic_partition, after.leader_epoch), None)

    def of(self, partition: TopicPartition, leader_epoch: int) -> NodeId:
        """The leader in that epoch; ``NO_LEADER`` if there was none or it is unknown."""
        return self._elected.get((partition, leader_epoch), NO_LEADER)
