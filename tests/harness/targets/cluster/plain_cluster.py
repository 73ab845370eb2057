"""Three brokers and a controller as plain processes with pid files, and the cluster file that describes them."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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

    def await_brokers(self) -> None:
        """Wait until all three answer."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(EnvironmentFault):
                if len(Administration(Access(self.bootstrap)).brokers()) == 3:
                    return
            time.sleep(0.1)
        raise AssertionError((self.directory / "0.log").read_text())


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
    with described(directory, bugs, movable_clocks=movable_clocks, **settings) as cluster:
        try:
            for node in reversed(cluster.file["nodes"]):
                assert run(["sh", "-c", node["commands"]["start"]]).status == 0
            cluster.await_brokers()
            yield cluster
        finally:
            for pid_file in directory.glob("*.pid"):
                with suppress(ProcessLookupError):
                    os.kill(int(pid_file.read_text()), signal.SIGKILL)


@contextmanager
def described(
    directory: Path,
    bugs: str = "",
    *,
    movable_clocks: bool = False,
    python: Sequence[str] = (sys.executable,),
    **settings: Any,
) -> Iterator[PlainCluster]:
    """One that is not started; its addresses are its own until the end. ``python`` begins the nodes' command lines."""
    directory.mkdir(parents=True, exist_ok=True)
    addresses = Addresses.claim(3)
    try:
        ids = [*map(NodeId, range(3)), CONTROLLER_ID]
        listeners = {node_name(node): addresses.listener(node) for node in ids}
        _write_configurations(directory, addresses, bugs, settings)
        nodes = [_node(directory, name, at, python, movable_clocks) for name, at in listeners.items()]
        reach = f'{sys.executable} -I -S -c {shlex.quote(REACH)} "$ADDRESS" "$PEER_ADDRESS" "$PEER_PORT"'
        bootstrap = [f"{host}:{port}" for name, (host, port) in listeners.items() if name != CONTROLLER]
        file = {"bootstrap": bootstrap, "preset": "processes", "commands": {"reach": reach}, "nodes": nodes}
        yield PlainCluster(directory, ",".join(bootstrap), file)
    finally:
        addresses.release()


def _write_configurations(directory: Path, addresses: Addresses, bugs: str, settings: dict[str, Any]) -> None:
    (directory / "secret").write_text(secrets.token_hex(32) + "\n")
    ids = [*map(NodeId, range(3)), CONTROLLER_ID]
    for node in ids:
        name = node_name(node)
        data = directory / name / "data"
        data.mkdir(parents=True, exist_ok=True)
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
            knobs=generation(CURRENT_GENERATION, {"bugs": bugs} if bugs else {}),
            settings=Settings.parse(settings),
        ).write(directory / f"{name}.json")


def _node(
    directory: Path, name: str, listener: tuple[str, int], python: Sequence[str], movable_clocks: bool
) -> dict[str, Any]:
    """A node's entry of the cluster file."""
    data, pid_file, log = directory / name / "data", directory / f"{name}.pid", directory / f"{name}.log"
    files = [directory / f"{name}.json", directory / "secret", pid_file]
    clocked = preloaded(directory / name) if movable_clocks else {}
    environment = [f"PYTHONPATH={ROOT}", *(f"{key}={value}" for key, value in clocked.items())]
    words = ["env", *environment, *python, str(Path(__file__).parent / "plain_node.py"), *map(str, files)]
    return {
        "id": name if name == CONTROLLER else int(name),
        "address": listener[0],
        "port": listener[1],
        "variables": {"PID_FILE": str(pid_file), **dict.fromkeys(("DATA", "LOG_DIR"), str(data))},
        "commands": {
            "start": f"{shlex.join(words)} >>{shlex.quote(str(log))} 2>&1",
            **(commands(directory / name) if movable_clocks else {}),
        },
    }
