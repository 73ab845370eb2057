"""Builds what every overlay has, whatever program the brokers run; :mod:`.rewriting` merges it into the user's file.

Clients reach every broker through Toxiproxy, and the harness past it; both are published at 127.0.0.1. A volume of
limited size is mounted by a *holder*, too, so that it outlives its broker. The run does not write to the user's data:
see :mod:`harness.targets.compose.mounts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.model import CONTROLLER
from harness.targets.addresses import Address
from harness.targets.compose.mounts import replaced
from harness.targets.compose.project import HELD, HOLDER, TOXIPROXY
from harness.targets.compose.rewriting import target_of
from harness.targets.compose.stack_file import StackFile, reached
from harness.targets.compose.toxics import PROBE_PORT

FIRST_PROXY_PORT, TOXIPROXY_API_PORT = 20000, 8474
"""In Toxiproxy's container: the port of broker 0, and that of its API."""

LABEL = "seawall.run"
"""A label of everything that the overlay adds or changes; the value is the project."""

OWNER = "seawall.owner"
"""A label beside it; the value is the owning process of seawall."""

_TMPFS = "size={size_mib}m,mode=1777"
_FOREVER = ["sleep", "infinity"]


@dataclass(frozen=True, slots=True)
class Ports:
    """Free ports of 127.0.0.1.

    Attributes:
        clients: of each broker, by its name: through Toxiproxy, for clients.
        advertised: of each broker, by its name: where clients are to connect: that of its relay, or else ``clients``.
        harness: of each broker, by its name: past Toxiproxy.
        toxiproxy: of Toxiproxy's API.
        probe: for probes of a link through Toxiproxy.
        controller: of ZooKeeper, or of KRaft's controller if it is a single dedicated one.
    """

    clients: Mapping[str, int]
    advertised: Mapping[str, int]
    harness: Mapping[str, int]
    toxiproxy: int
    probe: int
    controller: int

    def address(self, node: str) -> Address:
        """The harness's address of a node."""
        return "127.0.0.1", self.controller if node == CONTROLLER else self.harness[node]


@dataclass(frozen=True, slots=True)
class Addition:
    """What a service needs for the clock shim: variables, and volumes as Compose writes them."""

    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parameters of an overlay, beside the file, that do not depend on the brokers' program.

    Attributes:
        project: its name.
        owner: see :func:`harness.targets.compose.ownership.owner`.
        ports: see :class:`Ports`.
        clocks: by service, the additions for the clock shim.
        tools_image: the holder's image.
        toxiproxy_image: Toxiproxy's image.
        disk_mib: the size of each broker's volume.
    """

    project: str
    owner: str
    ports: Ports
    clocks: Mapping[str, Addition]
    tools_image: str
    toxiproxy_image: str
    disk_mib: int


def completed(
    file: StackFile,
    services: dict[str, dict[str, Any]],
    run: Surroundings,
    *,
    disks: Collection[str],
    data: Mapping[str, Sequence[str]],
    held: Sequence[Any] = (),
) -> dict[str, Any]:
    """The additions, as plain data in the form of a compose file.

    Args:
        file: the user's.
        services: what each service gets; changed.
        run: the parameters.
        disks: the services whose volume has a size, which the holder mounts, too.
        data: by service, the possible data directories in the container.
        held: what the holder mounts besides, as Compose writes it.
    """
    volumes = {volume_of(name): _sized(run) for name in disks}
    volumes |= {volume: {"labels": _labels(run)} for volume in _keep_off(file, services, data)}
    services |= {HOLDER: _holder(disks, held, run), TOXIPROXY: _toxiproxy(file, run)}
    for service in services.values():
        service["labels"] = _labels(run)
    made = {"services": services, "volumes": volumes}
    return made if file.version is None else {"version": file.version, **made}


def _keep_off(
    file: StackFile, services: dict[str, dict[str, Any]], data: Mapping[str, Sequence[str]]
) -> set[str]:  # fmt: skip
    """Keep the services of the file from writing to the user's data; returns the volumes for it."""
    volumes = set()
    for name, mounted in file.mounts.items():
        taken = {target_of(written) for written in services.get(name, {}).get("volumes", ())}
        for written, volume in replaced(name, mounted, data.get(name, ())):
            if target_of(written) not in taken:
                services.setdefault(name, {}).setdefault("volumes", []).append(written)
                volumes |= {volume} - {""}
    return volumes


def published(port: int, at: int) -> str:
    """A port of 127.0.0.1 for one of a container, as Compose writes it."""
    return f"127.0.0.1:{port}:{at}"


def bound(source: str, target: str) -> Mapping[str, str]:
    """A directory of this machine, as Compose writes it where a path may have a colon in it."""
    return {"type": "bind", "source": source, "target": target}


def _holder(disks: Collection[str], held: Sequence[Any], run: Surroundings) -> dict[str, Any]:
    return {
        "image": run.tools_image,
        "entrypoint": _FOREVER,
        "network_mode": "none",
        "restart": "no",
        "init": True,
        "volumes": [*(f"{volume_of(name)}:{HELD}/{name}" for name in disks), *held],
    }


def _toxiproxy(file: StackFile, run: Surroundings) -> dict[str, Any]:
    api, probe = run.ports.toxiproxy, run.ports.probe
    nodes = map(str, range(len(file.brokers)))
    ports = [published(run.ports.clients[node], proxy_port(node)) for node in nodes]
    networks = sorted({reached(broker.networks, file)[0] for broker in file.brokers})
    return {
        "image": run.toxiproxy_image,
        "restart": "no",
        "networks": networks,
        "ports": [*ports, published(api, TOXIPROXY_API_PORT), published(probe, PROBE_PORT)],
    }


def proxy_port(node: str) -> int:
    """Toxiproxy's port for the clients of a broker, in its container."""
    assert node != CONTROLLER, "clients do not talk to the controller"
    return FIRST_PROXY_PORT + int(node)


def volume_of(service: str) -> str:
    """The name in the overlay of the volume with a size that a service has."""
    return f"seawall-{service}"


def _sized(run: Surroundings) -> dict[str, Any]:
    options = {"type": "tmpfs", "device": "tmpfs", "o": _TMPFS.format(size_mib=run.disk_mib)}
    return {"driver": "local", "driver_opts": options, "labels": _labels(run)}


def _labels(run: Surroundings) -> dict[str, str]:
    return {LABEL: run.project, OWNER: run.owner}
