"""The shipped Kafka behind Toxiproxy as a person uses it, without seawall: Compose, a client, and toxiproxy-python."""

from __future__ import annotations

import logging
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from toxiproxy import Toxiproxy

from harness.client_properties import Access
from harness.clients.sender import Sender
from harness.clients.topics import create_topic
from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.target import TopicSpec
from harness.targets.compose.removal import removed
from tests.harness.targets.compose.conftest import Engine
from tests.records import bare

FILE = Path(__file__).parents[4] / "compose" / "kafka-toxiproxy.yml"
IMAGE = "kafka:4.1.0"
API = 8474
LISTENERS = {1: 29092, 2: 29093, 3: 29094}
BOOTSTRAP = ",".join(f"localhost:{port}" for port in LISTENERS.values())
LEDGER = TopicSpec("ledger", 2, 1, ((NodeId(1),), (NodeId(2),)))
AT_1, AT_2 = (TopicPartition(LEDGER.name, number) for number in range(LEDGER.partitions))
"""The partitions that are at kafka-1 alone, and at kafka-2 alone."""

COMPOSE_TIMEOUT_S = 120.0
PATIENCE_S = 120.0
ANSWER_TIMEOUT_S = 5.0


@pytest.fixture
def brought_up(engine: Engine, tool: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the project that is the file as it is shipped; it is taken down as it was brought up."""
    engine.need("toxiproxy", IMAGE)
    monkeypatch.setenv("KAFKA_IMAGE", f"seawall/{IMAGE}")
    for port in (API, *LISTENERS.values()):
        if is_taken(port):
            pytest.skip(f"port {port} of this machine, which the file publishes, is taken")
    name = f"seawall-test-{uuid.uuid4().hex[:8]}"
    words = (*tool, "-f", str(FILE), "-p", name)
    try:
        subprocess.run((*words, "up", "--detach"), check=True, capture_output=True, timeout=COMPOSE_TIMEOUT_S)
        yield name
        subprocess.run((*words, "down", "--volumes"), check=True, capture_output=True, timeout=COMPOSE_TIMEOUT_S)
    finally:
        left = removed(engine.client, name)
    assert not left


def is_taken(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def eventually(look: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return held


def has_topic() -> bool:
    """Whether the cluster has taken the topic, now or when it was asked before."""
    try:
        create_topic(Access(BOOTSTRAP), LEDGER, ANSWER_TIMEOUT_S)
    except EnvironmentFault as refusal:
        return "already exists" in refusal.sentence
    return True


def is_acknowledged(partition: TopicPartition) -> bool:
    """Whether a client that has just come gets a record through."""
    with closing(Sender(Access(BOOTSTRAP), "test", -1, ANSWER_TIMEOUT_S, logging.getLogger("seawall.tests"))) as sender:
        return sender.send(partition, bare(b"a record")).kind == "ok"


@pytest.mark.nightly("starts the shipped project as it is; by day test_target starts one")
@pytest.mark.usefixtures("brought_up")
def test_a_client_reaches_kafka_through_its_proxy_until_that_is_cut() -> None:
    assert eventually(has_topic)
    assert eventually(lambda: is_acknowledged(AT_1))
    toxiproxy = Toxiproxy()
    toxiproxy.update_api_consumer("127.0.0.1", API)
    proxies = toxiproxy.proxies()
    assert set(proxies) == {"kafka-1", "kafka-2", "kafka-3"}
    with proxies["kafka-1"].down():
        assert eventually(lambda: is_acknowledged(AT_2))
        assert not is_acknowledged(AT_1)
    assert eventually(lambda: is_acknowledged(AT_1))
