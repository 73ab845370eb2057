"""Finds the brokers of a compose file that are not Apache Kafka's, by what they tell their clients.

Clients find a broker where it advertises itself, so that its command, or one of its variables, has that address. A
service is taken for a broker when it has an address ``HOST:PORT`` there whose port it publishes. Where one service has
it in a flag or a variable with ``kafka`` in its name, only such services are brokers; and where a service has the label
:data:`LISTENER`, only those that have it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UsageError
from harness.targets.compose.mounts import Mount, Source, mounts
from harness.targets.compose.rewriting import Stack, extra_hosts, labels
from harness.targets.compose.services import (
    environment,
    image_of,
    internal_networks,
    names_of,
    networks_of,
    refuse_several,
    version_of,
)

LISTENER = "seawall.listener"
"""A label of a broker: the published port whose advertised address its clients use."""

DISK_LABEL = "seawall.disk"
"""A label of a broker: the directory of its container where it keeps its data."""

_ADDRESS = re.compile(r"(?:(?P<scheme>[\w+.-]+)://)?(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9_.-]+):(?P<port>\d{1,5})\b")
_ANYWHERE = ("0.0.0.0", "[::]")
_NO_KAFKA = ("http", "https")
_KAFKA = "kafka"
_PORT = re.compile(r"(?:(?P<host>[^/]*):)?(?P<published>\d+):(?P<target>\d+)(?:/(?P<protocol>\w+))?")


@dataclass(frozen=True, slots=True)
class ForeignBroker:
    """A service that runs a broker of another make.

    Attributes:
        name: of the service.
        image: of the service.
        advertised: where it has clients connect, as it is written in the file.
        port: the port of its container that is published there.
        disk: the directory of its container where it keeps its data; None: it mounts no single one, nor names one.
        networks: its networks in the file.
        names: the names of its container on its networks, the service's own included.
        extra_hosts: the additional names in its hosts file.
    """

    name: str
    image: str
    advertised: str
    port: int
    disk: str | None
    networks: Sequence[str]
    names: Set[str]
    extra_hosts: Set[str]


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """The brokers of a compose file; implements :class:`harness.targets.compose.stack_file.StackFile`.

    Attributes:
        path: of the file.
        version: the format version in the file, which Compose v1 needs in every file of a project.
        brokers: broker 0, 1, 2 ... of scenarios, in the order of the file.
        mounts: of every service of the file, by its name.
        internal_networks: from which nothing can be published.
    """

    path: Path
    version: str | None
    brokers: Sequence[ForeignBroker]
    mounts: Mapping[str, Sequence[Mount]]
    internal_networks: Set[str]

    @property
    def nodes(self) -> Mapping[str, Sequence[str]]:
        """The services of each node: one for each broker."""
        return {str(number): [broker.name] for number, broker in enumerate(self.brokers)}


class _Told(NamedTuple):
    """An address that a service tells its clients: where it is written, and the port of the container behind it."""

    address: str
    within: str
    port: int


def names_listeners(stack: Stack) -> bool:
    """Whether a service of the file has the label :data:`LISTENER`."""
    return any(LISTENER in labels(service) for service in (stack.get("services") or {}).values())


def understood(stack: Stack, path: Path, pattern: str | None = None) -> ForeignFile:
    """The brokers of a resolved compose file.

    Args:
        stack: see :func:`harness.targets.compose.compose_tool.resolved`.
        path: of the file, for messages.
        pattern: of the names of the services that are brokers, of those that look like one; None: all of them.

    Raises:
        UsageError: there is none, or it is not plain where clients find one.
    """
    services: Mapping[str, Mapping[str, Any]] = stack.get("services") or {}
    mounted = mounts(stack)
    try:
        told = _brokers(services, pattern)
        found = [_broker(name, services[name], one, mounted[name]) for name, one in told.items()]
    except UsageError as error:
        raise UsageError(f"{path}: {error.sentence}", error.remedy) from None
    return ForeignFile(path, version_of(stack), found, mounted, internal_networks(stack))


def _brokers(services: Mapping[str, Mapping[str, Any]], pattern: str | None) -> Mapping[str, _Told]:
    """By the names of the brokers, what each tells its clients."""
    inside = {name for service in services for name in names_of(service, services[service])}
    meant = {name: one for name, one in services.items() if fnmatchcase(name, pattern or "*")}
    labelled = {name: one for name, one in meant.items() if LISTENER in labels(one)}
    told = {name: list(_told(one, inside)) for name, one in (labelled or meant).items()}
    if labelled:
        return {name: _one(name, _at(name, told[name], one)) for name, one in labelled.items()}
    of_kafka = {name: [one for one in found if _KAFKA in one.within.lower()] for name, found in told.items()}
    chosen = {name: found for name, found in (of_kafka if any(of_kafka.values()) else told).items() if found}
    if not chosen:
        names = ", ".join(meant) or "none"
        raise UsageError(
            f"none of the services {names} is known for a broker.",
            "Kafka is known by KAFKA_NODE_ID, KAFKA_BROKER_ID or KAFKA_LISTENERS (bitnami: KAFKA_CFG_...), or by a "
            "server.properties of this machine at /mnt/shared/config (apache/kafka); a broker of another make by an "
            "address in its command or variables whose port it publishes (localhost:19092); services of a profile are "
            "there when COMPOSE_PROFILES names it.",
        )
    return {name: _one(name, found) for name, found in chosen.items()}


def _at(name: str, told: Sequence[_Told], service: Mapping[str, Any]) -> Sequence[_Told]:
    """Those at the published port that the service's label names."""
    wanted = str(labels(service)[LISTENER])
    found = [one for one in told if one.address.rpartition(":")[2] == wanted]
    if not found:
        raise UsageError(
            f"service {name!r} has the label {LISTENER}={wanted}, and no address with that port in its command or "
            "variables, or does not publish it, so that clients on this machine would not find it.",
            f"Publish the port, and have the service advertise localhost:{wanted}.",
        )
    return found


def _one(name: str, told: Sequence[_Told]) -> _Told:
    if len({one.address for one in told}) > 1:
        seen = " and ".join(dict.fromkeys(one.address for one in told))
        raise UsageError(
            f"service {name!r} advertises {seen}, and which of them is for clients of Kafka is not plain.",
            f'Give the service the label {LISTENER}: "PORT", which names the published port.',
        )
    return told[0]


def _told(service: Mapping[str, Any], inside: Set[str]) -> Iterator[_Told]:
    """The addresses in a service's command and variables whose port it publishes, but for those of its networks."""
    published = dict(_published(service))
    for within, text in _texts(service):
        for found in _ADDRESS.finditer(text):
            host, port = found["host"], int(found["port"])
            if port in published and host not in (*_ANYWHERE, *inside) and found["scheme"] not in _NO_KAFKA:
                yield _Told(f"{host}:{found['port']}", within, published[port])


def _texts(service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The words of its command, each with the last flag before it, and its variables, each with its name."""
    for part in ("entrypoint", "command"):
        flag = ""
        for word in _words(service.get(part) or ()):
            if word.startswith("-"):
                flag = word.partition("=")[0]
            yield flag, word
    yield from environment(service).items()


def _words(written: str | Sequence[str]) -> Iterator[str]:
    """The words of a command; several may be in one argument, as in ``--advertise-addr localhost:9092``."""
    for argument in shlex.split(written) if isinstance(written, str) else written:
        yield from str(argument).split()


def _published(service: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Each published port, with that of the container; the tools write them in several ways."""
    for written in service.get("ports") or ():
        if isinstance(written, Mapping):
            if str(written.get("published") or "").isdecimal():
                yield int(written["published"]), int(written["target"])
        elif (found := _PORT.fullmatch(str(written))) is not None:
            yield int(found["published"]), int(found["target"])


def _broker(name: str, service: Mapping[str, Any], told: _Told, mounted: Sequence[Mount]) -> ForeignBroker:
    refuse_several(name, service)
    return ForeignBroker(
        name=name,
        image=image_of(name, service),
        advertised=told.address,
        port=told.port,
        disk=_disk(name, service, mounted),
        networks=networks_of(name, service),
        names=names_of(name, service),
        extra_hosts={host for host, _ in extra_hosts(service)},
    )


def _disk(name: str, service: Mapping[str, Any], mounted: Sequence[Mount]) -> str | None:
    """What the label names, or the only volume that a service can write to, or else its only such directory."""
    if (named := labels(service).get(DISK_LABEL)) is not None:
        if str(named) not in [one.target for one in mounted if not one.is_read_only]:
            raise UsageError(
                f"service {name!r} has the label {DISK_LABEL}={named}, and mounts nothing there that it can write to.",
                "Name the directory of its container at which it mounts the volume of its data.",
            )
        return str(named)
    for source in (Source.VOLUME, Source.DIRECTORY):
        found = [one.target for one in mounted if one.source is source and not one.is_read_only]
        if source is Source.DIRECTORY:
            found = [one.target for one in mounted if one.target in found and not Path(one.name).is_file()]
        if found:
            return found[0] if len(found) == 1 else None
    return None
