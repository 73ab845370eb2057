"""A cluster of real processes for the tests of this package, and a voice on its control channels."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from harness.broker.secret import HARNESS, Secret
from harness.broker.settings import NodeConfig, NodeFaults, Settings
from harness.model import CONTROLLER_ID, NodeId, node_name
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.targets.forked import fork_server
from harness.targets.node_process import Process


def claim_network() -> tuple[str, socket.socket]:
    """A ``127.a.b`` that no other cluster has, and the socket that keeps it ours."""
    for _ in range(64):
        prefix = f"127.{random.SystemRandom().randrange(1, 255)}.{random.SystemRandom().randrange(255)}"
        claim = socket.socket()
        try:
            claim.bind((f"{prefix}.1", 9092))
        except OSError:
            claim.close()
            continue
        claim.listen(1)
        return prefix, claim
    raise AssertionError("no free network 127.a.b.0/24")


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.01)
    return result


FAILS_OVER = {"broker_session_timeout_ms": 3_000}
"""Settings for who waits until a broker is taken for dead, or for a new process of it to be let in."""


class Cluster:
    """Settings that are not given are such that a machine that stalls costs nobody a session or a place in the ISR."""

    def __init__(self, directory: Path, brokers: int = 3, knobs: str = CURRENT_GENERATION, **settings: Any) -> None:
        prefix, self._claim = claim_network()
        self.ids = [NodeId(broker) for broker in range(brokers)]
        self.ips: dict[int, str] = {broker: f"{prefix}.{10 + broker}" for broker in self.ids}
        self.ips[CONTROLLER_ID] = f"{prefix}.100"
        names = {ip: "controller" if node == CONTROLLER_ID else str(node) for node, ip in self.ips.items()}
        self.directory = directory
        self.secret = Secret.draw()
        self.processes: dict[NodeId, Process] = {}
        defaults = {
            "min_insync_replicas": min(2, brokers),
            "default_replication_factor": brokers,
            "replica_fetch_wait_max_ms": 100,
            "broker_session_timeout_ms": 60_000,
            "replica_lag_time_max_ms": 60_000,
        }
        self.configs = {
            NodeId(node): NodeConfig(
                node_id=NodeId(node),
                cluster_id=prefix,
                listener=(ip, self._port(node)),
                control=(ip, 9094),
                controller=(self.ips[CONTROLLER_ID], 9093),
                names=names,
                data_dir=str(directory / f"data-{node}"),
                timeline=str(directory / f"timeline-{node}.jsonl"),
                incarnation=-1,
                knobs=generation(knobs),
                settings=Settings(**(defaults | settings)),
            )
            for node, ip in self.ips.items()
        }  # fmt: skip

    @staticmethod
    def _port(node: int) -> int:
        return 9093 if node == CONTROLLER_ID else 9092

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.ips[broker]}:9092" for broker in self.ids)

    def start(self) -> Cluster:
        for node in self.configs:
            self.spawn(node)
        self.wait_for_sessions()
        return self

    def wait_for_sessions(self) -> None:
        wait_until(
            lambda: (
                all(self.status(broker).get("known_brokers") == list(self.ids) for broker in self.ids)
                and [one["live"] for one in self.status(CONTROLLER_ID)["brokers"]] == [True] * len(self.ids)
            ),
            "all brokers to register and to hear of each other",
        )

    def spawn(self, node: int, faults: NodeFaults | None = None) -> Process:
        node = NodeId(node)
        config = self.configs[node]
        config = replace(config, incarnation=config.incarnation + 1, faults=faults or NodeFaults())
        self.configs[node] = config
        path = self.directory / f"node-{node}.json"
        config.write(path)
        with (self.directory / f"node-{node}.log").open("ab") as log, self.secret.told() as stdin:
            self.processes[node] = fork_server().fork(node, path, stdin, log)
        return self.processes[node]

    def send_signal(self, node: int, number: signal.Signals) -> None:
        if self.processes[NodeId(node)].poll() is None:
            os.kill(self.processes[NodeId(node)].pid, number)

    def kill(self, node: int, with_signal: signal.Signals = signal.SIGKILL) -> int:
        self.send_signal(node, with_signal)
        return self.processes[NodeId(node)].wait(60)

    def stop(self) -> None:
        for node in self.processes:
            self.send_signal(node, signal.SIGKILL)
        for process in self.processes.values():
            process.wait(60)
        self._claim.close()

    @contextmanager
    def control(self, of: int) -> Iterator[tuple[socket.socket, TextIO]]:
        """A connection to a node's control channel on which one may ask, and what comes back."""
        with (
            socket.create_connection(self.configs[NodeId(of)].control, timeout=30) as connection,
            connection.makefile() as lines,
        ):
            introduction = self.secret.introduction(HARNESS, node_name(NodeId(of)))
            connection.sendall(introduction.hex().encode() + b"\n")
            assert lines.readline().strip() == self.secret.reply(introduction, HARNESS, node_name(NodeId(of))).hex()
            yield connection, lines

    def ask(self, of: int, **request: Any) -> dict[str, Any]:
        with self.control(of) as (connection, lines):
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer: dict[str, Any] = json.loads(lines.readline())
            return answer

    def status(self, node: int) -> dict[str, Any]:
        try:
            return self.ask(node, op="status")
        except OSError:
            return {"replicas": [], "partitions": [], "brokers": []}

    def replica(self, node: int, topic: str, partition: int = 0) -> dict[str, Any]:
        for replica in self.status(node)["replicas"]:
            if (replica["topic"], replica["partition"]) == (topic, partition):
                found: dict[str, Any] = replica
                return found
        return {}

    def partition(self, topic: str, partition: int = 0) -> dict[str, Any]:
        for state in self.status(CONTROLLER_ID)["partitions"]:
            if (state["topic"], state["partition"]) == (topic, partition):
                found: dict[str, Any] = state
                return found
        return {}

    def log(self, node: int) -> str:
        return (self.directory / f"node-{node}.log").read_text()

    def timeline(self, node: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(self.configs[NodeId(node)].timeline).read_text().splitlines()]

    def create_topic(self, topic: str, assignment: Sequence[Sequence[int]] = ((0, 1, 2),)) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = NewTopic(topic, num_partitions=len(assignment), replica_assignment=[list(one) for one in assignment])
        admin.create_topics([new], request_timeout=60)[topic].result(60)
        for number, replicas in enumerate(assignment):
            self._wait_for_replicas(topic, number, replicas)

    def _wait_for_replicas(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Until every replica follows the preferred leader, and the leader has heard from all of them."""

        def settled() -> bool:
            views = [self.replica(broker, topic, partition) for broker in replicas]
            heard = views[0].get("remote_log_end_offsets", {})
            return all(view.get("leader") == replicas[0] for view in views) and min(heard.values(), default=0) >= 0

        wait_until(settled, f"the replicas of {topic}-{partition}")

    def produce(
        self, topic: str, values: Sequence[bytes], partition: int = 0, config: dict[str, Any] | None = None
    ) -> list[Any]:
        """Produce and return, per value, its offset or its error."""
        from confluent_kafka import Producer

        outcomes: list[Any] = [None] * len(values)
        settings = {"bootstrap.servers": self.bootstrap, "acks": "all", "linger.ms": 0, "message.timeout.ms": 10_000}
        producer = Producer(settings | (config or {}))
        for number, value in enumerate(values):

            def delivered(error: Any, message: Any, number: int = number) -> None:
                outcomes[number] = message.offset() if error is None else error

            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        producer.flush(15)
        return outcomes

    def consume(self, topic: str, count: int, partition: int = 0, offset: int = 0) -> list[bytes]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, offset)])
        values: list[bytes] = []
        deadline = time.monotonic() + 60
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        consumer.close()
        return values
