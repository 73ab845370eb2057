"""Maps the broker ids 0, 1, 2 ... of scenarios to those of a user's file, by their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller_messages import PartitionState
from harness.targets.kafka.decisions import (
    ControllerDecision,
    ControllerLog,
    Decision,
    SessionDecision,
    Withdrawal,
)

_STRANGERS = 1000
"""Added to the ids of nodes that are no brokers of the target, such as dedicated controllers."""


class Numbering:
    """Maps between the ids of scenarios and Kafka's; ``kafka_ids`` are those of the brokers."""

    def __init__(self, kafka_ids: Mapping[NodeId, int]) -> None:
        self._kafka_ids = dict(kafka_ids)
        self._nodes = {kafka_id: node for node, kafka_id in kafka_ids.items()}

    def kafka_id(self, node: NodeId) -> int:
        """Kafka's id of a broker of the target."""
        return self._kafka_ids[node]

    def node(self, kafka_id: int) -> NodeId:
        """The broker with that id; a number beyond all others if it is no broker of the target."""
        if kafka_id == NO_LEADER:
            return NO_LEADER
        return self._nodes.get(kafka_id, NodeId(_STRANGERS + kafka_id))

    def is_ours(self, kafka_id: int) -> bool:
        """Whether the broker is one of the target."""
        return kafka_id in self._nodes


class RenumberedLog:
    """A :class:`~harness.targets.kafka.decisions.ControllerLog` with the ids of scenarios."""

    def __init__(self, log: ControllerLog, numbering: Numbering) -> None:
        self._log = log
        self._numbering = numbering

    def read_on(self) -> Sequence[Decision | Withdrawal]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return [
            Withdrawal(list(map(self._renumbered, one.decisions)))
            if isinstance(one, Withdrawal)
            else self._renumbered(one)
            for one in self._log.read_on()
        ]

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return {name: self._state(state) for name, state in self._log.partitions.items()}

    @property
    def live(self) -> Sequence[NodeId]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`; of the target's brokers only."""
        return sorted(self._numbering.node(one) for one in self._log.live if self._numbering.is_ours(one))

    @property
    def controller(self) -> NodeId | None:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        elected = self._log.controller
        return None if elected is None else self._numbering.node(elected)

    def _renumbered(self, decision: Decision) -> Decision:
        if isinstance(decision, SessionDecision):
            return replace(decision, broker=self._numbering.node(decision.broker))
        if isinstance(decision, ControllerDecision):
            controller, voters = self._numbering.node(decision.controller), self._nodes(decision.voters)
            return replace(decision, controller=controller, voters=voters)
        before = None if decision.before is None else self._state(decision.before)
        return replace(decision, before=before, after=self._state(decision.after))

    def _state(self, state: PartitionState) -> PartitionState:
        return state._replace(
            leader=self._numbering.node(state.leader),
            isr=self._nodes(state.isr),
            replicas=self._nodes(state.replicas),
            elr=self._nodes(state.elr),
            last_known_elr=self._nodes(state.last_known_elr),
        )

    def _nodes(self, kafka_ids: Iterable[int]) -> tuple[NodeId, ...]:
        return tuple(map(self._numbering.node, kafka_ids))
