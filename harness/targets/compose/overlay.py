"""Builds the overlay for Kafka: what seawall adds to a user's compose file, by service; see :mod:`.beside`.

Every broker gets two listeners more: one for clients, through Toxiproxy, and one for the harness, past every proxy.
Both are published and advertised at 127.0.0.1. The log directory moves to a volume of limited size. The controllers
write their log to directories of the run, where the harness reads it at once. The listeners between the nodes stay as
they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.targets.compose.beside import Addition, Ports, Surroundings, bound, completed, published, volume_of
from harness.targets.compose.compose_file import ComposeFile, Endpoint, KafkaService, ZooKeeperService
from harness.targets.compose.project import DATA, DISK
from harness.targets.kafka.server_properties import KafkaSettings

CLIENTS_LISTENER, HARNESS_LISTENER = "SEAWALL_CLIENTS", "SEAWALL_HARNESS"
CLIENTS_PORT, HARNESS_PORT = 19094, 19095
"""In the containers."""

METADATA, HELD_METADATA = "/seawall/metadata", "/metadata"
"""The directory of a controller's log in its own container, and, below its service's name, in the holder."""

_DATA_OF_KAFKA = ("/var/lib/kafka", "/bitnami/kafka", "/kafka", "/tmp/kafka-logs", "/tmp/kraft-combined-logs")  # noqa: S108
_DATA_OF_ZOOKEEPER = ("/data", "/datalog", "/var/lib/zookeeper", "/bitnami/zookeeper")
"""The data directories of common images."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The parameters of the overlay, beside the file.

    Attributes:
        run: those that do not depend on the brokers' program.
        settings: of every broker and controller.
        metadata: by service, the directory of this machine for KRaft's metadata log or for ZooKeeper's files.
    """

    run: Surroundings
    settings: KafkaSettings
    metadata: Mapping[str, str]

    @property
    def ports(self) -> Ports:
        """See :class:`harness.targets.compose.beside.Ports`."""
        return self.run.ports


def overlay(file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    """The additions, as plain data in the form of a compose file.

    Raises:
        UsageError: a service cannot take an addition.
    """
    services = {broker.name: _broker(broker, node, wishes) for node, broker in _named(file)}
    services |= {one.name: _controller(one, file, wishes) for one in file.controllers}
    for number, keeper in enumerate(file.zookeepers):
        services[keeper.name] = _zookeeper(keeper, wishes, is_first=number == 0)
    data = {one.name: _data_dirs(one) for one in file.kafkas}
    data |= {one.name: _DATA_OF_ZOOKEEPER for one in file.zookeepers}
    held = [bound(directory, f"{HELD_METADATA}/{service}") for service, directory in wishes.metadata.items()]
    return completed(file, services, wishes.run, disks=[one.name for one in file.brokers], data=data, held=held)


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
    volumes = [f"{volume_of(broker.name)}:{DISK}", *_metadata_volume(broker.name, wishes)]
    open_at = {"ports": [published(wishes.ports.harness[node], HARNESS_PORT)]}
    return _kafka(broker, own, volumes, wishes) | open_at


def _controller(controller: KafkaService, file: ComposeFile, wishes: Wishes) -> dict[str, Any]:
    volumes = list(_metadata_volume(controller.name, wishes))
    made = _kafka(controller, {"log.dirs": METADATA, "metadata.log.dir": METADATA}, volumes, wishes)
    listener = listener_for_controllers(file)
    return made if listener is None else made | {"ports": [published(wishes.ports.controller, listener.port)]}


def listener_for_controllers(file: ComposeFile) -> Endpoint | None:
    """The listener of KRaft's single dedicated controller; None: several, combined, or no plaintext."""
    controllers = [one for one in file.kafkas if one.is_controller]
    if len(controllers) != 1 or controllers[0].is_broker:
        return None
    (controller,) = controllers
    return next((one for one in controller.listeners if controller.protocols[one.name] == "PLAINTEXT"), None)


def _kafka(service: KafkaService, own: Mapping[str, str], volumes: Sequence[Any], wishes: Wishes) -> dict[str, Any]:
    clock = wishes.run.clocks.get(service.name, Addition())
    settings = {service.variable(name): value for name, value in {**wishes.settings.properties, **own}.items()}
    return {
        "restart": "no",  # seawall alone starts it again
        "environment": {**settings, **clock.environment},
        "volumes": [*volumes, *clock.volumes],
    }


def _metadata_volume(service: str, wishes: Wishes) -> Iterator[Mapping[str, str]]:
    if service in wishes.metadata:
        yield bound(wishes.metadata[service], METADATA)


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
    open_at = {"ports": [published(wishes.ports.controller, keeper.port)]} if is_first else {}
    return {
        "restart": "no",
        "environment": dict(places.variables),
        "volumes": [
            bound(f"{host}/{SNAPSHOTS}", places.snapshots),
            bound(f"{host}/{TRANSACTIONS}", places.transactions),
        ],
        **open_at,
    }
