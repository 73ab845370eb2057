"""Builds the overlay: what seawall adds to a user's compose file, by service; :mod:`.rewriting` merges the two.

Every broker gets two listeners more: one for clients, through Toxiproxy, and one for the harness, past every proxy.
Both are published and advertised at 127.0.0.1. The log directory moves to a volume of limited size, which a *holder*
mounts, too, so that it outlives the broker. The controllers write their log to directories of the run, where the
harness reads it at once. The listeners between the nodes stay as they are. The run does not write to the user's data:
see :mod:`harness.targets.compose.mounts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import UsageError
from harness.model import CONTROLLER
from harness.targets.addresses import Address
from harness.targets.compose.compose_file import ComposeFile, Endpoint, KafkaService, ZooKeeperService
from harness.targets.compose.mounts import replaced
from harness.targets.compose.project import DATA, DISK, HELD, HOLDER, TOXIPROXY
from harness.targets.compose.refusals import reached
from harness.targets.compose.rewriting import target_of
from harness.targets.compose.toxics import PROBE_PORT
from harness.targets.kafka.server_properties import KafkaSettings

CLIENTS_LISTENER, HARNESS_LISTENER = "SEAWALL_CLIENTS", "SEAWALL_HARNESS"
CLIENTS_PORT, HARNESS_PORT = 19094, 19095
"""In the containers."""

FIRST_PROXY_PORT, TOXIPROXY_API_PORT = 20000, 8474
"""In Toxiproxy's container: the port of broker 0, and that of its API."""

METADATA, HELD_METADATA = "/seawall/metadata", "/metadata"
"""The directory of a controller's log in its own container, and, below its service's name, in the holder."""

LABEL = "seawall.run"
"""A label of everything that the overlay adds or changes; the value is the project."""

OWNER = "seawall.owner"
"""A label beside it; the value is the owning process of seawall."""

_DATA_OF_KAFKA = ("/var/lib/kafka", "/bitnami/kafka", "/kafka", "/tmp/kafka-logs", "/tmp/kraft-combined-logs")  # noqa: S108
_DATA_OF_ZOOKEEPER = ("/data", "/datalog", "/var/lib/zookeeper", "/bitnami/zookeeper")
"""The data directories of common images."""

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
class Wishes:
    """The parameters of the overlay, beside the file.

    Attributes:
        project: its name.
        owner: see :func:`harness.targets.compose.leftovers.owner`.
        ports: see :class:`Ports`.
        settings: of every broker and controller.
        metadata: by service, the directory of this machine for KRaft's metadata log or for ZooKeeper's files.
        clocks: by service, the additions for the clock shim.
        tools_image: the holder's image.
        toxiproxy_image: Toxiproxy's image.
        disk_mib: the size of each broker's volume.
    """

    project: str
    owner: str
    ports: Ports
    settings: KafkaSettings
    metadata: Mapping[str, str]
    clocks: Mapping[str, Addition]
    tools_image: str
    toxiproxy_image: str
    disk_mib: int


def overlay(file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    """The additions, as plain data in the form of a compose file.

    Raises:
        UsageError: a service cannot take an addition.
    """
    services = {broker.name: _broker(broker, node, wishes) for node, broker in _named(file)}
    services |= {one.name: _controller(one, file, wishes) for one in file.controllers}
    for number, keeper in enumerate(file.zookeepers):
        services[keeper.name] = _zookeeper(keeper, wishes, is_first=number == 0)
    volumes = {_volume(one): _sized(wishes) for one in file.brokers}
    volumes |= {volume: {"labels": _labels(wishes)} for volume in _keep_off(file, services)}
    services |= {HOLDER: _holder(file, wishes), TOXIPROXY: _toxiproxy(file, wishes)}
    for service in services.values():
        service["labels"] = _labels(wishes)
    made = {"services": services, "volumes": volumes}
    return made if file.version is None else {"version": file.version, **made}


def _keep_off(file: ComposeFile, services: dict[str, dict[str, Any]]) -> set[str]:
    """Keep the services of the file from writing to the user's data; returns the volumes for it."""
    data = {one.name: _data_dirs(one) for one in file.kafkas}
    data |= {one.name: _DATA_OF_ZOOKEEPER for one in file.zookeepers}
    volumes = set()
    for name, mounted in file.mounts.items():
        taken = {target_of(written) for written in services.get(name, {}).get("volumes", ())}
        for written, volume in replaced(name, mounted, data.get(name, ())):
            if target_of(written) not in taken:
                services.setdefault(name, {}).setdefault("volumes", []).append(written)
                volumes |= {volume} - {""}
    return volumes


def _data_dirs(kafka: KafkaService) -> Sequence[str]:
    """The data directories of a service's Kafka, by its settings and by common images."""
    settings = ("log.dirs", "log.dir", "metadata.log.dir")
    configured = [
        place.strip() for name in settings for place in kafka.properties.get(name, "").split(",") if place.strip()
    ]
    return [*configured, *_DATA_OF_KAFKA]


def needed(file: ComposeFile) -> Sequence[str]:
    """The services of the file that are nodes."""
    return [*(one.name for one in file.kafkas), *(one.name for one in file.zookeepers)]


def _named(file: ComposeFile) -> Iterator[tuple[str, KafkaService]]:
    return ((str(number), broker) for number, broker in enumerate(file.brokers))


# ---------------------------------------------------------------------------------------------------------- Kafka


def _broker(broker: KafkaService, node: str, wishes: Wishes) -> dict[str, Any]:
    own = {
        **_listeners(broker, wishes.ports.advertised[node], wishes.ports.harness[node]),
        "log.dirs": f"{DISK}/{DATA}",
    }
    if broker.name in wishes.metadata:  # the metadata log must not fill a broker's disk
        own["metadata.log.dir"] = METADATA
    volumes = [f"{_volume(broker)}:{DISK}", *_metadata_volume(broker.name, wishes)]
    published = {"ports": [_published(wishes.ports.harness[node], HARNESS_PORT)]}
    return _kafka(broker, own, volumes, wishes) | published


def _controller(controller: KafkaService, file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    volumes = list(_metadata_volume(controller.name, wishes))
    made = _kafka(controller, {"log.dirs": METADATA, "metadata.log.dir": METADATA}, volumes, wishes)
    listener = listener_for_controllers(file)
    return made if listener is None else made | {"ports": [_published(wishes.ports.controller, listener.port)]}


def listener_for_controllers(file: ComposeFile) -> Endpoint | None:
    """The listener of KRaft's single dedicated controller; None: several, combined, or no plaintext."""
    controllers = [one for one in file.kafkas if one.is_controller]
    if len(controllers) != 1 or controllers[0].is_broker:
        return None
    (controller,) = controllers
    return next((one for one in controller.listeners if controller.protocols[one.name] == "PLAINTEXT"), None)


def _published(port: int, at: int) -> str:
    return f"127.0.0.1:{port}:{at}"


def _kafka(service: KafkaService, own: Mapping[str, str], volumes: Sequence[Any], wishes: Wishes) -> dict[str, Any]:
    clock = wishes.clocks.get(service.name, Addition())
    settings = {service.variable(name): value for name, value in {**wishes.settings.properties, **own}.items()}
    return {
        "restart": "no",  # seawall alone starts it again
        "environment": {**settings, **clock.environment},
        "volumes": [*volumes, *clock.volumes],
    }


def _metadata_volume(service: str, wishes: Wishes) -> Iterator[Mapping[str, str]]:
    if service in wishes.metadata:
        yield bound(wishes.metadata[service], METADATA)


def bound(source: str, target: str) -> Mapping[str, str]:
    """A directory of this machine, as Compose writes it where a path may have a colon in it."""
    return {"type": "bind", "source": source, "target": target}


def _listeners(broker: KafkaService, clients: int, harness: int) -> dict[str, str]:
    taken = {one.port for one in broker.listeners} & {CLIENTS_PORT, HARNESS_PORT}
    if taken:
        raise UsageError(
            f"service {broker.name!r} listens at port {min(taken)}, which seawall needs for itself.",
            "Take another one.",
        )
    listeners = [Endpoint(CLIENTS_LISTENER, "", CLIENTS_PORT), Endpoint(HARNESS_LISTENER, "", HARNESS_PORT)]
    advertised = [
        Endpoint(CLIENTS_LISTENER, "127.0.0.1", clients),
        Endpoint(HARNESS_LISTENER, "127.0.0.1", harness),
    ]
    protocols = {**broker.protocols, CLIENTS_LISTENER: "PLAINTEXT", HARNESS_LISTENER: "PLAINTEXT"}
    return {
        "listeners": ",".join(map(str, (*broker.listeners, *listeners))),
        "advertised.listeners": ",".join(map(str, (*broker.advertised, *advertised))),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }


# ---------------------------------------------------------------------------------------------------------- ZooKeeper


@dataclass(frozen=True, slots=True)
class ZooKeeperPlaces:
    """The directories of an image's ZooKeeper.

    Attributes:
        variables: that set them.
        snapshots: directory of the container.
        transactions: directory of the container, for the log.
    """

    variables: Mapping[str, str]
    snapshots: str
    transactions: str


_ELSEWHERE = ZooKeeperPlaces(
    {"ZOO_DATA_DIR": f"{METADATA}/snapshots", "ZOO_DATA_LOG_DIR": f"{METADATA}/transactions"},
    f"{METADATA}/snapshots",
    f"{METADATA}/transactions",
)
_PLACES = {
    "cp-zookeeper": ZooKeeperPlaces({}, "/var/lib/zookeeper/data", "/var/lib/zookeeper/log"),
    "bitnami": ZooKeeperPlaces(
        {"ZOO_DATA_LOG_DIR": "/bitnami/zookeeper/dataLog"}, "/bitnami/zookeeper/data", "/bitnami/zookeeper/dataLog"
    ),
}
"""By a part of the image's name; others use the variables of the official image."""

SNAPSHOTS, TRANSACTIONS = "snapshots", "transactions"
"""The directories of ZooKeeper below its directory of this machine."""


def _zookeeper(keeper: ZooKeeperService, wishes: Wishes, *, is_first: bool) -> dict[str, Any]:
    places = next((place for known, place in _PLACES.items() if known in keeper.image), _ELSEWHERE)
    host = wishes.metadata[keeper.name]
    published = {"ports": [_published(wishes.ports.controller, keeper.port)]} if is_first else {}
    return {
        "restart": "no",
        "environment": dict(places.variables),
        "volumes": [
            bound(f"{host}/{SNAPSHOTS}", places.snapshots),
            bound(f"{host}/{TRANSACTIONS}", places.transactions),
        ],
        **published,
    }


# ---------------------------------------------------------------------------------------------------------- additions


def _holder(file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    return {
        "image": wishes.tools_image,
        "entrypoint": _FOREVER,
        "network_mode": "none",
        "restart": "no",
        "init": True,
        "volumes": [
            *(f"{_volume(broker)}:{HELD}/{broker.name}" for broker in file.brokers),
            *(bound(directory, f"{HELD_METADATA}/{service}") for service, directory in wishes.metadata.items()),
        ],
    }


def _toxiproxy(file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    api, probe = wishes.ports.toxiproxy, wishes.ports.probe
    ports = [_published(wishes.ports.clients[node], proxy_port(node)) for node, _ in _named(file)]
    networks = sorted({reached(broker.networks, file)[0] for broker in file.brokers})
    return {
        "image": wishes.toxiproxy_image,
        "restart": "no",
        "networks": networks,
        "ports": [*ports, _published(api, TOXIPROXY_API_PORT), _published(probe, PROBE_PORT)],
    }


def proxy_port(node: str) -> int:
    """Toxiproxy's port for the clients of a broker, in its container."""
    assert node != CONTROLLER, "clients do not talk to the controller"
    return FIRST_PROXY_PORT + int(node)


def _volume(broker: KafkaService) -> str:
    return f"seawall-{broker.name}"


def _sized(wishes: Wishes) -> dict[str, Any]:
    options = {"type": "tmpfs", "device": "tmpfs", "o": _TMPFS.format(size_mib=wishes.disk_mib)}
    return {"driver": "local", "driver_opts": options, "labels": _labels(wishes)}


def _labels(wishes: Wishes) -> dict[str, str]:
    return {LABEL: wishes.project, OWNER: wishes.owner}
