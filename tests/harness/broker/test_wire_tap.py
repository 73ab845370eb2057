from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.broker.ports import Buffer, Connection, FrameHandler
from harness.broker.settings import Settings
from harness.broker.wire_tap import TappedNetwork, WireTap, exchanges
from harness.history.schema import WIRE
from harness.model import CLIENTS, NodeId
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.simulation.stack.cluster import Request
from harness.target import TopicSpec
from harness.targets.simulated import SimulatedTarget
from harness.wire.batches import build
from harness.wire.frames import ApiKey, RequestHeader, encode_request, encode_response
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

COLUMNS = {column.name for column in WIRE.columns}
NEVER_NULL = {column.name for column in WIRE.columns if not column.nullable} - {"run"}


def cluster(directory: Path, *, tapped: bool = True) -> SimulatedTarget:
    settings = Settings(min_insync_replicas=2, default_replication_factor=3)
    target = SimulatedTarget.made(directory, 3, generation(CURRENT_GENERATION, {}), settings)
    if tapped:
        target.tap()
    target.start()
    target.create_topic(TopicSpec("ledger", 1, 3, (tuple(map(NodeId, (0, 1, 2))),)))
    return target


def send(target: SimulatedTarget, timeout_s: float = 5.0) -> object:
    batch = [TopicProduceData("ledger", partition_data=[PartitionProduceData(0, build([b"a", b"b"]))])]
    return target.cluster.ask("0", Request(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1_000, batch), timeout_s))


def produced(target: SimulatedTarget) -> list[dict[str, Any]]:
    return [row for row in target.wire() if row["api"] == "PRODUCE"]


def test_a_request_and_its_response_are_not_one_row(tmp_path: Path) -> None:
    target = cluster(tmp_path)
    send(target)
    (row,) = produced(target)
    assert (row["node"], row["peer"], row["client_id"], row["problem"]) == (0, CLIENTS, "seawall", None)
    assert (row["topic"], row["partition"], row["error"], row["records"]) == ("ledger", 0, 0, 2)
    assert (row["base_offset"], row["end_offset"]) == (0, 2)
    assert row["request_ns"] < row["response_ns"]  # followers had to fetch meanwhile


def test_peers_and_the_controller_are_not_tapped(tmp_path: Path) -> None:
    target = cluster(tmp_path)
    send(target)
    rows = list(target.wire())
    seen = {(row["node"], row["peer"], row["api"]) for row in rows}
    assert {(0, "1", "FETCH"), (0, "2", "FETCH"), (100, "0", "BROKER_HEARTBEAT")} <= seen
    assert {(0, "controller", "LEADER_AND_ISR"), (0, CLIENTS, "CREATE_TOPICS")} <= seen
    fetched = [row for row in rows if row["api"] == "FETCH" and row["base_offset"] == 0]
    assert {row["peer"] for row in fetched} == {"1", "2"}
    for row in rows:
        assert {"run", *row} == COLUMNS
        assert all(row[name] is not None for name in NEVER_NULL), row


def test_a_request_that_its_node_did_not_live_to_answer_is_not_recorded(tmp_path: Path) -> None:
    target = cluster(tmp_path)
    for node in ("1", "2"):
        target.pause(node)
    assert send(target, 0.5) is None
    target.kill("0")
    (row,) = produced(target)
    assert (row["records"], row["response_ns"], row["error"]) == (2, None, None)


def test_connections_of_a_node_s_next_life_have_the_names_of_those_before(tmp_path: Path) -> None:
    target = cluster(tmp_path)
    send(target)
    before = {row["connection"] for row in target.wire() if row["node"] == 0}
    target.kill("0")
    target.restart("0")
    target.clock.sleep(3)
    after = {row["connection"] for row in target.wire() if row["node"] == 0} - before
    assert after
    assert {name.partition("-")[0] for name in after} == {"1"}


def test_a_cluster_is_tapped_that_was_not_asked_to_be(tmp_path: Path) -> None:
    target = cluster(tmp_path, tapped=False)
    send(target)
    assert list(target.wire()) == []


# ------------------------------------------------------------------------------------------- one connection by itself


class Wire:
    """A network with one connection to the node, and a node whose answers the test chooses."""

    def __init__(self) -> None:
        self.peer, self.host = CLIENTS, "somewhere"
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.lines: list[bytes] = []
        self.order: list[str] = []
        self._accept: Callable[[Connection], FrameHandler] | None = None
        self._handler: FrameHandler
        self.connection: Connection
        tapped = TappedNetwork(self, WireTap("0-", lambda: len(self.lines), self._record))
        tapped.listen(("", 0), self._node)
        assert self._accept is not None
        self._handler = self._accept(self)

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        self._accept = accept

    def connect(self, *_: object) -> None: ...
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Any: ...
    def close(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def watch_hangup(self, hung_up: Callable[[], None]) -> None: ...

    def send(self, segments: list[Buffer]) -> None:
        self.order.append("sent")
        self.sent.append(b"".join(segments))

    def _record(self, line: bytes) -> None:
        self.order.append(json.loads(line)["event"])
        self.lines.append(line)

    def _node(self, connection: Connection) -> FrameHandler:
        self.connection = connection
        return self

    def on_frame(self, frame: memoryview) -> None:
        self.order.append("received")
        self.received.append(bytes(frame))

    def on_lost(self) -> None: ...

    def ask(self, frame: bytes) -> None:
        self._handler.on_frame(memoryview(frame))

    def rows(self, *more: bytes) -> list[dict[str, Any]]:
        return list(exchanges(0, [*self.lines, *more]))


def api_versions(number: int, version: int = 3) -> bytes:
    return b"".join(encode_request(RequestHeader(ApiKey.API_VERSIONS, version, number, "me"), ApiVersionsRequest()))


def versions(number: int, version: int = 3) -> list[Buffer]:
    return encode_response(ApiKey.API_VERSIONS, version, number, ApiVersionsResponse(35 if version == 0 else 0))


def test_a_frame_is_served_or_sent_before_it_is_recorded() -> None:
    wire = Wire()
    wire.ask(api_versions(1))
    wire.connection.send(versions(1))
    assert wire.order == ["request", "received", "response", "sent"]
    assert wire.received == [api_versions(1)]
    assert wire.sent == [b"".join(versions(1))]


def test_nonsense_does_not_pass_or_is_not_recorded() -> None:
    wire = Wire()
    wire.ask(b"nonsense!!")
    wire.connection.send([b"nor is this"])
    wire.ask(api_versions(7))
    wire.connection.send([b"\0\0\0\7", b"what?"])
    assert len(wire.received) == len(wire.sent) == 2
    stray, garbled, first = wire.rows()
    assert (stray["api"], stray["problem"]) == (None, "it answers no request")
    assert "malformed" in garbled["problem"]
    assert (garbled["api"], garbled["correlation_id"]) == ("API_VERSIONS", 7)
    assert first["problem"].startswith("there is no API with key")


def test_a_response_is_paired_with_another_connection_s_request() -> None:
    wire = Wire()
    for number in (1, 2, 3):
        wire.ask(api_versions(number))
    for number in (1, 3):
        wire.connection.send(versions(number))
    assert [(row["correlation_id"], row["response_ns"]) for row in wire.rows()] == [(1, 3), (3, 4), (2, None)]


def test_an_older_answer_to_api_versions_is_not_understood() -> None:
    wire = Wire()
    wire.ask(api_versions(1))
    wire.connection.send(versions(1, version=0))
    (row,) = wire.rows()
    assert (row["error"], row["problem"]) == (35, None)


def test_a_torn_line_spoils_those_around_it() -> None:
    wire = Wire()
    wire.ask(api_versions(1))
    wire.connection.send(versions(1))
    assert [row["correlation_id"] for row in wire.rows(wire.lines[0][:30], b"\n")] == [1]
