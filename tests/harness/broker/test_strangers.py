"""What another user of this machine can do to a live cluster, whose secret he does not know: be a client of it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.broker.secret import HARNESS, Secret
from harness.error_codes import ErrorCode
from harness.model import NodeId
from harness.wire.declaration import Message
from harness.wire.frames import ApiKey, decode_response, encode_response
from harness.wire.messages.control import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    LeaderAndIsrRequest,
    Listener,
    UpdateMetadataRequest,
)
from harness.wire.messages.operators import ElectLeadersRequest
from harness.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.harness.broker.cluster import Cluster
from tests.harness.broker.raw_client import RawClient

CONTROLLER = 100
LATEST_EPOCH = 2**31 - 2
REFUSAL = "this is no introduction by the harness that has started this node"

TO_A_BROKER: list[tuple[ApiKey, int, Message]] = [
    (ApiKey.LEADER_AND_ISR, 4, LeaderAndIsrRequest(CONTROLLER, LATEST_EPOCH, 2**40)),
    (ApiKey.UPDATE_METADATA, 6, UpdateMetadataRequest(CONTROLLER, LATEST_EPOCH, 2**40)),
]
TO_THE_CONTROLLER: list[tuple[ApiKey, int, Message]] = [
    (ApiKey.BROKER_REGISTRATION, 3, BrokerRegistrationRequest(0, "", bytes(16), [Listener("x", "127.0.0.1", 1, 0)])),
    (ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(0, 0)),
    (ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(0, 0)),
    (ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(0, 0)),
    (ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, AssignReplicasToDirsRequest(0, 0)),
    (ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("stranger", 1, 1)])),
    (ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(1, None)),
]


def decoded(key: ApiKey, version: int, body: Message | None) -> Message:
    assert body is not None
    return decode_response(key, version, b"".join(encode_response(key, version, 0, body)))[1]


@pytest.fixture(autouse=True)
def unharmed(cluster: Cluster) -> Iterator[None]:
    """Afterwards the cluster is as it was."""
    before = _state(cluster)
    yield
    assert _state(cluster) == before


def _state(cluster: Cluster) -> list[Any]:
    """What strangers have moved: links, clocks, disks, leaders and the epochs that brokers obey."""
    state: list[Any] = []
    for node in cluster.configs:
        status = cluster.status(node)
        is_on_time = abs(status["wall_ms"] - time.time_ns() // 1_000_000) < 3_600_000
        state.append((status["links"]["cut"], status["disk"], status["controller_epoch"], is_on_time))
    partitions = cluster.status(CONTROLLER)["partitions"]
    return [*state, [(one["topic"], one["leader"], one["leader_epoch"]) for one in partitions]]


ORDERS = (
    {"op": "status"},
    {"op": "cut", "links": [["1", "0"]]},
    {"op": "offset_clock", "ms": 86_400_000},
    {"op": "limit_disk", "free_bytes": 0},
    {"op": "sync"},
    {"op": "elect", "topic": "shared", "partition": 0, "leader": 2, "unclean": True},
)


@pytest.mark.parametrize("introduction", [None, b"", b"zz", "of another run", "to another node", "of a node"])
@pytest.mark.parametrize("node", [0, CONTROLLER])
def test_the_control_channel_obeys_the_harness_alone(cluster: Cluster, node: int, introduction: Any) -> None:
    name = "controller" if node == CONTROLLER else "0"
    said = {
        "of another run": Secret.draw().introduction(HARNESS, name),
        "to another node": cluster.secret.introduction(HARNESS, "1"),
        "of a node": cluster.secret.introduction("1", name),
    }
    first = said[introduction].hex().encode() if isinstance(introduction, str) else introduction
    for order in ORDERS:
        request = json.dumps(order).encode()
        with socket.create_connection(cluster.configs[NodeId(node)].control, timeout=30) as connection:
            connection.sendall(b"\n".join([request] if first is None else [first, request]) + b"\n")
            with connection.makefile() as lines:
                answer = json.loads(lines.readline())
                assert answer == {"ok": False, "error": REFUSAL}
                assert lines.readline() == ""


def test_no_file_is_made_or_removed_by_a_stranger(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / ".probe").write_text("precious")
    with socket.create_connection(cluster.configs[NodeId(0)].control, timeout=30) as connection:
        connection.sendall(json.dumps({"op": "probe_disk", "directory": str(tmp_path)}).encode() + b"\n")
        assert b"no introduction" in connection.recv(1000)
    assert (tmp_path / ".probe").read_text() == "precious"


@pytest.mark.parametrize(("key", "version", "body"), [*TO_A_BROKER, *TO_THE_CONTROLLER])
def test_what_nodes_ask_of_each_other_is_refused_to_clients(
    cluster: Cluster, key: ApiKey, version: int, body: Message
) -> None:
    node, port = (0, 9092) if (key, version, body) in TO_A_BROKER else (CONTROLLER, 9093)
    with RawClient(cluster.ips[node], port) as stranger:
        answer = stranger.ask(key, version, body)
        assert answer == decoded(key, version, body.error_response(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


@pytest.mark.parametrize(("key", "version", "body"), [*TO_A_BROKER, *TO_THE_CONTROLLER])
def test_a_connection_from_the_address_of_a_node_has_no_rights_by_that(
    cluster: Cluster, key: ApiKey, version: int, body: Message
) -> None:
    to_broker = (key, version, body) in TO_A_BROKER
    node, port, source = (0, 9092, CONTROLLER) if to_broker else (CONTROLLER, 9093, 0)
    with RawClient(cluster.ips[node], port, cluster.ips[source]) as stranger:
        stranger.send(key, version, body)
        assert stranger.is_hung_up()


def test_the_secret_is_in_no_file_argument_or_environment_of_a_run(cluster: Cluster) -> None:
    key = cluster.secret.key.hex().encode()
    for path in cluster.directory.rglob("*"):
        assert not path.is_file() or key not in path.read_bytes(), path
    for process in cluster.processes.values():
        for name in ("cmdline", "environ"):
            assert key not in Path(f"/proc/{process.pid}/{name}").read_bytes()
