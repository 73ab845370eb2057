"""Apache Kafka on four machines that are reached by ssh: network namespaces on a bridge, each with a sshd of its own.

Its brokers and its controller run as plain processes with pid files, and seawall knows of them what a cluster file
says: a transport, an address, and the commands of the preset ``processes``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from harness.targets.cluster.cluster_file import ClusterFile, Transport
from harness.targets.cluster.kind import nodes_of
from harness.targets.cluster.shell import run, words
from tests.harness.targets.cluster.plain_kafka import (
    BROKERS,
    CONTROLLER,
    KafkaNode,
    addresses_of,
    await_brokers,
    configure,
)

SSHD = "/usr/sbin/sshd"
TOOLS = ("ip", "iptables", "ssh", "ssh-keygen")
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


class Machine(KafkaNode):
    """A network namespace with a sshd, and a broker or controller on it."""

    @property
    def namespace(self) -> str:
        """Its name."""
        return f"seawall-{self.node}"

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
    machines = [_described(node, directory) for node in (CONTROLLER, *BROKERS)]
    _remove_what_is_left(machines)
    with ExitStack() as undo:
        _do("ip", "link", "add", BRIDGE, "type", "bridge")
        undo.callback(_do, "ip", "link", "delete", BRIDGE)
        _do("ip", "address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        _do("ip", "link", "set", BRIDGE, "up")
        for machine in machines:
            undo.enter_context(_machine(machine, keys))
        for machine in machines:
            undo.callback(_kill, machine)
        configure(machines, version, **settings)
        file = _file(machines, keys, version)
        for node in nodes_of(ClusterFile.model_validate(file)):
            node.perform("start")
        await_brokers(file["bootstrap"])
        path = directory / "cluster.yml"
        path.write_text(yaml.safe_dump(file))
        yield f"cluster:{path}"


def _described(node: int, directory: Path) -> Machine:
    port = CONTROLLERS if node == CONTROLLER else CLIENTS
    return Machine(node, directory / str(node), f"{NETWORK}.{_HOST + node}", port)


def _remove_what_is_left(machines: Sequence[Machine]) -> None:
    """Of a cluster whose tests were killed."""
    for machine in machines:
        inside = subprocess.run(("ip", "netns", "pids", machine.namespace), capture_output=True, text=True, check=False)
        for pid in map(int, inside.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(("ip", "netns", "delete", machine.namespace), capture_output=True, check=False)
    subprocess.run(("ip", "link", "delete", BRIDGE), capture_output=True, check=False)


@contextmanager
def _machine(machine: Machine, keys: Path) -> Iterator[None]:
    machine.directory.mkdir()
    inside = ("ip", "netns", "exec", machine.namespace)
    port = f"sw{machine.node}"
    _do("ip", "netns", "add", machine.namespace)
    try:
        _do("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", machine.namespace)
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
        _do("ip", "netns", "delete", machine.namespace)


def _file(machines: Sequence[Machine], keys: Path, version: str) -> dict[str, Any]:
    nodes = []
    for machine in machines:
        kafka = f"{machine.command(version)} {machine.directory}/server.properties"
        start = f'nohup {kafka} >>{machine.directory}/log 2>&1 </dev/null & echo $! >"$PID_FILE"'
        nodes.append({
            "id": machine.name,
            "transport": machine.transport(keys),
            "address": machine.address,
            "port": machine.port,
            "variables": {"PID_FILE": str(machine.pid_file), "LOG_DIR": str(machine.data)},
            "commands": {"start": start},
        })  # fmt: skip
    return {"bootstrap": addresses_of(machines), "preset": "processes", "nodes": nodes}


def _await_sshd(machine: Machine, keys: Path) -> None:
    deadline = time.monotonic() + _STARTED_S
    line = words(Transport.model_validate(machine.transport(keys)), "true")
    while run(line).status:
        if time.monotonic() > deadline:
            raise AssertionError((machine.directory / "sshd.log").read_text())
        time.sleep(0.2)


def _kill(machine: Machine) -> None:
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.kill(int(machine.pid_file.read_text()), signal.SIGKILL)


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
