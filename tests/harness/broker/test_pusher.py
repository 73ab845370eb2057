"""What the controller owes a broker that does not hear, or does not obey."""

from __future__ import annotations

from collections import deque
from typing import cast

import pytest

from harness.broker.pusher import MAX_STATES, Pusher
from harness.broker.session import Request, Sessions, raise_again
from harness.model import CONTROLLER, Link, NodeId, TopicPartition
from harness.replication.cluster_state import BrokerRecord
from harness.replication.controller_messages import (
    PartitionState,
    ReplicasAnswered,
    ReplicasDeleted,
    SendMetadata,
    SendPartitionStates,
)
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire.keys import ApiKey
from harness.wire.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataResponse,
)

BROKER = NodeId(1)
ADDRESS = ("10.0.0.1", 9092)
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Script:
    """A broker that answers as told, and with no error when told nothing."""

    def __init__(self) -> None:
        self.world = VirtualScheduler()
        self.answers: deque[LeaderAndIsrResponse] = deque()
        self.heard: list[list[tuple[int, int]]] = []
        self.metadata_answers: deque[int] = deque()
        self.metadata_heard = 0
        self.told: list[ReplicasAnswered | ReplicasDeleted] = []
        handlers = {ApiKey.LEADER_AND_ISR: self._states, ApiKey.UPDATE_METADATA: self._metadata}
        self.network = SimulatedNetwork(self.world, "1")
        self.network.listen(ADDRESS, Sessions(handlers, raise_again).accept)
        record = BrokerRecord(BROKER, "life", 5, *ADDRESS, live=True)
        self.pusher = Pusher(SimulatedNetwork(self.world, CONTROLLER), record, 1.5, list, self.told.append)

    def _states(self, request: Request) -> None:
        body = cast("LeaderAndIsrRequest", request.body)
        assert body.broker_epoch == 5
        states = [state for topic in body.topic_states for state in topic.partition_states]
        self.heard.append([(state.partition_index, state.leader_epoch) for state in states])
        request.answer(self.answers.popleft() if self.answers else LeaderAndIsrResponse())

    def _metadata(self, request: Request) -> None:
        self.metadata_heard += 1
        request.answer(UpdateMetadataResponse(self.metadata_answers.popleft() if self.metadata_answers else 0))

    def push(self, *names: TopicPartition, leader_epoch: int = 0) -> None:
        replicas = (NodeId(0), BROKER)
        states = tuple(PartitionState(name, BROKER, leader_epoch, 0, replicas, replicas) for name in names)
        self.pusher.push_states(SendPartitionStates(BROKER, 1, states))


@pytest.fixture
def script() -> Script:
    return Script()


def test_a_state_that_was_pushed_to_a_deaf_broker_arrives_when_it_hears_again(script: Script) -> None:
    script.network.cut([Link(CONTROLLER, "1")])
    script.push(ONE)
    script.world.sleep(2)
    assert script.heard == []
    script.network.cut([])
    script.world.sleep(2)
    assert script.heard[-1] == [(0, 0)]
    script.world.sleep(5)
    assert len(script.heard) == 2, "once over the connection that was given up, once over its successor"


def test_what_came_after_an_undelivered_state_replaces_it(script: Script) -> None:
    script.network.cut([Link(CONTROLLER, "1")])
    script.push(ONE, TWO)
    script.world.sleep(1)
    script.push(ONE, leader_epoch=1)
    script.world.sleep(1)
    script.network.cut([])
    script.world.sleep(2)
    assert [sorted(states) for states in script.heard] == [[(0, 0), (1, 0)], [(0, 1), (1, 0)]]


@pytest.mark.parametrize("error", [77, 7])
def test_a_refused_state_is_pushed_again_after_a_pause_until_it_is_obeyed(script: Script, error: int) -> None:
    script.answers.extend(LeaderAndIsrResponse(error) for _ in range(3))
    script.push(ONE)
    script.world.sleep(0)
    assert len(script.heard) == 1
    script.world.sleep(5)
    assert script.heard == [[(0, 0)]] * 4


def test_what_another_controller_s_broker_refuses_is_given_up(script: Script) -> None:
    script.answers.append(LeaderAndIsrResponse(11))
    script.push(ONE)
    script.world.sleep(5)
    assert script.heard == [[(0, 0)]]


def test_only_the_partitions_that_were_refused_are_pushed_again(script: Script) -> None:
    errors = [LeaderAndIsrPartitionError("t", 0, 0), LeaderAndIsrPartitionError("t", 1, 7)]
    script.answers.append(LeaderAndIsrResponse(0, errors))
    script.push(ONE, TWO)
    script.world.sleep(5)
    assert script.heard == [[(0, 0), (1, 0)], [(1, 0)]]


def test_a_partition_whose_storage_failed_is_not_pushed_again(script: Script) -> None:
    script.answers.append(LeaderAndIsrResponse(0, [LeaderAndIsrPartitionError("t", 0, 56)]))
    script.push(ONE)
    script.world.sleep(5)
    assert script.heard == [[(0, 0)]]


def test_refused_metadata_is_pushed_again_and_given_up_for_another_controller(script: Script) -> None:
    script.metadata_answers.extend([77, 77, 11])
    script.pusher.push_metadata(SendMetadata((BROKER,), 1, (), ()))
    script.world.sleep(5)
    assert script.metadata_heard == 3


def test_nothing_is_owed_to_a_broker_whose_session_ended(script: Script) -> None:
    script.answers.append(LeaderAndIsrResponse(77))
    script.push(ONE)
    script.world.sleep(0)
    script.pusher.stop()
    script.world.sleep(5)
    assert script.heard == [[(0, 0)]]


def test_no_request_speaks_of_more_replicas_than_a_broker_should_create_at_once(script: Script) -> None:
    script.push(*(TopicPartition("t", number) for number in range(2 * MAX_STATES + 5)))
    script.world.sleep(1)
    assert [len(states) for states in script.heard] == [MAX_STATES, MAX_STATES, 5]
    assert sorted(number for states in script.heard for number, _ in states) == list(range(2 * MAX_STATES + 5))
