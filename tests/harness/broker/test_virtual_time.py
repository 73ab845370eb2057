"""The same broker and controller classes, driven by a network and a clock of memory instead of a process."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.caller import Caller
from harness.broker.partition import Partition
from harness.broker.produce import Producing
from harness.broker.topic_ids import topic_id
from harness.model import CONTROLLER, CONTROLLER_ID
from harness.replication.messages import FetchAnswered, ReplicaEvent
from harness.simulation.stack.cluster import listener
from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.control import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopicData,
    BrokerHeartbeatRequest,
)
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.offsets import LATEST_TIMESTAMP, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import T, VirtualCluster


def test_a_produce_is_acknowledged_when_the_last_follower_has_fetched_past_it() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.deafen(2)
    waiting = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"a")))
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 1
    assert waiting == []
    cluster.deafen()
    cluster.world.sleep(0)
    assert waiting[0].responses[0].partition_responses[0].base_offset == 0


def test_a_watermark_is_written_down_before_the_producer_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    answer, written = Producing.slot_done, []

    def after_a_look(producing: Producing, slot: Any) -> None:
        written.append(cluster.node(0).timeline_rows("state")[-1]["high_watermark"])
        answer(producing, slot)

    monkeypatch.setattr(Producing, "slot_done", after_a_look)
    assert cluster.produce(0, b"a") == [(0, 0)]
    assert written == [1]


def test_a_follower_s_silence_shrinks_the_isr_and_then_acknowledges() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.deafen(2)
    waiting = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"a"), timeout_ms=30_000))
    cluster.world.sleep(5)
    assert cluster.brokers[0].partitions[T].replica.isr == (0, 1)
    assert waiting[0].responses[0].partition_responses[0].error_code == 0


def test_a_dead_leader_s_acknowledged_records_survive_it() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    assert cluster.produce(0, b"a") == [(0, 0)]
    cluster.kill(0)
    cluster.world.sleep(3)
    assert cluster.produce(1, b"b") == [(0, 1)]
    cluster.start(0)
    cluster.world.sleep(3)
    assert cluster.brokers[1].partitions[T].replica.isr == (1, 2, 0)
    ends = [(b.partitions[T].log.log_end_offset, b.partitions[T].replica.high_watermark) for b in
            cluster.brokers.values()]  # fmt: skip
    assert ends == [(2, 2)] * 3
    logs = {cluster.log_bytes(node) for node in cluster.brokers}
    assert len(logs) == 1


@pytest.mark.parametrize(("knobs", "answer"), [("2.0.0", (56, -1)), ("0.10", None)])
def test_an_epoch_that_cannot_be_written_down_is_not_acknowledged(knobs: str, answer: tuple[int, int] | None) -> None:
    cluster = VirtualCluster(knobs)
    cluster.create_topic()
    record = batch(b"a")
    cluster.disk(0).free_bytes = len(record) + 4  # enough for the first batch, but not for the epoch it begins
    (told,) = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", record, acks=1))
    found = [(one.error_code, one.base_offset) for one in told.responses[0].partition_responses] if told else [None]
    assert found == [answer]
    cluster.world.sleep(1)
    assert cluster.exit_codes == {0: 1}
    assert cluster.brokers[0].partitions[T].log.log_end_offset == 1


def test_a_broker_whose_disk_is_full_answers_every_waiting_request_with_a_storage_error() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.deafen(1, 2)
    waiting = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"a")))
    fetching = cluster.call(0, ApiKey.FETCH, 12, fetch_request("t", 0, max_wait_ms=9000))
    cluster.disk(0).free_bytes = 10
    failed = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"b")))
    codes = [answers[0].responses[0].partition_responses[0].error_code for answers in (waiting, failed)]
    assert codes == [56, 56]
    assert fetching[0].responses[0].partitions[0].error_code == 56
    assert cluster.exit_codes == {0: 1}
    assert cluster.brokers[0].partitions[T].log.log_end_offset == 1


def test_an_epoch_checkpoint_that_is_garbled_or_contradicts_the_log_is_written_again() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.produce(0, b"a")
    cluster.kill(0)
    cluster.world.sleep(3)
    cluster.produce(1, b"b")
    cluster.kill(2)
    checkpoint = "t-0/leader-epoch-checkpoint"
    for text in (
        "garbled",
        "0\n1\n0 0\n",
        "0\n2\n0 0\n9 9\n",
        "0\n3\n0 0\n1 1\n2 2\n",
        "0\n2\n0 0\n5 1\n",
        "0\n1\n1 0\n",
    ):
        cluster.disk(2).write_bytes(checkpoint, text.encode())
        reopened = cluster.start(2)
        assert reopened.partitions[T].replica.epoch_entries == ((0, 0), (1, 1))
        assert cluster.disk(2).read_text(checkpoint) == "0\n2\n0 0\n1 1\n"
        cluster.kill(2)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_topic_that_is_asked_for_is_created_where_the_setting_says_so(enabled: bool) -> None:
    cluster = VirtualCluster(auto_create_topics_enable=enabled)
    asked = MetadataRequest([MetadataRequestTopic(name="t"), MetadataRequestTopic(name="no/name")])
    codes = []
    for _ in range(2):
        (answer,) = cluster.call(0, ApiKey.METADATA, 5, asked)
        codes.append([topic.error_code for topic in answer.topics])
        cluster.world.sleep(1)
    assert codes == ([[5, 17], [0, 17]] if enabled else [[3, 17], [3, 17]])


def leader_that_lost_its_log(knobs: str, **settings: Any) -> VirtualCluster:
    """Broker 0 is the last in-sync replica, loses its disk, leads on, and broker 1 returns with a longer log."""
    cluster = VirtualCluster(knobs, **settings)
    cluster.create_topic()
    for _ in range(3):
        cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(6)
    for broker in (1, 2):
        cluster.kill(broker)
        cluster.world.sleep(3)
    cluster.kill(0)
    cluster.lose_replica(0)
    cluster.start(0)
    cluster.world.sleep(3)
    assert cluster.brokers[0].partitions[T].replica.role == "leader"
    cluster.start(1)
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 3
    cluster.world.sleep(3)
    return cluster


def test_a_follower_that_is_ahead_of_its_leader_is_truncated() -> None:
    cluster = leader_that_lost_its_log("3.7")
    follower = cluster.brokers[1].partitions[T]
    assert (follower.log.log_end_offset, follower.replica.role) == (0, "follower")
    assert cluster.exit_codes == {}


def test_in_generation_0_10_a_follower_that_is_ahead_of_its_leader_exits() -> None:
    cluster = leader_that_lost_its_log("0.10")
    assert cluster.exit_codes == {1: 1}
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 3
    assert any("Halting: log truncation from 3 to the leader's 0" in line for line in cluster.said)


def test_in_generation_0_10_it_is_truncated_where_elections_may_be_unclean() -> None:
    cluster = leader_that_lost_its_log("0.10", unclean_leader_election_enable=True)
    assert cluster.exit_codes == {}
    assert cluster.brokers[1].partitions[T].log.log_end_offset == 0


def test_two_runs_of_the_same_story_leave_the_same_timeline() -> None:
    def story() -> list[bytes]:
        cluster = VirtualCluster()
        cluster.create_topic()
        for number in range(10):
            cluster.produce(0, b"%d" % number)
        cluster.kill(0)
        cluster.world.sleep(3)
        cluster.produce(1, b"last")
        cluster.start(0)
        cluster.world.sleep(3)
        return cluster.rows

    first, second = story(), story()
    assert first == second
    assert len(first) > 50


def test_an_abandoned_connection_s_old_news_is_refused_after_its_successor_s() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    broker = cluster.brokers[0]
    current = broker._fence._session
    assert broker._fence.refusal_of(current - 1, 1, -1) == 11
    assert broker._fence.refusal_of(current, 0, -1) == 11
    assert broker._fence.refusal_of(current, 1, 0) == 77
    assert broker._fence.refusal_of(current, 1, broker.controller.broker_epoch) == 0


def test_without_fencing_a_broker_obeys_a_controller_of_the_past() -> None:
    cluster = VirtualCluster("4.1", {"controller_epoch_fencing": "false"})
    cluster.create_topic()
    broker = cluster.brokers[0]
    epoch = broker.controller.broker_epoch
    assert broker._fence.refusal_of(0, 0, epoch) == 0
    assert broker._fence.refusal_of(0, 0, epoch - 1) == 77


def test_a_restarted_broker_obeys_no_state_before_it_is_registered_again() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    assert cluster.produce(0, b"a") == [(0, 0)]
    cluster.kill(0)
    cluster.kill(CONTROLLER_ID)
    cluster.start(0)
    cluster.node(CONTROLLER_ID).start()
    cluster.world.sleep(0.4)
    replica = cluster.brokers[0].partitions[T].replica
    assert not cluster.brokers[0].controller.registered
    assert (replica.role, replica.leader_epoch) == ("follower", -1)
    early = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"too early")))
    assert early == []
    cluster.world.sleep(5)
    assert early[0].responses[0].partition_responses[0].error_code == 6
    assert cluster.brokers[1].partitions[T].replica.isr == (1, 2, 0)
    assert (replica.role, replica.leader_epoch) == ("follower", 1)


def test_a_follower_whose_log_ends_within_its_leader_s_batch_fails_until_the_next_epoch_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    three = wire.build([b"a", b"b", b"c"])
    assert cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", three))[0].responses[0].partition_responses
    cluster.kill(2)
    cluster.lose_replica(2)
    cluster.disk(2).write_bytes(f"t-0/{0:020d}.log", bytes(wire.build([b"a"], leader_epoch=0)))
    answers: list[float] = []
    handle = Partition.handle

    def count(partition: Partition, event: ReplicaEvent) -> None:
        if isinstance(event, FetchAnswered) and event.spans:
            answers.append(cluster.world.now_ns / 1e9)
            assert len(answers) < 100, "the follower spins"
        handle(partition, event)

    monkeypatch.setattr(Partition, "handle", count)
    cluster.start(2)
    cluster.world.sleep(3)
    assert len(answers) == 1
    assert sum("t-0 has failed in epoch 0: out of order offsets: it ends at 1" in line for line in cluster.said) == 1
    assert cluster.brokers[2].partitions[T].log.log_end_offset == 1
    cluster.kill(0)
    cluster.world.sleep(3)
    assert len(answers) == 2
    assert sum("t-0 has failed in epoch 1" in line for line in cluster.said) == 1


def test_a_leader_s_clock_that_steps_forward_drops_the_follower_that_is_behind_until_its_next_fetches() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    leader = cluster.brokers[0].partitions[T].replica
    cluster.deafen(2)
    assert cluster.produce(0, b"a", acks=1) == [(0, 0)]
    cluster.world.sleep(0.3)
    assert list(leader.isr) == [0, 1, 2]
    cluster.node(0).clock.wall_offset_ms = 3_600_000
    cluster.world.sleep(0.3)
    assert list(leader.isr) == [0, 1]
    cluster.deafen()
    cluster.world.sleep(1)
    assert list(leader.isr) == [0, 1, 2]
    assert cluster.controller.core.live_brokers == (0, 1, 2)


def test_after_its_clock_stepped_back_a_leader_drops_nobody_for_lagging_and_timeouts_still_run() -> None:
    cluster = VirtualCluster(broker_session_timeout_ms=60_000)
    cluster.create_topic()
    cluster.node(0).clock.wall_offset_ms = -3_600_000
    cluster.deafen(2)
    waiting = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"a"), timeout_ms=20_000))
    cluster.world.sleep(21)
    assert cluster.brokers[0].partitions[T].replica.isr == (0, 1, 2)
    assert waiting[0].responses[0].partition_responses[0].error_code == 7


def test_a_wrong_epoch_checkpoint_that_cannot_be_written_again_is_a_storage_failure() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.produce(0, b"a")
    cluster.kill(2)
    cluster.disk(2).write_bytes("t-0/leader-epoch-checkpoint", b"0\n2\n0 0\n9 9\n")
    cluster.disk(2).free_bytes = 0
    broker = cluster.start(2)
    cluster.world.sleep(0)
    assert cluster.exit_codes == {2: 1}
    assert T not in broker.partitions


@pytest.mark.parametrize(
    ("knobs", "version", "early"), [("3.7", 5, (78, -1)), ("3.7", 4, (5, -1)), ("0.10", 5, (0, 2))]
)
def test_a_new_leader_tells_consumers_no_end_before_its_watermark_has_reached_its_epoch(
    knobs: str, version: int, early: tuple[int, int]
) -> None:
    cluster = VirtualCluster(knobs)
    cluster.create_topic()
    for _ in range(3):
        cluster.produce(0, b"a")

    def latest(node: int) -> tuple[int, int]:
        asked = ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, LATEST_TIMESTAMP)])
        (answer,) = cluster.call(node, ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(-1, topics=[asked]))
        found = answer.topics[0].partitions[0]
        return found.error_code, found.offset

    assert latest(0) == (0, 3)
    assert cluster.brokers[1].partitions[T].replica.high_watermark == 2
    cluster.kill(0)
    cluster.world.sleep(1.3)
    cluster.deafen(2)
    cluster.world.sleep(0.4)
    assert cluster.brokers[1].partitions[T].replica.role == "leader"
    assert latest(1) == early
    cluster.deafen()
    cluster.world.sleep(1)
    assert latest(1) == (0, 3)


def test_an_isr_proposal_from_a_connection_that_its_broker_has_replaced_is_refused() -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    epoch = cluster.brokers[0].controller.broker_epoch
    peer = cluster.simulated.network("0")
    controller = listener(CONTROLLER_ID)
    old, new = (Caller(peer, controller, CONTROLLER, "test") for _ in range(2))

    def ask(caller: Caller, key: ApiKey, body: Message) -> Any:
        answers: list[Any] = []
        caller.call(key, 2 if key is ApiKey.ALTER_PARTITION else 0, body, 30, answers.append)
        cluster.world.sleep(0)
        return answers[0]

    change = AlterPartitionPartitionData(0, 0, [0, 1], partition_epoch=0)
    proposal = AlterPartitionRequest(
        0, epoch, [AlterPartitionTopicData(topic_id(cluster.brokers[0].metadata.cluster_id, "t"), [change])]
    )
    for caller in (old, new):
        assert ask(caller, ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(0, epoch)).error_code == 0
    assert ask(old, ApiKey.ALTER_PARTITION, proposal).error_code == 77
    assert list(cluster.controller.core.partitions[0].isr) == [0, 1, 2]
    assert ask(new, ApiKey.ALTER_PARTITION, proposal).topics[0].partitions[0].error_code == 0
    assert list(cluster.controller.core.partitions[0].isr) == [0, 1]
