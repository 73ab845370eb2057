"""Apache Kafka on four machines that are reached by ssh: network namespaces on a bridge, each with a sshd of its own.

Three brokers and a controller of a release run as plain processes with pid files, and seawall knows of them what a
cluster file says: a transport, an address, and the commands of the preset ``processes``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.client_properties import Access
from harness.errors import EnvironmentFault
from harness.targets.bootstrap.administration import Administration
from harness.targets.cluster.cluster_file import ClusterFile, Transport
from harness.targets.cluster.kind import nodes_of
from harness.targets.cluster.shell import run, words
from harness.targets.kafka.fetching import find
from harness.targets.kafka.jvm import LOG4J_2, java
from harness.targets.kafka.nodes import new_cluster_id
from harness.targets.kafka.releases import release
from harness.targets.kafka.server_properties import understood

SSHD = "/usr/sbin/sshd"
TOOLS = ("ip", "iptables", "ssh", "ssh-keygen")
BROKERS = (1, 2, 3)
CONTROLLER = 100
NETWORK = "10.91.45"
BRIDGE = "seawall-bridge"
CLIENTS, CONTROLLERS = 9092, 9093
_HOST = 10
_STARTED_S = 90.0


def lacking() -> str:
    """What this machine lacks for it, in a clause; empty: nothing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0:
        return "network namespaces are root's to make"
    if not Path(SSHD).exists():
        missing.append(SSHD)
    return f"there is no {' and no '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class Machine:
    """A network namespace with a sshd; ``node``: the id of the broker or controller on it."""

    node: int
    directory: Path

    @property
    def name(self) -> str:
        """Of the namespace."""
        return f"seawall-{self.node}"

    @property
    def address(self) -> str:
        """In the network of the bridge."""
        return f"{NETWORK}.{_HOST + self.node}"

    @property
    def pid_file(self) -> Path:
        """Where the process id of its node is."""
        return self.directory / "pid"

    def transport(self, keys: Path) -> dict[str, Any]:
        """How a cluster file names it."""
        options = ["-i", str(keys / "user"), "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
        return {"ssh": f"root@{self.address}", "options": [*options, "-o", f"UserKnownHostsFile={keys}/known"]}


@contextmanager
def kafka_by_ssh(directory: Path, version: str, **settings: str) -> Iterator[str]:
    """Start a cluster of ``version`` with these broker settings; yields its cluster file's ``cluster:FILE``."""
    keys = directory / "keys"
    keys.mkdir(parents=True)
    for name in ("host", "user"):
        _do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name))
    shutil.copy(keys / "user.pub", keys / "authorized")
    machines = [Machine(node, directory / str(node)) for node in (CONTROLLER, *BROKERS)]
    _remove_what_is_left(machines)
    with ExitStack() as undo:
        _do("ip", "link", "add", BRIDGE, "type", "bridge")
        undo.callback(_do, "ip", "link", "delete", BRIDGE)
        _do("ip", "address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        _do("ip", "link", "set", BRIDGE, "up")
        for machine in machines:
            undo.enter_context(_machine(machine, keys))
        cluster_id, known = new_cluster_id(), understood(settings, release(version), len(BROKERS)).properties
        for machine in machines:
            undo.callback(_kill, machine)
            _configure(machine, known)
            _do("sh", "-c", f"{_java(machine, version, 'kafka.tools.StorageTool')} format --cluster-id {cluster_id} "
                f"--config {machine.directory}/server.properties >{machine.directory}/format.log 2>&1")  # fmt: skip
        file = _file(machines, keys, version)
        for node in nodes_of(ClusterFile.model_validate(file)):
            node.perform("start")
        _await_brokers(file["bootstrap"])
        path = directory / "cluster.yml"
        path.write_text(yaml.safe_dump(file))
        yield f"cluster:{path}"


def _remove_what_is_left(machines: Sequence[Machine]) -> None:
    """Of a cluster whose tests were killed."""
    for machine in machines:
        inside = subprocess.run(("ip", "netns", "pids", machine.name), capture_output=True, text=True, check=False)
        for pid in map(int, inside.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(("ip", "netns", "delete", machine.name), capture_output=True, check=False)
    subprocess.run(("ip", "link", "delete", BRIDGE), capture_output=True, check=False)


@contextmanager
def _machine(machine: Machine, keys: Path) -> Iterator[None]:
    machine.directory.mkdir()
    inside = ("ip", "netns", "exec", machine.name)
    port = f"sw{machine.node}"
    _do("ip", "netns", "add", machine.name)
    try:
        _do("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
        _do("ip", "link", "set", port, "master", BRIDGE, "up")
        _do(*inside, "ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _do(*inside, "ip", "link", "set", link, "up")
        Path("/run/sshd").mkdir(exist_ok=True)
        options = ("StrictModes=no", "UsePAM=no", f"HostKey={keys}/host", f"AuthorizedKeysFile={keys}/authorized")
        words = [*inside, SSHD, "-D", "-e", "-f", "/dev/null", "-o", f"ListenAddress={machine.address}"]
        with (machine.directory / "sshd.log").open("w") as log:
            sshd = subprocess.Popen([*words, *(word for one in options for word in ("-o", one))], stderr=log)
        try:
            _await_sshd(machine, keys)
            yield
        finally:
            sshd.terminate()
            sshd.wait()
    finally:
        _do("ip", "netns", "delete", machine.name)


def _configure(machine: Machine, settings: Any) -> None:
    is_broker = machine.node != CONTROLLER
    listener = (
        f"CLIENTS://{machine.address}:{CLIENTS}" if is_broker else f"CONTROLLER://{machine.address}:{CONTROLLERS}"
    )
    own = {
        "process.roles": "broker" if is_broker else "controller",
        "node.id": str(machine.node),
        "controller.quorum.voters": f"{CONTROLLER}@{NETWORK}.{_HOST + CONTROLLER}:{CONTROLLERS}",
        "controller.listener.names": "CONTROLLER",
        "listeners": listener,
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(machine.directory / "data"),
        **({"inter.broker.listener.name": "CLIENTS"} if is_broker else {}),
    }
    lines = "".join(f"{name}={value}\n" for name, value in {**settings, **own}.items())
    (machine.directory / "server.properties").write_text(lines)
    (machine.directory / "log4j2.properties").write_text(LOG4J_2)


def _java(machine: Machine, version: str, main: str) -> str:
    logging = f"-Dlog4j2.configurationFile={machine.directory}/log4j2.properties"
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", logging]
    return shlex.join([java(), *options, "-cp", find(version).classpath, main])


def _file(machines: list[Machine], keys: Path, version: str) -> dict[str, Any]:
    nodes = []
    for machine in machines:
        kafka = f"{_java(machine, version, 'kafka.Kafka')} {machine.directory}/server.properties"
        start = f'nohup {kafka} >>{machine.directory}/log 2>&1 </dev/null & echo $! >"$PID_FILE"'
        nodes.append({
            "id": "controller" if machine.node == CONTROLLER else machine.node,
            "transport": machine.transport(keys),
            "address": machine.address,
            "port": CONTROLLERS if machine.node == CONTROLLER else CLIENTS,
            "variables": {"PID_FILE": str(machine.pid_file), "LOG_DIR": str(machine.directory / "data")},
            "commands": {"start": start},
        })  # fmt: skip
    bootstrap = [f"{machine.address}:{CLIENTS}" for machine in machines if machine.node != CONTROLLER]
    return {"bootstrap": bootstrap, "preset": "processes", "nodes": nodes}


def _await_sshd(machine: Machine, keys: Path) -> None:
    deadline = time.monotonic() + _STARTED_S
    line = words(Transport.model_validate(machine.transport(keys)), "true")
    while run(line).status:
        if time.monotonic() > deadline:
            raise AssertionError((machine.directory / "sshd.log").read_text())
        time.sleep(0.2)


def _await_brokers(bootstrap: list[str]) -> None:
    deadline = time.monotonic() + _STARTED_S
    while time.monotonic() < deadline:
        with suppress(EnvironmentFault):
            if len(Administration(Access(",".join(bootstrap))).brokers()) == len(BROKERS):
                return
        time.sleep(0.5)
    raise AssertionError(f"{bootstrap}: not all brokers were there after {_STARTED_S:g} s")


def _kill(machine: Machine) -> None:
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.kill(int(machine.pid_file.read_text()), signal.SIGKILL)


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
