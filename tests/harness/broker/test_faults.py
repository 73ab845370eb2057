"""What breaks, and what must not."""

import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from harness.broker.settings import NodeFaults
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID, Link, NodeId
from harness.wire.keys import ApiKey
from tests.harness.broker.cluster import FAILS_OVER, Cluster, wait_until
from tests.harness.broker.raw_client import RawClient, batch, fetch_request, produce_request

Start = Callable[..., Cluster]

ON_THE_STACK = pytest.mark.nightly(
    "starts a cluster of its own and waits for nodes that die; by day the same brokers do so in virtual time"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts clusters with topic ``t`` led by broker 0."""
    started: list[Cluster] = []

    def start(**options: Any) -> Cluster:
        cluster = Cluster(tmp_path, **options)
        started.append(cluster)
        cluster.start()
        cluster.create_topic("t", [[*cluster.ids]])
        return cluster

    yield start
    for cluster in started:
        cluster.stop()


def has_isr(cluster: Cluster, *isr: int) -> bool:
    return sorted(cluster.partition("t")["isr"]) == list(isr)


def test_no_acknowledged_record_is_lost_when_the_leader_is_killed_and_comes_back(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    before = [b"before-%d" % number for number in range(50)]
    assert cluster.produce("t", before) == list(range(50))
    assert cluster.kill(0) == -signal.SIGKILL
    wait_until(lambda: cluster.partition("t")["leader"] == 1, "a new leader")
    after = [b"after-%d" % number for number in range(50)]
    assert cluster.produce("t", after) == list(range(50, 100))
    cluster.spawn(0)
    wait_until(lambda: has_isr(cluster, 0, 1, 2), "broker 0 to rejoin the ISR")
    assert cluster.consume("t", 100) == before + after
    wait_until(lambda: cluster.replica(0, "t")["high_watermark"] == 100, "the high watermark to spread")
    leader = cluster.replica(1, "t")
    assert (leader["role"], leader["leader_epoch"]) == ("leader", 1)
    rows = cluster.timeline(0)
    assert [row["sequence"] for row in rows if row["incarnation"] == 1] == list(range(len(rows) - rows.index(
        next(row for row in rows if row["incarnation"] == 1))))  # fmt: skip


@ON_THE_STACK
def test_a_killed_leader_s_unreplicated_tail_is_truncated_when_it_comes_back(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    cluster.produce("t", [b"acked"])
    for follower in (1, 2):
        cluster.ask(follower, op="cut", links=[["0", str(follower)]])
    assert cluster.produce("t", [b"tail"], config={"acks": "1"}) == [1]
    cluster.kill(0)
    wait_until(lambda: {cluster.replica(broker, "t")["leader"] for broker in (1, 2)} == {1}, "a new leader")
    for follower in (1, 2):
        cluster.ask(follower, op="cut", links=[])
    assert cluster.produce("t", [b"other"]) == [1]
    cluster.spawn(0)
    wait_until(lambda: has_isr(cluster, 0, 1, 2), "broker 0 to rejoin the ISR")
    assert cluster.consume("t", 2) == [b"acked", b"other"]
    (row,) = [row for row in cluster.timeline(0) if row["kind"] == "truncation"]
    assert row["detail"] == '{"from_offset": 2, "to_offset": 1, "reason": "diverging_epoch"}'
    assert (row["incarnation"], row["log_end_offset"]) == (1, 1)
    assert "Truncated t-0 from offset 2 to 1 (diverging_epoch)." in cluster.log(0)


@ON_THE_STACK
def test_a_restarted_broker_still_knows_what_idempotent_producers_had_sent(start: Start) -> None:
    cluster = start(brokers=1, **FAILS_OVER)
    stamped = batch(b"once", producer_id=7, producer_epoch=0, base_sequence=0)
    for incarnation in (0, 1):
        with RawClient(cluster.ips[0]) as client:
            answer = client.ask(ApiKey.PRODUCE, 9, produce_request("t", stamped))
            (response,) = answer.responses[0].partition_responses
            assert (response.error_code, response.base_offset) == (0, 0)
        if incarnation == 0:
            cluster.kill(0)
            cluster.spawn(0)
            wait_until(lambda: cluster.replica(0, "t").get("role") == "leader", "broker 0 to lead again")
    assert cluster.consume("t", 1) == [b"once"]


@ON_THE_STACK
def test_a_paused_broker_leaves_the_isr_and_returns(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    cluster.send_signal(2, signal.SIGSTOP)
    wait_until(lambda: has_isr(cluster, 0, 1), "broker 2 to leave the ISR")
    assert cluster.produce("t", [b"without 2"]) == [0]
    cluster.send_signal(2, signal.SIGCONT)
    wait_until(lambda: has_isr(cluster, 0, 1, 2), "broker 2 to return")
    assert cluster.replica(2, "t")["log_end_offset"] == 1


def test_acks_all_waits_for_the_isr_and_times_out_while_a_follower_is_cut_off(start: Start) -> None:
    cluster = start()
    cluster.ask(2, op="cut", links=[["0", "2"]])
    with RawClient(cluster.ips[0]) as client:
        answer = client.ask(ApiKey.PRODUCE, 9, produce_request("t", batch(), timeout_ms=300))
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.replica(0, "t")["high_watermark"] == 0
        data = client.ask(ApiKey.FETCH, 12, fetch_request("t", 0)).responses[0].partitions[0]
        assert (data.error_code, bytes(data.records)) == (0, b"")
        client.send(ApiKey.PRODUCE, 9, produce_request("t", batch(), timeout_ms=30_000))
        cluster.ask(2, op="cut", links=[])
        answer = client.receive(ApiKey.PRODUCE, 9)[1].responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, 1)


def test_a_cut_link_is_proven_by_pings_in_its_direction_and_by_held_bytes(start: Start) -> None:
    cluster = start()
    cluster.ask(1, op="cut", links=[["0", "1"]])

    def answered(source: int, destination: str, within_ms: int = 20_000) -> bool:
        answer = cluster.ask(source, op="ping", node=destination, timeout_ms=within_ms)
        assert answer["error"] == (None if answer["answered"] else "timeout")
        return bool(answer["answered"])

    # 1 does not hear 0: neither 0's requests nor 0's answers to its own.
    assert [answered(0, "1", 150), answered(1, "0", 150)] == [False, False]
    assert [answered(0, "2"), answered(2, "1")] == [True, True]
    links = cluster.status(1)["links"]
    assert links["cut"] == [["0", "1"]]
    assert links["held_bytes"]["0->1"] > 0
    cluster.ask(1, op="cut", links=[])
    assert [answered(0, "1"), answered(1, "0")] == [True, True]
    assert cluster.status(1)["links"] == {"cut": [], "held_bytes": {}, "stalled_bytes": {}, "answers": {}}


def test_a_client_behind_a_cut_link_hears_nothing_until_it_is_mended(start: Start) -> None:
    cluster = start()
    with RawClient(cluster.ips[0]) as client:
        cluster.ask(0, op="cut", links=[["0", "clients"]])
        client.send(ApiKey.PRODUCE, 9, produce_request("t", batch()))
        assert client.hears_nothing()
        wait_until(lambda: cluster.replica(0, "t")["high_watermark"] == 1, "the record")
        cluster.ask(0, op="cut", links=[["clients", "0"]])
        assert client.receive(ApiKey.PRODUCE, 9)[1].responses[0].partition_responses[0].base_offset == 0
        client.send(ApiKey.PRODUCE, 9, produce_request("t", batch()))
        assert client.hears_nothing()
        assert cluster.replica(0, "t")["log_end_offset"] == 1
        cluster.ask(0, op="cut", links=[])
        assert client.receive(ApiKey.PRODUCE, 9)[1].responses[0].partition_responses[0].base_offset == 1


@ON_THE_STACK
def test_a_leader_cut_off_from_everyone_acknowledges_nothing_and_loses_its_unacknowledged_tail(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    assert cluster.produce("t", [b"acked"]) == [0]
    names = ("1", "2", "controller")
    cut = {name: [Link("0", name), Link(name, "0")] for name in names}
    for node, name in ((1, "1"), (2, "2"), (CONTROLLER_ID, "controller")):
        cluster.ask(node, op="cut", links=cut[name])
    cluster.ask(0, op="cut", links=[link for links in cut.values() for link in links])
    with RawClient(cluster.ips[0]) as client:
        answer = client.ask(ApiKey.PRODUCE, 9, produce_request("t", batch(b"lonely"), timeout_ms=300))
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    wait_until(lambda: cluster.partition("t")["leader"] == 1, "a new leader")
    with RawClient(cluster.ips[1]) as client:
        wait_until(lambda: cluster.replica(1, "t")["role"] == "leader", "broker 1 to lead")
        answer = client.ask(ApiKey.PRODUCE, 9, produce_request("t", batch(b"new")))
        assert answer.responses[0].partition_responses[0].base_offset == 1
    assert cluster.replica(0, "t")["role"] == "leader"
    for node in (0, 1, 2, CONTROLLER_ID):
        cluster.ask(node, op="cut", links=[])
    wait_until(lambda: has_isr(cluster, 0, 1, 2), "broker 0 to return")
    assert cluster.replica(0, "t")["role"] == "follower"
    assert cluster.consume("t", 2) == [b"acked", b"new"]


@ON_THE_STACK
def test_a_broker_is_born_with_its_faults(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    cluster.kill(2)
    faults = NodeFaults(cut=(Link("clients", "2"),), free_bytes=5_000, wall_offset_ms=-60_000)
    cluster.spawn(2, faults)
    status = wait_until(lambda: (seen := cluster.status(2)).get("registered") and seen, "broker 2")
    assert status["links"]["cut"] == [["clients", "2"]]
    assert status["disk"]["free_bytes"] <= 5_000
    assert abs(status["wall_ms"] + 60_000 - time.time() * 1000) < 30_000


@ON_THE_STACK
def test_a_full_disk_fails_the_produce_cuts_the_torn_batch_and_halts_the_broker(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    assert cluster.produce("t", [b"kept"]) == [0]
    assert cluster.ask(0, op="limit_disk", free_bytes=100) == {"ok": True}
    assert cluster.ask(0, op="probe_disk") == {"ok": True, "errno": errno.ENOSPC, "written": 100}
    log = cluster.directory / "data-0" / "t-0" / "00000000000000000000.log"
    size = log.stat().st_size
    with RawClient(cluster.ips[0]) as client:
        waiting = client.send(ApiKey.FETCH, 12, fetch_request("t", 1, max_wait_ms=50_000))
        with RawClient(cluster.ips[0]) as producer:
            answer = producer.ask(ApiKey.PRODUCE, 9, produce_request("t", batch(b"x" * 500)))
            (response,) = answer.responses[0].partition_responses
            assert (response.error_code, response.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        correlation_id, answer = client.receive(ApiKey.FETCH, 12)
        assert correlation_id == waiting
        assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.processes[cluster.ids[0]].wait(60) == 1
    assert log.stat().st_size == size
    assert [row["kind"] for row in cluster.timeline(0)][-2:] == ["state", "storage_failed"]
    assert cluster.timeline(0)[-2]["role"] == "offline"
    refusal = {"errno": errno.ENOSPC, "partition": "t-0", "operation": "append", "torn_bytes": 100}
    assert json.loads(cluster.timeline(0)[-1]["detail"]) == {**refusal, "log_dir": 0, "halts": True}
    wait_until(lambda: cluster.partition("t")["leader"] == 1, "a new leader")
    assert cluster.produce("t", [b"next"]) == [1]
    cluster.spawn(0)
    wait_until(lambda: has_isr(cluster, 0, 1, 2), "broker 0 to return")
    assert cluster.consume("t", 2) == [b"kept", b"next"]


def test_a_disk_too_full_for_a_checkpoint_halts_the_broker(start: Start) -> None:
    cluster = start(replica_high_watermark_checkpoint_interval_ms=200)
    cluster.ask(1, op="limit_disk", free_bytes=0)
    assert cluster.processes[cluster.ids[1]].wait(60) == 1
    assert "cannot checkpoint the high watermarks" in cluster.log(1)
    row = cluster.timeline(1)[-1]
    assert row["kind"] == "storage_failed"
    refusal = {"errno": errno.ENOSPC, "partition": None, "operation": "checkpoint the high watermarks"}
    assert json.loads(row["detail"]) == {**refusal, "torn_bytes": 0, "log_dir": 0, "halts": True}


def test_a_controller_that_cannot_write_its_state_answers_nothing_and_halts(start: Start) -> None:
    cluster = start()
    cluster.ask(CONTROLLER_ID, op="limit_disk", free_bytes=0)
    with RawClient(cluster.ips[0]) as client:
        from harness.wire.messages.topics import CreatableTopic, CreateTopicsRequest

        answer = client.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("lost", 1, 1)]))
        assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.processes[CONTROLLER_ID].wait(60) == 1
    cluster.spawn(CONTROLLER_ID)
    cluster.wait_for_sessions()
    assert cluster.partition("lost") == {}
    assert cluster.partition("t")["leader"] == 0


def test_a_broker_of_another_cluster_is_not_registered(start: Start) -> None:
    cluster = start()
    cluster.kill(2)
    cluster.configs[NodeId(2)] = replace(cluster.configs[NodeId(2)], cluster_id="another")
    cluster.spawn(2)
    wait_until(lambda: "INCONSISTENT_CLUSTER_ID" in cluster.log(2), "the refusal")
    assert not cluster.status(2)["registered"]


@ON_THE_STACK
def test_a_restarted_controller_keeps_topics_and_begins_a_new_epoch(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    before = cluster.partition("t")
    cluster.kill(CONTROLLER_ID)
    assert cluster.produce("t", [b"headless"]) == [0]
    cluster.spawn(CONTROLLER_ID)
    wait_until(lambda: all(cluster.status(broker)["controller_epoch"] == 2 for broker in cluster.ids), "epoch 2")
    assert cluster.partition("t") == before
    (found,) = [row for row in cluster.timeline(CONTROLLER_ID) if row["incarnation"] and row["kind"] == "isr"]
    assert json.loads(found["detail"]) == {"controller_epoch": 2, "cause": "recovered", "previous_isr": [0, 1, 2]}
    assert (found["leader"], found["leader_epoch"], found["isr"]) == (0, 0, [0, 1, 2])
    cluster.kill(0)
    wait_until(lambda: cluster.partition("t").get("leader") == 1, "a new leader")
    (election,) = [row for row in cluster.timeline(CONTROLLER_ID) if row["kind"] == "election" and row["incarnation"]]
    assert (election["leader"], election["leader_epoch"], election["isr"]) == (1, 1, [1, 2])


def test_a_clock_offset_shows_in_the_status_and_moves_neither_timers_nor_sessions(start: Start) -> None:
    cluster = start()
    before = cluster.status(1)
    sessions = [row["detail"] for row in cluster.timeline(CONTROLLER_ID) if row["kind"] == "session"]
    cluster.ask(1, op="offset_clock", ms=3_600_000)
    after = cluster.status(1)
    assert after["wall_ms"] - before["wall_ms"] >= 3_600_000
    assert after["monotonic_ns"] - before["monotonic_ns"] < 60e9
    assert cluster.produce("t", [b"late"]) == [0]
    assert has_isr(cluster, 0, 1, 2)
    assert [row["detail"] for row in cluster.timeline(CONTROLLER_ID) if row["kind"] == "session"] == sessions
    cluster.ask(1, op="offset_clock", ms=0)
    assert abs(cluster.status(1)["wall_ms"] - time.time() * 1000) < 30_000


def test_a_clean_stop_writes_the_high_watermark_down_and_exits_with_0(start: Start) -> None:
    cluster = start()
    cluster.produce("t", [b"a", b"b"])
    with RawClient(cluster.ips[0]) as client:
        client.send(ApiKey.FETCH, 12, fetch_request("t", 2, max_wait_ms=50_000))
        cluster.status(0)  # the loop is single-threaded: once it has answered this, the fetch waits
        assert cluster.kill(0, signal.SIGTERM) == 0
        assert client.receive(ApiKey.FETCH, 12)[1].responses[0].partitions[0].error_code == 0
    assert (cluster.directory / "data-0" / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert (cluster.directory / "data-0" / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert cluster.kill(CONTROLLER_ID, signal.SIGTERM) == 0
    cluster.spawn(0)
    replica = wait_until(lambda: cluster.replica(0, "t"), "broker 0")
    assert (replica["high_watermark"], replica["log_end_offset"], replica["role"]) == (2, 2, "follower")


@ON_THE_STACK
def test_generation_0_10_truncates_to_the_high_watermark_after_a_restart(start: Start) -> None:
    cluster = start(knobs="0.10", **FAILS_OVER)
    assert cluster.produce("t", [b"a"]) + cluster.produce("t", [b"b"]) == [0, 1]
    cluster.kill(2)
    checkpoint = cluster.directory / "data-2" / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 1\n")
    cluster.spawn(2)
    cut = wait_until(lambda: [row for row in cluster.timeline(2) if row["kind"] == "truncation"], "a truncation")
    assert [row["detail"] for row in cut] == ['{"from_offset": 2, "to_offset": 1, "reason": "high_watermark"}']
    wait_until(lambda: cluster.replica(2, "t")["log_end_offset"] == 2, "broker 2 to catch up")


def test_one_broker_alone_is_a_cluster_too(start: Start) -> None:
    cluster = start(brokers=1)
    assert cluster.produce("t", [b"a"]) == [0]
    assert cluster.consume("t", 1) == [b"a"]


def test_no_node_survives_the_death_of_its_parent_not_even_a_paused_one(tmp_path: Path) -> None:
    script = """
import signal, sys, time
from pathlib import Path
from tests.harness.broker.cluster import Cluster
cluster = Cluster(Path(sys.argv[1])).start()
cluster.send_signal(1, signal.SIGSTOP)
print(*(process.pid for process in cluster.processes.values()), flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as output:
        pids = [int(pid) for pid in output.readline().split()]
        parent.kill()
        parent.wait(60)
    assert len(pids) == 4
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the nodes to die")


def test_a_node_whose_address_is_taken_says_so_and_exits(start: Start) -> None:
    cluster = start()
    first = cluster.processes[cluster.ids[0]]
    assert cluster.spawn(0).wait(60) == 4
    cluster.processes[cluster.ids[0]] = first
    assert "Node 0 cannot start: [Errno 98]" in cluster.log(0)


@ON_THE_STACK
def test_clients_that_ask_for_the_end_before_the_new_leader_knows_it_are_told_so_and_get_it_later(start: Start) -> None:
    cluster = start(min_insync_replicas=3, **FAILS_OVER)  # the watermark moves only while all three are in sync
    cluster.send_signal(2, signal.SIGSTOP)
    wait_until(lambda: has_isr(cluster, 0, 1), "broker 2 to leave the ISR")
    assert cluster.produce("t", [b"a"], config={"acks": 1}) == [0]
    wait_until(lambda: cluster.replica(1, "t")["log_end_offset"] == 1, "broker 1 to fetch")
    cluster.kill(0)
    wait_until(lambda: cluster.replica(1, "t")["role"] == "leader", "broker 1 to lead")
    assert cluster.replica(1, "t")["high_watermark"] == 0
    cluster.spawn(0)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False})
    with pytest.raises(KafkaException, match="high watermark is not caught up"):
        consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=60, cached=False)
    consumer.assign([TopicPartition("t", 0, OFFSET_END)])
    assert consumer.poll(0.2) is None
    cluster.send_signal(2, signal.SIGCONT)
    wait_until(lambda: cluster.replica(1, "t")["high_watermark"] == 1, "the watermark")
    assert consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=60, cached=False) == (0, 1)
    wait_until(lambda: cluster.produce("t", [b"b"]) and consumer.poll(0.2), "the consumer at the end to go on")
    consumer.close()
