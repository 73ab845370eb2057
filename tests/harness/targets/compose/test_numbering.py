"""Brokers that a user's file counts from 1, and scenarios from 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller_messages import PartitionState
from harness.targets.compose.numbering import Numbering, RenumberedLog
from harness.targets.kafka.decisions import Decision, PartitionDecision, SessionDecision, Withdrawal

LEDGER = TopicPartition("ledger", 0)
NUMBERING = Numbering({NodeId(0): 1, NodeId(1): 2, NodeId(2): 7})


def ids(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def state(leader: int, isr: Sequence[int], replicas: Sequence[int]) -> PartitionState:
    return PartitionState(LEDGER, NodeId(leader), 3, 4, ids(*isr), ids(*replicas))


@dataclass
class Written:
    """A controller's log in which this is written."""

    decisions: Sequence[Decision | Withdrawal] = ()
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    live: Sequence[NodeId] = ()
    controller: NodeId | None = None

    def read_on(self) -> Sequence[Decision | Withdrawal]:
        return self.decisions


def test_decisions_are_about_the_brokers_of_scenarios() -> None:
    kafkas = PartitionDecision(state(1, [1, 7], [1, 2, 7]), state(7, [7], [1, 2, 7]), 5, 6, "offset 8")
    ours = PartitionDecision(state(0, [0, 2], [0, 1, 2]), state(2, [2], [0, 1, 2]), 5, 6, "offset 8")
    assert RenumberedLog(Written([kafkas]), NUMBERING).read_on() == [ours]


def test_what_is_withdrawn_is_what_was_told() -> None:
    kafkas = SessionDecision(NodeId(7), "expired", 6, "offset 9")
    log = RenumberedLog(Written([kafkas, Withdrawal([kafkas])]), NUMBERING)
    told, withdrawn = log.read_on()
    assert withdrawn == Withdrawal([SessionDecision(NodeId(2), "expired", 6, "offset 9")])
    assert told in withdrawn.decisions


def test_nobody_leads_in_every_numbering() -> None:
    assert NUMBERING.node(NO_LEADER) == NO_LEADER
    (left,) = RenumberedLog(Written(partitions={LEDGER: state(-1, [], [1])}), NUMBERING).partitions.values()
    assert left == state(-1, [], [0])


def test_a_broker_that_is_not_of_the_target_is_none_of_its_brokers() -> None:
    log = RenumberedLog(Written(live=ids(1, 2, 4, 100)), NUMBERING)
    assert log.live == [0, 1]
    assert NUMBERING.node(4) not in (0, 1, 2)
