"""Followers that ask where epochs end, what they ask in which generation, and what failure does to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from harness.broker import offsets
from harness.broker.caller import Caller
from harness.broker.partition import Partition
from harness.broker.replicas import Replicas
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID, NO_EPOCH, NO_OFFSET, Link, TopicPartition
from harness.replication.knobs import GENERATIONS
from harness.replication.messages import (
    AnswerFetch,
    EpochEnd,
    EpochEndAnswered,
    FetchReceived,
    ReplicaEvent,
    RetentionReached,
)
from harness.replication.replica import Replica
from harness.wire.batches import headers
from harness.wire.keys import ApiKey
from harness.wire.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.broker.virtual_cluster import T, VirtualCluster

WITH_LOOKUPS = ("0.11", "2.0.0", "2.0.1", "2.1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[ApiKey, int]]]:
    """Which versions nodes call each other with."""
    found: set[tuple[ApiKey, int]] = set()
    call = Caller.call

    def note(caller: Caller, key: ApiKey, version: int, *rest: Any) -> None:
        found.add((key, version))
        call(caller, key, version, *rest)

    monkeypatch.setattr(Caller, "call", note)
    return iter([found])


def after_a_failover(knobs: str) -> VirtualCluster:
    """Broker 0 has ``a`` and, alone, ``lost``; then 1 has led and appended ``b``; 0 is dead."""
    cluster = VirtualCluster(knobs)
    cluster.create_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    cluster.node(0).cut((Link("1", "0"), Link("2", "0")))
    cluster.world.sleep(1)  # what followers had asked before is answered by then
    cluster.produce(0, b"lost", acks=1)
    assert cluster.brokers[0].partitions[T].log.log_end_offset == 2
    cluster.kill(0)
    cluster.node(0).cut(())
    cluster.world.sleep(3)
    assert cluster.brokers[1].partitions[T].replica.role == "leader"
    cluster.produce(1, b"b", acks=1)
    cluster.world.sleep(1)
    return cluster


def epochs_in(cluster: VirtualCluster, node: int) -> list[tuple[int, int]]:
    return [(one.base_offset, one.leader_epoch) for one in headers(cluster.log_bytes(node))]


@pytest.mark.parametrize("knobs", [name for name in GENERATIONS if name != "0.10"])
def test_a_returning_leader_drops_what_it_had_alone(knobs: str) -> None:
    cluster = after_a_failover(knobs)
    cluster.start(0)
    cluster.world.sleep(3)
    assert [epochs_in(cluster, node) for node in (0, 1, 2)] == [[(0, 0), (1, 1)]] * 3
    assert len({cluster.log_bytes(node) for node in (0, 1, 2)}) == 1


@pytest.mark.parametrize(
    ("knobs", "fetch", "lookup", "alter"),
    [
        ("0.10", 4, None, 2),
        ("0.11", 5, 0, 2),
        ("2.0.0", 5, 1, 2),
        ("2.0.1", 5, 1, 2),
        ("2.1", 11, 3, 2),
        ("2.8", 12, None, 2),
        ("3.7", 15, None, 3),
        ("4.1", 15, None, 3),
    ],
)
def test_nodes_speak_the_versions_of_their_generation(
    asked: Iterator[set[tuple[ApiKey, int]]], knobs: str, fetch: int, lookup: int | None, alter: int
) -> None:
    cluster = after_a_failover(knobs)
    cluster.start(0)
    cluster.world.sleep(3)
    found = next(asked)
    assert {version for key, version in found if key is ApiKey.FETCH} == {fetch}
    assert {version for key, version in found if key is ApiKey.ALTER_PARTITION} == {alter}
    lookups = {version for key, version in found if key is ApiKey.OFFSET_FOR_LEADER_EPOCH}
    assert lookups == (set() if lookup is None else {lookup})


@pytest.mark.parametrize("error", [56, 3, 6, 75, 76, -1])
@pytest.mark.parametrize("knobs", ["0.11", "2.1"])
def test_a_lookup_that_fails_is_asked_again_in_a_while_and_nothing_is_cut(
    monkeypatch: pytest.MonkeyPatch, knobs: str, error: int
) -> None:
    cluster = after_a_failover(knobs)
    epoch_end = offsets._epoch_end
    times: list[int] = []
    handle = Partition.handle

    def check(partition: Partition, event: ReplicaEvent) -> None:
        if isinstance(event, EpochEndAnswered) and event.error is not ErrorCode.NONE:
            assert event.end == EpochEnd(NO_EPOCH, NO_OFFSET)
        handle(partition, event)

    monkeypatch.setattr(Partition, "handle", check)

    def fail(replicas: Replicas, name: TopicPartition, one: OffsetForLeaderPartition) -> EpochEndOffset:
        if replicas.node == 1 and len(times) < 4:
            times.append(cluster.world.monotonic_ns())
            assert cluster.brokers[0].partitions[T].log.log_end_offset == 2
            return EpochEndOffset(error, name.partition, 0, 0)
        return epoch_end(replicas, name, one)

    monkeypatch.setattr(offsets, "_epoch_end", fail)
    cluster.start(0)
    cluster.world.sleep(4)
    backoff_ns = cluster.settings.replica_fetch_backoff_ms * 1_000_000
    assert len(times) == 4
    assert all(later - earlier >= backoff_ns for earlier, later in pairwise(times))
    assert epochs_in(cluster, 0) == [(0, 0), (1, 1)]


def test_a_fenced_lookup_fails_the_partition_until_the_controller_speaks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = after_a_failover("2.1")
    epoch_end, asked = offsets._epoch_end, []

    def fence(replicas: Replicas, name: TopicPartition, one: OffsetForLeaderPartition) -> EpochEndOffset:
        asked.append(replicas.node)
        if replicas.node == 1:
            return EpochEndOffset(ErrorCode.FENCED_LEADER_EPOCH, name.partition)
        return epoch_end(replicas, name, one)

    monkeypatch.setattr(offsets, "_epoch_end", fence)
    cluster.start(0)
    cluster.world.sleep(2)
    assert asked == [1]
    assert sum("Replication of t-0 has failed in epoch 1" in line for line in cluster.said) == 1
    assert cluster.brokers[0].partitions[T].log.log_end_offset == 2
    cluster.kill(1)
    cluster.world.sleep(4)
    assert epochs_in(cluster, 0) == [(0, 0), (1, 1)]


def test_where_the_watermark_waits_for_followers_they_say_theirs(asked: Iterator[set[tuple[ApiKey, int]]]) -> None:
    cluster = VirtualCluster("0.10", {"hw_advance": "after_followers"})
    cluster.create_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(2)
    assert {version for key, version in next(asked) if key is ApiKey.FETCH} == {18}
    assert [cluster.brokers[node].partitions[T].replica.high_watermark for node in (0, 1, 2)] == [1, 1, 1]


def test_a_fenced_fetch_fails_the_partition_until_the_controller_speaks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = VirtualCluster("3.7")
    cluster.create_topic()
    judge, fenced = Replica.judge_fetch, []

    def fence(replica: Replica, fetch: FetchReceived) -> AnswerFetch:
        answer = judge(replica, fetch)
        if replica.node == 0 and fetch.replica == 1:
            fenced.append(fetch)
            return replace(answer, error=ErrorCode.FENCED_LEADER_EPOCH)
        return answer

    monkeypatch.setattr(Replica, "judge_fetch", fence)
    cluster.world.sleep(3)
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(3)
    assert sum("Replication of t-0 has failed in epoch 0" in line for line in cluster.said) == 1
    assert len(fenced) < 4  # the parked one is judged again when it ends
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 0
    monkeypatch.undo()
    cluster.node(CONTROLLER_ID).operate("elect", {"topic": "t", "partition": 0, "leader": 2})
    cluster.world.sleep(2)
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 1


def test_an_answer_that_lacks_the_partition_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = after_a_failover("2.0.1")
    epoch_end, asked = offsets._epoch_end, []

    def misdirect(replicas: Replicas, name: TopicPartition, one: OffsetForLeaderPartition) -> EpochEndOffset:
        asked.append(replicas.node)
        answer = epoch_end(replicas, name, one)
        if len(asked) < 3:
            answer.partition = 7
        return answer

    monkeypatch.setattr(offsets, "_epoch_end", misdirect)
    cluster.start(0)
    cluster.world.sleep(3)
    assert len(asked) >= 3
    assert epochs_in(cluster, 0) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("knobs", WITH_LOOKUPS)
def test_a_partition_that_truncates_does_not_fetch(monkeypatch: pytest.MonkeyPatch, knobs: str) -> None:
    cluster = after_a_failover(knobs)
    monkeypatch.setattr(
        offsets, "_epoch_end", lambda _, name, __: EpochEndOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER, name.partition)
    )
    fetched: list[int] = []
    call = Caller.call

    def note(caller: Caller, key: ApiKey, version: int, body: Any, *rest: Any) -> None:
        if key is ApiKey.FETCH and body.replica_id == 0:
            fetched.append(version)
        call(caller, key, version, body, *rest)

    monkeypatch.setattr(Caller, "call", note)
    cluster.start(0)
    cluster.world.sleep(2)
    assert fetched == []


def test_a_follower_whose_leader_has_deleted_what_it_lacks_begins_where_the_leader_begins() -> None:
    cluster = VirtualCluster("3.7", log_segment_bytes=100)
    cluster.create_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    cluster.kill(2)
    for value in (b"b", b"c", b"d"):
        cluster.produce(0, value, acks=1)
    cluster.world.sleep(3)
    leader = cluster.brokers[0].partitions[T]
    leader.handle(RetentionReached(3, cluster.world.wall_ms() * 1_000_000))
    assert leader.log.log_start_offset == 3
    cluster.start(2)
    cluster.world.sleep(2)
    follower = cluster.brokers[2].partitions[T]
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (3, 4)
    assert follower.replica.epoch_entries[0].leader_epoch == 0
    details = [row["detail"] for row in cluster.node(2).timeline_rows("log_start")]
    assert '{"from_offset": 0, "to_offset": 3' in details[0]


def test_a_follower_says_its_broker_epoch_and_the_leader_s_proposal_carries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster("3.7")
    cluster.create_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    cluster.kill(2)
    cluster.world.sleep(4)
    proposals: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    propose = type(cluster.brokers[0]).propose_isr

    def note(broker: Any, partition: Any, proposal: Any) -> None:
        proposals.append((proposal.isr, proposal.broker_epochs))
        propose(broker, partition, proposal)

    monkeypatch.setattr(type(cluster.brokers[0]), "propose_isr", note)
    cluster.start(2)
    cluster.world.sleep(3)
    isr, epochs = proposals[-1]
    registered = dict(zip(isr, epochs, strict=True))
    assert registered[2] == cluster.brokers[2].controller.broker_epoch
    assert 2 in cluster.controller.status()["partitions"][0]["isr"]


@pytest.mark.parametrize(("knobs", "fencing", "error"), [
    ("4.1", "true", ErrorCode.UNKNOWN_LEADER_EPOCH), ("4.1", "false", ErrorCode.NONE),
    ("2.0.1", "true", ErrorCode.UNKNOWN_LEADER_EPOCH), ("2.0.1", "false", ErrorCode.NONE),
])  # fmt: skip
def test_a_leader_fences_lookups_by_the_knob_of_lookups(knobs: str, fencing: str, error: ErrorCode) -> None:
    cluster = VirtualCluster(knobs, {"lookup_fencing": fencing})
    cluster.create_topic()
    asked = OffsetForLeaderEpochRequest(1, [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, 99, 0)])])
    (answer,) = cluster.call(0, ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, asked)
    assert answer.topics[0].partitions[0].error_code == error
