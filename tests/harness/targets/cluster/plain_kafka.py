"""Three brokers and a controller of Apache Kafka that something else starts: their files, and their command lines."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.client_properties import Access
from harness.errors import EnvironmentFault
from harness.targets.bootstrap.administration import Administration
from harness.targets.kafka.fetching import find
from harness.targets.kafka.jvm import LOG4J_2, java
from harness.targets.kafka.nodes import new_cluster_id
from harness.targets.kafka.releases import release
from harness.targets.kafka.server_properties import understood

BROKERS = (1, 2, 3)
CONTROLLER = 100
_STARTED_S = 90.0


@dataclass(frozen=True)
class KafkaNode:
    """A broker or controller.

    Attributes:
        node: its id.
        directory: of its files.
        address: on which it listens.
        port: the same.
    """

    node: int
    directory: Path
    address: str
    port: int

    @property
    def name(self) -> int | str:
        """As a cluster file has it."""
        return "controller" if self.node == CONTROLLER else self.node

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.directory / "data"

    def command(self, version: str, main: str = "kafka.Kafka") -> str:
        """The command line of a JVM with a class of a release."""
        logging = f"-Dlog4j2.configurationFile={self.directory}/log4j2.properties"
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", logging]
        return shlex.join([java(), *options, "-cp", find(version).classpath, main])


def configure(nodes: Sequence[KafkaNode], version: str, **settings: str) -> None:
    """Write the files of a new cluster, whose brokers have these settings."""
    cluster_id, known = new_cluster_id(), understood(settings, release(version), len(BROKERS)).properties
    [voter] = [f"{one.node}@{one.address}:{one.port}" for one in nodes if one.node == CONTROLLER]
    for one in nodes:
        is_broker = one.node != CONTROLLER
        own = {
            "process.roles": "broker" if is_broker else "controller",
            "node.id": str(one.node),
            "controller.quorum.voters": voter,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{'CLIENTS' if is_broker else 'CONTROLLER'}://{one.address}:{one.port}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(one.data),
            **({"inter.broker.listener.name": "CLIENTS"} if is_broker else {}),
        }
        lines = "".join(f"{name}={value}\n" for name, value in {**known, **own}.items())
        (one.directory / "server.properties").write_text(lines)
        (one.directory / "log4j2.properties").write_text(LOG4J_2)
        storage = one.command(version, "kafka.tools.StorageTool")
        formatted = f"{storage} format --cluster-id {cluster_id} --config {one.directory}/server.properties"
        subprocess.run(("sh", "-c", f"{formatted} >{one.directory}/format.log 2>&1"), check=True)


def addresses_of(nodes: Sequence[KafkaNode]) -> list[str]:
    """Those of the brokers, for clients."""
    return [f"{one.address}:{one.port}" for one in nodes if one.node != CONTROLLER]


def await_brokers(bootstrap: Sequence[str]) -> None:
    """Wait until all answer."""
    deadline = time.monotonic() + _STARTED_S
    while time.monotonic() < deadline:
        with suppress(EnvironmentFault):
            if len(Administration(Access(",".join(bootstrap))).brokers()) == len(BROKERS):
                return
        time.sleep(0.5)
    raise AssertionError(f"{bootstrap}: not all brokers were there after {_STARTED_S:g} s")
