"""Has a broker of Kafka lead ``__consumer_offsets`` again while it still reads it for the time before.

``python -m tests.harness.targets.kafka.late_load RELEASE [--commits N] [--protocols classic]``, by hand: two minutes,
two brokers and half a gigabyte. A group commits 1, 2, 3 ... N for each of a thousand partitions, so that reading takes
seconds. Then an operator moves the leader of ``__consumer_offsets-0`` to the broker, away, and back, while a client
asks what is committed. No broker ends, and no link is cut. With the protocols ``classic`` 3.9 has its former
coordinator. What it shows is in docs/late-load.md.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition as Place

from harness.java import find_java
from harness.targets.kafka.jvm import LOG4J_2
from tests.harness.targets.contract import fetched_or_skip

_PARTITIONS = 1000
_OFFSETS = Place("__consumer_offsets", 0)
_PREFERRED = 0
_LOOK_S = 0.01
_BETWEEN_S = 8.0
_AFTER_S = 12.0
_TRIES = 300
_TOLD = re.compile(r"Finished loading|Scheduling (un)?loading")
_BEGUN = time.monotonic()


def main(
    release: str,
    commits: Annotated[int, typer.Option(help="Commits of each partition.")] = 3000,
    protocols: Annotated[
        str, typer.Option(help="The setting group.coordinator.rebalance.protocols.")
    ] = "classic,consumer",
) -> None:
    """Play it on a release that was fetched, and print what the coordinator answers."""
    with two_brokers(release, protocols) as cluster:
        group = Group(cluster.bootstrap)
        for number in range(1, commits + 1):
            group.commit(number)
        say(f"{release}: committed {commits} for each of {_PARTITIONS} partitions")
        first = cluster.leader()
        asking = Asking(cluster.bootstrap, commits)
        cluster.lead(3 - first)
        time.sleep(_BETWEEN_S)
        for broker in (first, 3 - first, first):
            cluster.lead(broker)
        time.sleep(_AFTER_S)
        asking.end()
        cluster.print_log(first)


def say(words: str) -> None:
    print(f"{time.monotonic() - _BEGUN:8.3f}  {words}", flush=True)  # noqa: T201


class Cluster:
    """Brokers 1 and 2, of which 1 is the controller, too."""

    def __init__(self, directory: Path, ports: tuple[int, int]) -> None:
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        self._directory = directory
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})
        while len(self._admin.list_topics(timeout=60).brokers) < len(ports):
            time.sleep(_LOOK_S)
        self._admin.create_topics([NewTopic("ledger", _PARTITIONS, 1)])["ledger"].result(60)
        self._operator = KafkaAdminClient(bootstrap_servers=self.bootstrap.split(","))

    def leader(self) -> int:
        return int(self._admin.list_topics(_OFFSETS.topic, timeout=30).topics[_OFFSETS.topic].partitions[0].leader)

    def lead(self, broker: int) -> None:
        self._operator.alter_partition_reassignments({_OFFSETS: [broker, 3 - broker]})
        self._operator.elect_leaders(_PREFERRED, {_OFFSETS.topic: [_OFFSETS.partition]})
        while self.leader() != broker:
            time.sleep(_LOOK_S)
        say(f"broker {broker} leads")

    def print_log(self, broker: int) -> None:
        for line in (self._directory / f"{broker}.log").read_text(errors="replace").splitlines():
            if _TOLD.search(line) and _OFFSETS.topic in line:
                print(line[:240])  # noqa: T201


@contextmanager
def two_brokers(release: str, protocols: str) -> Iterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="late-load-"))
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        *ports, controller = (one.getsockname()[1] for one in sockets)
    (directory / "log4j2.properties").write_text(LOG4J_2)
    java = [find_java("Kafka", ""), "-Xmx1g", f"-Dlog4j2.configurationFile={directory}/log4j2.properties"]
    java += ["-cp", fetched_or_skip(release).classpath]
    brokers: list[subprocess.Popen[bytes]] = []
    try:
        for broker, port in enumerate(ports, start=1):
            path = directory / f"{broker}.properties"
            path.write_text(_settings(directory, broker, port, controller, protocols))
            words = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(path)]
            subprocess.run([*java, *words], check=True, capture_output=True)
            with (directory / f"{broker}.log").open("wb") as log:
                brokers.append(subprocess.Popen([*java, "kafka.Kafka", str(path)], stdout=log, stderr=log))
        yield Cluster(directory, (ports[0], ports[1]))
    finally:
        for one in brokers:
            one.kill()
            one.wait()
        shutil.rmtree(directory)


def _settings(directory: Path, broker: int, port: int, controller: int, protocols: str) -> str:
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    settings = {
        "node.id": broker,
        "process.roles": "broker,controller" if broker == 1 else "broker",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}" if broker == 1 else listeners,
        "advertised.listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": directory / f"{broker}",
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 2,
        "offsets.topic.segment.bytes": 2_000_000_000,
        "group.coordinator.rebalance.protocols": protocols,
        "auto.leader.rebalance.enable": "false",
    }
    return "\n".join(f"{name}={value}" for name, value in settings.items())


class Group:
    """A client that commits for a group without members."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "group", "log_level": 0})

    def commit(self, number: int) -> None:
        """Commit ``number`` for each partition, and try again until that is acknowledged."""
        offsets = [TopicPartition("ledger", one, number) for one in range(_PARTITIONS)]
        for left in reversed(range(_TRIES)):
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException:
                if not left:
                    raise
                time.sleep(_LOOK_S)
            else:
                return

    def committed(self) -> int:
        [answer] = self._consumer.committed([TopicPartition("ledger", 0)], timeout=2)
        return int(answer.offset)


class Asking:
    """Asks what is committed, all the time, and prints the first and the last answer of each time below ``last``."""

    def __init__(self, bootstrap: str, last: int) -> None:
        self._group = Group(bootstrap)
        self._last = last
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _ask(self) -> None:
        low: list[int] = []
        found = self._last
        while not self._ends.is_set():
            with suppress(KafkaException):
                found = self._group.committed()
                if found < self._last and not low:
                    say(f"the coordinator answers {found}")
                if found >= self._last and low:
                    say(f"it has answered {low[0]} to {low[-1]}, {len(low)} times, and answers {found}")
                low = [*low, found] if found < self._last else []
            time.sleep(_LOOK_S)
        say(f"the last answer is {found}")


if __name__ == "__main__":
    typer.run(main)
