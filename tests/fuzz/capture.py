"""Captures what real clients, brokers and the controller send to one another into ``captured.txt``.

``python -m tests.fuzz.capture`` starts a cluster whose nodes write down each frame that they receive, lets librdkafka
create topics, produce, consume and commit, and keeps a few frames of each API and version. Run it again when the
declared messages change. As ``python -m tests.fuzz.capture ROLE CONFIG FILE`` it is one of those nodes.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.broker import node as node_process
from harness.broker.broker import Broker
from harness.broker.controller_node import ControllerNode
from harness.broker.forking import Role, role_of
from harness.broker.session import Session
from harness.model import NodeId
from harness.targets.node_process import Process
from tests.fuzz import corpus
from tests.fuzz.grammar import TOPICS
from tests.harness.broker.cluster import Cluster

OF_EACH = 4
"""How many frames of one API and version are kept."""


class RecordedCluster(Cluster):
    """A cluster whose nodes write down what they receive."""

    def spawn(self, node: int, faults: object = None) -> Process:
        super().spawn(node)
        self.kill(node)
        arguments = [
            role_of(NodeId(node)),
            str(self.directory / f"node-{node}.json"),
            str(self.directory / f"frames-{node}.txt"),
        ]
        command = [sys.executable, "-m", "tests.fuzz.capture", *arguments]
        with (self.directory / f"node-{node}.log").open("ab") as log, self.secret.told() as stdin:
            self.processes[NodeId(node)] = subprocess.Popen(command, stdin=stdin, stderr=log)
        return self.processes[NodeId(node)]


def be_a_node(role: str, config: str, frames: str) -> None:
    """Run a node that writes each frame into the file ``frames``."""
    on_frame = Session.on_frame

    def written_down(session: Session, frame: memoryview) -> None:
        if len(frame) <= corpus.MOST_BYTES:
            with Path(frames).open("a") as file:
                file.write(f"{corpus.name(bytes(frame))} {frame.hex()}\n")
        on_frame(session, frame)

    Session.on_frame = written_down  # type: ignore[method-assign, assignment]
    sys.exit(node_process.main(ControllerNode if role == Role.CONTROLLER else Broker, config))


def use(cluster: Cluster) -> None:
    """What clients do, in one of each way that leads to frames of its own."""
    for topic in TOPICS:
        cluster.create_topic(topic)
    manners: list[dict[str, Any]] = [{}, {"acks": "1", "compression.codec": "gzip"}, {"enable.idempotence": True}]
    for topic, settings in zip(TOPICS, manners, strict=True):
        producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
        for number in range(50):
            producer.produce(topic, f"value {number}".encode(), key=b"key", headers=[("name", b"content")])
        producer.flush(30)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "captured", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0) for topic in TOPICS])
    for _ in range(100):
        consumer.poll(0.1)
    consumer.commit(asynchronous=False)
    consumer.committed([TopicPartition(topic, 0) for topic in TOPICS], timeout=30)
    consumer.offsets_for_times([TopicPartition(TOPICS[0], 0, 5)], timeout=30)
    consumer.close()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for instance in ({}, {"group.instance.id": "static"}):
        take_part(cluster, instance)
    admin.describe_consumer_groups(["captured"])["captured"].result(30)
    admin.list_consumer_groups().result(30)
    admin.delete_consumer_groups(["captured"])["captured"].result(30)
    admin.list_topics(timeout=30)
    admin.delete_records([TopicPartition(TOPICS[0], 0, 5)])[TopicPartition(TOPICS[0], 0)].result(30)


def take_part(cluster: Cluster, settings: dict[str, Any]) -> None:
    """Consume as a member of a group."""
    member = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "members",
            "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 200,
            "max.poll.interval.ms": 1000,
            **settings,
        }
    )
    member.subscribe(list(TOPICS))
    for _ in range(30):
        member.poll(0.1)
    member.close()


def main() -> None:
    """Capture, and write the file."""
    with TemporaryDirectory() as directory:
        cluster = RecordedCluster(Path(directory))
        try:
            use(cluster.start())
        finally:
            cluster.stop()
        by_name: dict[str, dict[bytes, None]] = defaultdict(dict)
        for path in sorted(Path(directory).glob("frames-*.txt")):
            for frame in corpus.read(path):
                by_name[corpus.name(frame)][frame] = None
    corpus.write(corpus.CAPTURED, [frame for name in sorted(by_name) for frame in list(by_name[name])[:OF_EACH]])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        be_a_node(*sys.argv[1:])
    else:
        main()
