"""Three brokers and a controller as plain processes with pid files, and the cluster file that describes them."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.broker.settings import NodeConfig, Settings
from harness.client_properties import Access
from harness.errors import EnvironmentFault
from harness.model import CONTROLLER, CONTROLLER_ID, NodeId, node_name
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.targets.addresses import Addresses
from harness.targets.bootstrap.administration import Administration
from harness.targets.cluster.shell import run
from tests.harness.targets.cluster.preloaded_clocks import commands, preloaded

ROOT = Path(__file__).parents[4]
REACH = "import socket, sys; socket.create_connection((sys.argv[2], int(sys.argv[3])), 1, (sys.argv[1], 0)).close()"
"""As the preset's, but from the node's address: all of them are on this machine."""


@dataclass(frozen=True)
class PlainCluster:
    """The running cluster.

    Attributes:
        directory: of its files.
        bootstrap: ``host:port,...``.
        file: the content of its cluster file.
    """

    directory: Path
    bootstrap: str
    file: Mapping[str, Any]

    def written(self, name: str = "cluster.yml", **changes: Any) -> str:
        """Write a cluster file with some keys changed; returns the target."""
        path = self.directory / name
        path.write_text(yaml.safe_dump({**self.file, **changes}))
        return f"cluster:{path}"

    def pid(self, node: str) -> int:
        """The process id of a node, dead or alive."""
        return int((self.directory / f"{node}.pid").read_text())


@contextmanager
def disks(directory: Path) -> Iterator[None]:
    """Give each node of a cluster in ``directory`` a disk of its own, of 32 MiB; takes root."""
    mounted: list[Path] = []
    try:
        for node in ("0", "1", "2", CONTROLLER):
            disk = directory / node / "data"
            disk.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "seawall-test", str(disk)], check=True)
            mounted.append(disk)
        yield
    finally:
        for disk in mounted:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextmanager
def plain_cluster(
    directory: Path, bugs: str = "", *, movable_clocks: bool = False, **settings: Any
) -> Iterator[PlainCluster]:
    """Start one; end it by SIGKILL. Movable clocks take a C compiler."""
    directory.mkdir(parents=True, exist_ok=True)
    addresses = Addresses.claim(3)
    knobs = generation(CURRENT_GENERATION, {"bugs": bugs} if bugs else {})
    secret = directory / "secret"
    secret.write_text(secrets.token_hex(32) + "\n")
    ids = [*map(NodeId, range(3)), CONTROLLER_ID]
    nodes: list[dict[str, Any]] = []
    for node in ids:
        name = node_name(node)
        data = directory / name / "data"
        data.mkdir(parents=True, exist_ok=True)
        config = directory / f"{name}.json"
        NodeConfig(
            node_id=node,
            cluster_id="plain",
            listener=addresses.listener(node),
            control=addresses.control(node),
            controller=addresses.listener(CONTROLLER_ID),
            names={addresses.host(one): node_name(one) for one in ids},
            data_dir=str(data),
            timeline=str(directory / name / "timeline.jsonl"),
            incarnation=0,
            knobs=knobs,
            settings=Settings.parse(settings),
        ).write(config)
        pid_file, log = directory / f"{name}.pid", directory / f"{name}.log"
        program = [
            sys.executable,
            str(Path(__file__).parent / "plain_node.py"),
            str(config),
            str(secret),
            str(pid_file),
        ]
        clocked = preloaded(directory / name) if movable_clocks else {}
        words = ["env", f"PYTHONPATH={ROOT}", *(f"{key}={value}" for key, value in clocked.items()), *program]
        host, port = addresses.listener(node)
        nodes.append(
            {
                "id": name if node == CONTROLLER_ID else int(node),
                "address": host,
                "port": port,
                "variables": {"PID_FILE": str(pid_file), **dict.fromkeys(("DATA", "LOG_DIR"), str(data))},
                "commands": {
                    "start": f"{shlex.join(words)} >>{shlex.quote(str(log))} 2>&1",
                    **(commands(directory / name) if movable_clocks else {}),
                },
            }
        )
    reach = f'{sys.executable} -I -S -c {shlex.quote(REACH)} "$ADDRESS" "$PEER_ADDRESS" "$PEER_PORT"'
    bootstrap = [f"{host}:{port}" for host, port in map(addresses.listener, ids[:3])]
    file = {"bootstrap": bootstrap, "preset": "processes", "commands": {"reach": reach}, "nodes": nodes}
    cluster = PlainCluster(directory, ",".join(bootstrap), file)
    try:
        for one in reversed(nodes):
            assert run(["sh", "-c", one["commands"]["start"]]).status == 0
        _await_brokers(cluster)
        yield cluster
    finally:
        for pid_file in directory.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
        addresses.release()


def _await_brokers(cluster: PlainCluster) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(EnvironmentFault):
            if len(Administration(Access(cluster.bootstrap)).brokers()) == 3:
                return
        time.sleep(0.1)
    raise AssertionError((cluster.directory / "0.log").read_text())
