"""The control channel of a live node, and what it says to nonsense."""

import json

import pytest

from tests.harness.broker.cluster import Cluster

NONSENSE = (
    b"garbage",
    b"",
    b"\xff\xfe",
    b"[]",
    b"{}",
    b"[" * 200_000,
    b'{"op": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"op": "explode"}',
    b'{"op": ["cut"]}',
    b'{"op": "' + b"x" * 500_000 + b'"}',
    b'{"op": "cut"}',
    b'{"op": "cut", "links": "0->1"}',
    b'{"op": "cut", "links": [["0"]]}',
    b'{"op": "cut", "links": [["0", ["1"]]]}',
    b'{"op": "cut", "links": [["0", "7"]]}',
    b'{"op": "ping", "node": "7", "timeout_ms": 9}',
    b'{"op": "ping", "node": "\\ud800", "timeout_ms": 9}',
    b'{"op": "ping", "node": "1", "timeout_ms": 1e999}',
    b'{"op": "ping", "node": "1", "timeout_ms": true}',
    b'{"op": "offset_clock", "ms": "x"}',
    b'{"op": "offset_clock", "ms": 1.5}',
    b'{"op": "offset_clock", "ms": NaN}',
    b'{"op": "offset_clock", "ms": Infinity}',
    b'{"op": "offset_clock", "ms": 1' + b"0" * 30 + b"}",
    b'{"op": "offset_clock", "ms": 1' + b"0" * 5_000 + b"}",
    b'{"op": "limit_disk", "free_bytes": -Infinity}',
    b'{"op": "limit_disk", "free_bytes": -1}',
    b'{"op": "limit_disk", "free_bytes": 1, "directory": 7}',
    b'{"op": "nudge", "address": ["127.0.0.1", "x"]}',
    b'{"op": "nudge", "address": ["127.0.0.1", 65536]}',
)
"""Of which each has ended a node or might, or is of a type or beyond a bound that no request of the harness has."""

ELECTIONS = (
    b'{"op": "elect", "topic": "shared", "partition": 1' + b"0" * 30 + b"}",
    b'{"op": "elect", "topic": ["shared"], "partition": 0}',
    b'{"op": "elect", "topic": "shared", "partition": 0, "leader": 1' + b"0" * 30 + b"}",
    b'{"op": "elect", "topic": "shared", "partition": 0, "unclean": "yes"}',
)


@pytest.mark.parametrize("node", [0, 100])
def test_nonsense_is_answered_with_a_sentence_and_the_channel_lives_on(cluster: Cluster, node: int) -> None:
    with cluster.control(node) as (connection, lines):
        for nonsense in NONSENSE + (ELECTIONS if node == 100 else ()):
            connection.sendall(nonsense + b"\n")
            answer = json.loads(lines.readline())
            assert answer["ok"] is False
            assert "makes no sense" in answer["error"]
            assert len(answer["error"]) < 1_000
        connection.sendall(b'{"op": "status"}\n{"op": "status"}\n')
        assert [json.loads(lines.readline())["node"] for _ in range(2)] == [node, node]
    assert cluster.status(0)["links"]["cut"] == []


@pytest.mark.parametrize("directory", ["..", "../../outside", "/", "log-0", "shared-0", ".", "\0"])
def test_no_path_leads_out_of_the_log_directories_of_a_node(cluster: Cluster, directory: str) -> None:
    before = sorted(cluster.directory.rglob("*"))
    for request in ({"op": "probe_disk"}, {"op": "limit_disk", "free_bytes": 0}):
        answer = cluster.ask(0, **request, directory=directory)
        assert (answer["ok"], f"directory: {directory!r} is none of ''" in answer["error"]) == (False, True)
    assert sorted(cluster.directory.rglob("*")) == before


def test_a_line_without_end_is_refused_and_the_node_lives(cluster: Cluster) -> None:
    with cluster.control(0) as (connection, lines):
        connection.sendall(b"x" * 1_048_577)
        assert json.loads(lines.readline())["error"] == "a line of more than 1048576 bytes is not read"
        assert lines.readline() == ""
    assert cluster.status(0)["registered"]


def test_a_request_may_arrive_in_pieces(cluster: Cluster) -> None:
    with cluster.control(0) as (connection, lines):
        for piece in (b'{"op"', b': "status"', b"}\n"):
            connection.sendall(piece)
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
