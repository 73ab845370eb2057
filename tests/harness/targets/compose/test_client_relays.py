from __future__ import annotations

import socket
import threading
from pathlib import Path

from harness.model import CLIENTS, NodeId
from harness.targets.compose.client_relays import ClientRoutes
from harness.targets.compose.composed_nodes import free_ports
from harness.targets.kafka.proxies import Proxies
from harness.targets.link_probe import API_VERSIONS_REQUEST
from harness.targets.node_evidence import wire_rows

ANSWER = b"\x00\x00\x00\x06\x00\x00\x00\x00\x00\x23"
"""That of a broker that lacks the version, without its list of versions."""


def answer_once(listener: socket.socket) -> None:
    with listener.accept()[0] as connection:
        connection.recv(len(API_VERSIONS_REQUEST))
        connection.sendall(ANSWER)


def test_a_relay_records_nothing_or_leads_elsewhere(tmp_path: Path) -> None:
    """A socket stands in for Toxiproxy, and answers one request."""
    ports = free_ports(["0"], relayed=True)
    routes = ClientRoutes(ports.advertised, ports.clients)
    proxies = Proxies(routes, tmp_path / "links", {"0": tmp_path / "wire.jsonl"})
    with socket.create_server(("127.0.0.1", ports.clients["0"])) as toxiproxy:
        answers = threading.Thread(target=answer_once, args=(toxiproxy,))
        answers.start()
        try:
            proxies.start()
            with socket.create_connection(("127.0.0.1", ports.advertised["0"]), 30) as client:
                client.sendall(API_VERSIONS_REQUEST)
                assert client.recv(len(ANSWER)) == ANSWER
        finally:
            answers.join()
            proxies.stop()
    (row,) = wire_rows(NodeId(0), tmp_path / "wire.jsonl")
    assert (row["node"], row["peer"], row["api"]) == (0, CLIENTS, "API_VERSIONS")
    assert row["response_ns"] is not None


def test_clients_take_a_relay_where_there_is_no_tap() -> None:
    ports = free_ports(["0", "1"], relayed=False)
    assert ports.advertised == ports.clients
