"""Reads the Kafka services of a user's compose file: the brokers, the controllers, and their listeners.

It knows the dialects of the common images: ``KAFKA_X_Y`` is ``x.y`` of ``server.properties`` (apache/kafka,
confluentinc/cp-kafka, wurstmeister/kafka); bitnami/kafka has ``KAFKA_CFG_X_Y``. Everything here is a pure function of
the file as the compose tool has resolved it, and refuses what it does not understand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.model import CONTROLLER, NodeId
from harness.targets.compose.mounts import Mount, mounts
from harness.targets.compose.rewriting import extra_hosts
from harness.targets.compose.services import (
    environment,
    image_of,
    internal_networks,
    names_of,
    networks_of,
    refuse_several,
    version_of,
)

PLAIN, CFG = "KAFKA_", "KAFKA_CFG_"
"""The prefixes of variables that become settings."""

_EVIDENCE = ("process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "zookeeper.connect")
"""Settings that only a service with a broker or a controller has, and none that only calls Kafka's tools."""

_NO_SETTINGS = ("KAFKA_CLUSTERS_", "KAFKA_JMX_", "KAFKA_LOG4J_", "KAFKA_KRAFT_")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT = re.compile(r"(?P<name>[^:/\s]+)://(?P<host>\[[^\]]*\]|[^:/\s]*):(?P<port>\d+)")
_ANYWHERE = ("", "0.0.0.0", "[::]")
_BROKER, _CONTROLLER = "broker", "controller"
_DEFAULT_LISTENERS = "PLAINTEXT://:9092"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener; ``host`` is empty where it is any address of the container."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class KafkaService:
    """A service that runs a broker, a controller, or both in one.

    Attributes:
        name: of the service.
        image: of the service.
        kafka_id: its ``node.id`` or ``broker.id``.
        is_broker: whether it holds replicas.
        is_controller: whether it is a member of KRaft's quorum.
        prefix: of its variables.
        properties: the settings in its variables, in Kafka's spelling.
        listeners: its listeners, those for controllers included.
        advertised: its advertised listeners.
        protocols: the security protocol of each listener that is named anywhere.
        networks: its networks in the file.
        names: the names of its container on its networks, the service's own included.
        extra_hosts: the additional names in its hosts file.
    """

    name: str
    image: str
    kafka_id: int
    is_broker: bool
    is_controller: bool
    prefix: str
    properties: Mapping[str, str]
    listeners: Sequence[Endpoint]
    advertised: Sequence[Endpoint]
    protocols: Mapping[str, str]
    networks: Sequence[str]
    names: Set[str]
    extra_hosts: Set[str]

    def variable(self, setting: str) -> str:
        """The environment variable of a setting: ``min.insync.replicas`` is ``KAFKA_MIN_INSYNC_REPLICAS``."""
        return self.prefix + setting.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class ZooKeeperService:
    """A service that runs ZooKeeper; ``port`` is where brokers find it."""

    name: str
    image: str
    port: int
    networks: Sequence[str]
    names: Set[str]


@dataclass(frozen=True, slots=True)
class ComposeFile:
    """The services of a compose file that run Kafka.

    Attributes:
        path: of the file.
        version: the format version in the file, which Compose v1 needs in every file of a project.
        brokers: broker 0, 1, 2 ... of scenarios, in the order of their ids in the file.
        controllers: those of KRaft's controllers that are no brokers; empty with ZooKeeper.
        zookeepers: empty with KRaft.
        mounts: of every service of the file, by its name.
        internal_networks: from which nothing can be published.
    """

    path: Path
    version: str | None
    brokers: Sequence[KafkaService]
    controllers: Sequence[KafkaService]
    zookeepers: Sequence[ZooKeeperService]
    mounts: Mapping[str, Sequence[Mount]]
    internal_networks: Set[str]

    @property
    def kafkas(self) -> Sequence[KafkaService]:
        """Every service that runs Kafka."""
        return [*self.brokers, *self.controllers]

    @property
    def nodes(self) -> Mapping[str, Sequence[str]]:
        """The services of each node of the target; all that are no brokers form the node ``controller``."""
        brokers = {str(number): [broker.name] for number, broker in enumerate(self.brokers)}
        rest = [*(one.name for one in self.controllers), *(one.name for one in self.zookeepers)]
        return {**brokers, CONTROLLER: rest} if rest else brokers

    @property
    def kafka_ids(self) -> Mapping[NodeId, int]:
        """The id in the file of each broker of a scenario."""
        return {NodeId(number): broker.kafka_id for number, broker in enumerate(self.brokers)}


def understood(resolved: Mapping[str, Any], path: Path, pattern: str | None = None) -> ComposeFile:
    """The Kafka services of a resolved compose file.

    Args:
        resolved: see :func:`harness.targets.compose.compose_tool.resolved`.
        path: of the file, for messages.
        pattern: of the names of the services that run Kafka (``kafka*``), of those that have the variables of one;
            None: all that have them.

    Raises:
        UsageError: there is no Kafka in it, or a part of it is not understood.
    """
    services: Mapping[str, Mapping[str, Any]] = resolved.get("services") or {}
    try:
        kafkas = [_kafka(name, service) for name, service in services.items() if _is_kafka(name, service, pattern)]
        brokers = sorted((one for one in kafkas if one.is_broker), key=lambda one: one.kafka_id)
        if not brokers:
            raise _no_brokers(services, pattern)
        _refuse_ambiguity(kafkas)
        zookeepers = _zookeepers(brokers, services)
    except UsageError as error:
        raise UsageError(f"{path}: {error.sentence}", error.remedy) from None
    controllers = [one for one in kafkas if not one.is_broker]
    internal = internal_networks(resolved)
    return ComposeFile(path, version_of(resolved), brokers, controllers, zookeepers, mounts(resolved), internal)


# ---------------------------------------------------------------------------------------------------------- identity


def has_kafka(stack: Mapping[str, Any], pattern: str | None = None) -> bool:
    """Whether a service of a resolved file, with a name like ``pattern``, has the variables of a broker of Kafka."""
    return any(_is_kafka(name, service, pattern) for name, service in (stack.get("services") or {}).items())


def _is_kafka(name: str, service: Mapping[str, Any], pattern: str | None) -> bool:
    settings = _settings(environment(service))
    return fnmatchcase(name, pattern or "*") and any(setting in settings for setting in _EVIDENCE)


def _no_brokers(services: Mapping[str, Mapping[str, Any]], pattern: str | None) -> UsageError:
    names = ", ".join(services) or "none"
    if pattern is not None:
        return UsageError(
            f"no service of {names} matches {pattern!r} and is a Kafka broker.",
            "Brokers have KAFKA_NODE_ID, KAFKA_BROKER_ID or KAFKA_LISTENERS (bitnami: KAFKA_CFG_...).",
        )
    return UsageError(
        f"none of the services {names} is known for a Kafka broker.",
        "Brokers are known by KAFKA_NODE_ID, KAFKA_BROKER_ID or KAFKA_LISTENERS (bitnami: KAFKA_CFG_...), or by a "
        "server.properties of this machine at /mnt/shared/config (apache/kafka); "
        "services of a profile are there when COMPOSE_PROFILES names it.",
    )


def _refuse_ambiguity(kafkas: Sequence[KafkaService]) -> None:
    for kafka_id, times in Counter(one.kafka_id for one in kafkas).items():
        if times > 1:
            names = " and ".join(one.name for one in kafkas if one.kafka_id == kafka_id)
            raise UsageError(f"services {names} have the same id {kafka_id}.")
    modes = {_is_kraft(one.properties) for one in kafkas}
    if len(modes) > 1:
        raise UsageError("some brokers have KAFKA_PROCESS_ROLES (KRaft) and some have not (ZooKeeper).")
    if _is_kraft(kafkas[0].properties) and not any(one.is_controller for one in kafkas):
        raise UsageError("no service has the role controller in KAFKA_PROCESS_ROLES.")


# ---------------------------------------------------------------------------------------------------------- settings


def _settings(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The settings in variables; where both dialects are used, bitnami's wins, as in its image."""
    plain = {
        _setting(name.removeprefix(PLAIN)): value
        for name, value in environment.items()
        if name.startswith(PLAIN) and not name.startswith((CFG, *_NO_SETTINGS))
    }
    cfg = {_setting(name.removeprefix(CFG)): value for name, value in environment.items() if name.startswith(CFG)}
    return {**plain, **cfg}


def _setting(name: str) -> str:
    """``LOG_RETENTION_MS`` is ``log.retention.ms``; ``__`` is a dash and ``___`` an underscore."""
    return name.lower().replace("___", "\0").replace("__", "-").replace("_", ".").replace("\0", "_")


def _is_kraft(settings: Mapping[str, str]) -> bool:
    return "process.roles" in settings


# ---------------------------------------------------------------------------------------------------------- a service


def _kafka(name: str, service: Mapping[str, Any]) -> KafkaService:
    variables = environment(service)
    settings = _settings(variables)
    prefix = CFG if any(key.startswith(CFG) for key in variables) else PLAIN
    refuse_several(name, service)
    roles = [role.strip() for role in settings.get("process.roles", _BROKER).split(",")]
    if unknown := set(roles) - {_BROKER, _CONTROLLER}:
        raise _fault(name, prefix, "process.roles", min(unknown), "is neither broker nor controller")
    listeners, advertised = _listeners(name, prefix, settings, is_broker=_BROKER in roles)
    return KafkaService(
        name=name,
        image=image_of(name, service),
        kafka_id=_kafka_id(name, prefix, settings),
        is_broker=_BROKER in roles,
        is_controller=_CONTROLLER in roles,
        prefix=prefix,
        properties=settings,
        listeners=listeners,
        advertised=advertised,
        protocols=_protocols(name, prefix, settings, (*listeners, *advertised)),
        networks=networks_of(name, service),
        names=names_of(name, service),
        extra_hosts={name for name, _ in extra_hosts(service)},
    )


def _kafka_id(name: str, prefix: str, settings: Mapping[str, str]) -> int:
    setting = "node.id" if "node.id" in settings else "broker.id"
    if setting not in settings:
        wanted = f"{prefix}NODE_ID (KRaft)" if _is_kraft(settings) else f"{prefix}BROKER_ID (ZooKeeper)"
        raise UsageError(f"service {name!r} has no {wanted}.", "Give each broker an id, which scenarios count by.")
    if not settings[setting].isdecimal():
        fault = _fault(name, prefix, setting, settings[setting], "is no broker id")
        raise UsageError(fault.sentence, "If it is no broker, name those that are: --service-pattern 'broker*'.")
    return int(settings[setting])


# ---------------------------------------------------------------------------------------------------------- listeners


def _listeners(
    name: str, prefix: str, settings: Mapping[str, str], *, is_broker: bool
) -> tuple[Sequence[Endpoint], Sequence[Endpoint]]:
    """The listeners of a service, and the advertised ones; some images derive the first from the second."""
    announced = _endpoints(name, prefix, "advertised.listeners", settings.get("advertised.listeners", ""))
    listeners = [Endpoint(one.name, "", one.port) for one in announced]
    if not announced and (host := settings.get("advertised.host.name")):
        port = _port(name, prefix, "port", settings.get("port", "9092"))
        advertised = _port(name, prefix, "advertised.port", settings.get("advertised.port", str(port)))
        announced = [Endpoint("PLAINTEXT", host, advertised)]
        listeners = [Endpoint("PLAINTEXT", settings.get("host.name", ""), port)]
    if not listeners or "listeners" in settings:
        listeners = _endpoints(name, prefix, "listeners", settings.get("listeners", _DEFAULT_LISTENERS))
    if not is_broker:
        return listeners, ()
    for_controllers = _names(settings.get("controller.listener.names", ""))
    announced = announced or [one for one in listeners if one.name not in for_controllers]
    return listeners, [Endpoint(one.name, name if one.host in _ANYWHERE else one.host, one.port) for one in announced]


def _port(name: str, prefix: str, setting: str, written: str) -> int:
    if not written.strip().isdecimal():
        raise _fault(name, prefix, setting, written, "is no port")
    return int(written)


def _endpoints(name: str, prefix: str, setting: str, value: str) -> list[Endpoint]:
    found = []
    for written in _names(value):
        match = _ENDPOINT.fullmatch(written)
        if match is None:
            raise _fault(name, prefix, setting, written, "is not NAME://HOST:PORT")
        host = "" if match["host"] in _ANYWHERE else match["host"]
        found.append(Endpoint(match["name"], host, int(match["port"])))
    return found


def _protocols(name: str, prefix: str, settings: Mapping[str, str], endpoints: Iterable[Endpoint]) -> Mapping[str, str]:
    """The protocol of every listener: the configured one, or else the one that its name is, as in Kafka."""
    setting = "listener.security.protocol.map"
    written = {}
    for pair in _names(settings.get(setting, "")):
        listener, colon, protocol = pair.partition(":")
        if not colon:
            raise _fault(name, prefix, setting, pair, "is not LISTENER:PROTOCOL")
        written[listener] = protocol
    for_controllers = _names(settings.get("controller.listener.names", ""))
    for listener in (*(one.name for one in endpoints), *for_controllers):
        if listener in written:
            continue
        if listener in _PROTOCOLS:
            written[listener] = listener
        elif listener in for_controllers and setting not in settings:
            written[listener] = "PLAINTEXT"
        else:
            raise _fault(name, prefix, setting, settings.get(setting, ""), f"has no protocol for {listener}")
    return written


def _names(value: str) -> list[str]:
    return [one.strip() for one in value.split(",") if one.strip()]


def _fault(service: str, prefix: str, setting: str, value: str, what: str) -> UsageError:
    return UsageError(f"service {service!r}: {prefix}{setting.upper().replace('.', '_')}: {value!r} {what}.")


# ---------------------------------------------------------------------------------------------------------- ZooKeeper


def _zookeepers(
    brokers: Sequence[KafkaService], services: Mapping[str, Mapping[str, Any]]
) -> Sequence[ZooKeeperService]:
    """The services that the brokers' ``zookeeper.connect`` names."""
    if _is_kraft(brokers[0].properties):
        return []
    found: dict[str, ZooKeeperService] = {}
    for broker in brokers:
        setting = "zookeeper.connect"
        written = broker.properties.get(setting, "")
        if not written:
            raise UsageError(f"service {broker.name!r} has neither {broker.prefix}PROCESS_ROLES nor {setting}.")
        if "/" in written:
            raise _fault(broker.name, broker.prefix, setting, written, "has a path, and Kafka's own is the root here")
        for address in _names(written):
            host, _, port = address.partition(":")
            name = _service_at(host, services)
            if name is None:
                raise _fault(broker.name, broker.prefix, setting, address, "is no service of this file")
            service = services[name]
            found[name] = ZooKeeperService(
                name,
                image_of(name, service),
                _port(broker.name, broker.prefix, setting, port or "2181"),
                networks_of(name, service),
                names_of(name, service),
            )
    return list(found.values())


def _service_at(host: str, services: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The service with that name, or whose container has it."""
    called = [name for name, service in services.items() if host in names_of(name, service)]
    return host if host in services else next(iter(called), None)
