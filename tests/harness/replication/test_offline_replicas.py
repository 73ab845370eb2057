"""The controller, and replicas whose brokers live but whose log directories have failed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    ControllerStarted,
    Elected,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    PartitionState,
    RegistrationRequested,
    ReplicasAnswered,
    SendMetadata,
    SendPartitionStates,
    TopicCreationRequested,
)
from harness.replication.knobs import generation
from harness.replication.offline_replicas import OfflineReplicas

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
ALL = tuple(map(NodeId, range(3)))


class Cluster:
    """Three brokers, and a topic of two partitions that broker 0 leads."""

    def __init__(self, knobs: str = "3.7", **arguments: Any) -> None:
        self.controller = Controller(1000, knobs=generation(knobs), **arguments)
        self.controller.handle(ControllerStarted(0))
        for broker in ALL:
            self.register(broker, "first")
        self.created = self.controller.handle(TopicCreationRequested(None, "t", -1, -1, (ALL, ALL)))

    def register(self, broker: NodeId, life: str) -> list[Any]:
        return self.controller.handle(RegistrationRequested(None, broker, life, "h", 1, 0))

    def epoch(self, broker: int) -> int:
        return self.controller.brokers[broker].epoch

    def beat(self, broker: int, *log_dirs: str) -> list[Any]:
        return self.controller.handle(HeartbeatReceived(None, NodeId(broker), self.epoch(broker), 0, log_dirs))

    def answer(self, broker: int, *, offline: tuple[TopicPartition, ...] = (), online: Any = ()) -> list[Any]:
        return self.controller.handle(ReplicasAnswered(NodeId(broker), self.epoch(broker), offline, online))

    def state(self, name: TopicPartition) -> PartitionState:
        return next(one for one in self.controller.partitions if one.topic_partition == name)


def test_a_broker_that_has_lost_a_directory_is_asked_for_all_its_replicas_once() -> None:
    cluster = Cluster()
    (sent,) = [one for one in cluster.beat(0, "a") if isinstance(one, SendPartitionStates)]
    assert (sent.broker, [one.topic_partition for one in sent.partitions], sent.are_new) == (0, [ONE, TWO], False)
    assert len(cluster.beat(0, "a")) == 1
    assert len(cluster.beat(0, "a", "b")) == 2


def test_replicas_of_a_topic_are_new_when_it_is_created_and_never_again() -> None:
    cluster = Cluster()
    assert all(one.are_new for one in cluster.created if isinstance(one, SendPartitionStates))
    again = [one for one in cluster.register(NodeId(0), "first") if isinstance(one, SendPartitionStates)]
    assert not any(one.are_new for one in again)


def test_an_offline_leader_is_replaced_and_leaves_the_isr_where_it_is_offline() -> None:
    cluster = Cluster()
    effects = cluster.answer(0, offline=(TWO,))
    assert [one.partition.leader for one in effects if isinstance(one, Elected)] == [1]
    assert (cluster.state(ONE).leader, cluster.state(ONE).isr) == (0, ALL)
    assert (cluster.state(TWO).leader, cluster.state(TWO).isr) == (1, (1, 2))
    (metadata,) = [one for one in effects if isinstance(one, SendMetadata)]
    assert metadata.offline == ((TWO, 0),)


def test_what_is_known_already_changes_nothing() -> None:
    cluster = Cluster()
    cluster.answer(0, offline=(TWO,))
    assert cluster.answer(0, offline=(TWO,), online=(ONE,)) == []


def test_an_answer_of_an_earlier_life_changes_nothing() -> None:
    cluster = Cluster()
    stale = ReplicasAnswered(NodeId(0), cluster.epoch(0) - 1, (TWO,), ())
    assert cluster.controller.handle(stale) == []


@pytest.mark.parametrize("knobs", ["2.8", "3.7", "4.1"])
def test_a_partition_whose_last_replica_is_offline_has_no_leader_until_it_is_online_again(knobs: str) -> None:
    cluster = Cluster(knobs)
    for broker in (1, 2, 0):
        cluster.answer(broker, offline=(ONE,))
    assert cluster.state(ONE).leader == NO_LEADER
    cluster.answer(1, online=(ONE,))
    if knobs != "4.1":  # min.insync.replicas is 1: only the last one in sync may lead
        assert cluster.state(ONE).leader == NO_LEADER
    cluster.answer(0, online=(ONE,))
    assert cluster.state(ONE).leader == 0


def test_an_operator_cannot_put_an_offline_replica_in_charge() -> None:
    cluster = Cluster()
    cluster.answer(1, offline=(ONE,))
    for unclean in (False, True):
        request = ElectionRequested(None, ONE, NodeId(1), unclean, 0)
        (answer,) = cluster.controller.handle(request)
        assert answer.error is not ErrorCode.NONE  # type: ignore[union-attr]


def test_an_offline_replica_is_not_admitted_to_the_isr() -> None:
    cluster = Cluster()
    cluster.answer(2, offline=(ONE,))
    state = cluster.state(ONE)
    request = IsrChangeRequested(None, NodeId(0), cluster.epoch(0), ONE, state.leader_epoch, state.partition_epoch, ALL)
    (answer,) = cluster.controller.handle(request)
    assert answer.error is ErrorCode.INELIGIBLE_REPLICA  # type: ignore[union-attr]


def test_a_broker_that_is_registered_anew_is_taken_to_have_everything() -> None:
    cluster = Cluster("2.8")
    cluster.answer(0, offline=(TWO,))
    (metadata,) = [one for one in cluster.register(NodeId(0), "second") if isinstance(one, SendMetadata)]
    assert metadata.offline == ()


def test_a_new_process_of_a_broker_begins_with_all_its_replicas() -> None:
    replicas = OfflineReplicas()
    assert replicas.heard(NodeId(0), ["a"])
    assert replicas.answered(NodeId(0), [ONE], [TWO])
    assert replicas.answered(NodeId(1), [ONE], [])
    assert replicas.live(ONE, ALL) == (2,)
    replicas.restarted(NodeId(0))
    assert replicas.live(ONE, ALL) == (0, 2)
    assert replicas.heard(NodeId(0), ["a"])
    assert replicas.replicas == ((ONE, 1),)
