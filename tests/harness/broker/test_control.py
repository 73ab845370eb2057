"""The control channel of a live node, and what it says to nonsense."""

import json
import socket

from tests.harness.broker.cluster import Cluster

NONSENSE = (
    b"garbage",
    b"[]",
    b"{}",
    b'{"op": "explode"}',
    b'{"op": "cut", "links": [["0"]]}',
    b'{"op": "ping", "node": "7", "timeout_ms": 9}',
    b'{"op": "offset_clock", "ms": "x"}',
)


def test_nonsense_is_answered_with_a_sentence_and_the_channel_lives_on(cluster: Cluster) -> None:
    with socket.create_connection(cluster.configs[cluster.ids[0]].control, timeout=30) as connection:
        lines = connection.makefile()
        for nonsense in NONSENSE:
            connection.sendall(nonsense + b"\n")
            answer = json.loads(lines.readline())
            assert answer["ok"] is False
            assert "makes no sense" in answer["error"]
        connection.sendall(b'{"op": "status"}\n{"op": "status"}\n')
        assert [json.loads(lines.readline())["node"] for _ in range(2)] == [0, 0]
        lines.close()


def test_a_request_may_arrive_in_pieces(cluster: Cluster) -> None:
    with socket.create_connection(cluster.configs[cluster.ids[0]].control, timeout=30) as connection:
        for piece in (b'{"op"', b': "status"', b"}\n"):
            connection.sendall(piece)
        with connection.makefile() as lines:
            assert json.loads(lines.readline())["ok"] is True


def test_every_node_can_ping_every_other_including_the_controller(cluster: Cluster) -> None:
    names = {0: "0", 1: "1", 2: "2", 100: "controller"}
    for node in names:
        for other, name in names.items():
            if other != node:
                answer = cluster.ask(node, op="ping", node=name, timeout_ms=2000)
                assert (answer["ok"], answer["answered"], answer["error"]) == (True, True, None)


def test_the_status_of_the_controller_tells_all_that_the_harness_reads(cluster: Cluster) -> None:
    status = cluster.status(100)
    assert [(broker["id"], broker["live"]) for broker in status["brokers"]] == [(0, True), (1, True), (2, True)]
    assert set(status["partitions"][0]) == {
        "topic", "partition", "leader", "leader_epoch", "partition_epoch", "isr", "replicas",
        "elr", "last_known_elr", "last_known_leader",
    }  # fmt: skip


def test_the_status_of_a_broker_tells_all_that_the_harness_reads(cluster: Cluster) -> None:
    status = cluster.status(0)
    assert {"node", "pid", "incarnation", "monotonic_ns", "wall_ms", "registered", "known_brokers", "controller_epoch",
            "links", "disk", "replicas"} <= set(status)  # fmt: skip
    assert status["known_brokers"] == [0, 1, 2]
    assert set(cluster.replica(0, "shared")) == {
        "topic", "partition", "role", "leader", "leader_epoch", "partition_epoch", "isr", "replicas",
        "high_watermark", "log_end_offset", "log_start_offset", "remote_log_end_offsets",
    }  # fmt: skip
