"""Refuses compose files with which the harness would report faults that are not in effect.

It cuts links between the addresses of containers. Brokers that advertise another way to their peers, over a published
port or through a proxy, would still exchange data over a link that the harness reports as cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.errors import UsageError
from harness.targets.compose.compose_file import ComposeFile, KafkaService
from harness.targets.compose.stack_file import Named, NodeService, StackFile, reached
from harness.targets.kafka.releases import Metadata, Release

_VOTER = re.compile(r"(?:(?P<kafka_id>\d+)@)?(?P<host>\[[^\]]*\]|[^:@]+):\d+(?::[\w-]+)?")
_ANYBODY = "User:ANONYMOUS"

_TAKEN = {Metadata.ZOOKEEPER: "releases before 3.3", Metadata.KRAFT: "releases from 3.3 on"}
_SPELLED = {Metadata.ZOOKEEPER: "ZooKeeper", Metadata.KRAFT: "KRaft"}


def refuse(file: ComposeFile) -> None:
    """Refuse a file whose nodes cannot be cut off or observed.

    Raises:
        UsageError: the file is refused.
    """
    try:
        hosts, networks = other_hosts(file.kafkas, [*file.kafkas, *file.zookeepers]), unreachable(file, file.kafkas)
        for problem in (*_detours(file), *hosts, *_strict(file.kafkas), *networks):
            raise problem
    except UsageError as error:
        raise UsageError(f"{file.path}: {error.sentence}", error.remedy) from None


def refuse_metadata(file: ComposeFile, release: Release) -> None:
    """Refuse a file with ZooKeeper if the release's family uses KRaft here, or the reverse.

    Raises:
        UsageError: the file is refused.
    """
    written, taken = Metadata.ZOOKEEPER if file.zookeepers else Metadata.KRAFT, release.metadata
    if written is not taken:
        raise UsageError(
            f"{file.path}: its Kafka {release.version} runs with {_SPELLED[written]}, but {_TAKEN[taken]} are known "
            f"with {_SPELLED[taken]} only.",
            f"Let it run with {_SPELLED[taken]}, or take one of the {_TAKEN[written]}.",
        )


def _detours(file: ComposeFile) -> Iterator[UsageError]:
    """Advertised addresses between nodes that are not the container's own."""
    if len(file.kafkas) == 1:
        return
    for broker in file.brokers:
        for endpoint in broker.advertised:
            if endpoint.name in _among_nodes(broker) and endpoint.host not in broker.names:
                yield _detour(broker, "its peers", endpoint.host)
    controllers = [one for one in file.kafkas if one.is_controller]
    known = {name for one in controllers for name in one.names}
    for one in file.kafkas:
        for host in _hosts_of_controllers(one):
            if host not in known:
                yield UsageError(
                    f"service {one.name!r} finds a controller at {host!r}, which is no name of a controller's "
                    "container, so that links to it could not be cut.",
                    "Name the controllers' services in controller.quorum.voters.",
                )


def _detour(broker: KafkaService, readers: str, host: str) -> UsageError:
    return UsageError(
        f"service {broker.name!r} is advertised to {readers} as {host!r}, which is no name of its container, so that "
        "links to it could not be cut.",
        f"Advertise {broker.name!r} on the listener between brokers; clients may have another.",
    )


def _among_nodes(broker: KafkaService) -> Sequence[str]:
    """The listeners between brokers, by Kafka's rules; the controller may have its own."""
    named = broker.properties.get("inter.broker.listener.name")
    among_brokers = named or broker.properties.get("security.inter.broker.protocol", "PLAINTEXT")
    return among_brokers, broker.properties.get("control.plane.listener.name", among_brokers)


def _hosts_of_controllers(one: KafkaService) -> Iterator[str]:
    for setting in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        for written in one.properties.get(setting, "").split(","):
            match = _VOTER.fullmatch(written.strip())
            if match is not None and match["kafka_id"] != str(one.kafka_id):
                yield match["host"]


def other_hosts(services: Iterable[NodeService], nodes: Iterable[Named]) -> Iterator[UsageError]:
    """Entries of hosts files that give a node's name another address than the network does."""
    names = {name for one in nodes for name in one.names}
    for one in services:
        for host in sorted(names & one.extra_hosts):
            yield UsageError(
                f"service {one.name!r} has {host!r}, a name of a node, in extra_hosts, so that links to it could not "
                "be cut.",
                f"Leave {host!r} out: the network has it.",
            )


def _strict(kafkas: Iterable[KafkaService]) -> Iterator[UsageError]:
    """Services whose authorizer denies the harness, which connects as an anonymous user."""
    for one in kafkas:
        lenient = one.properties.get("allow.everyone.if.no.acl.found", "false").lower() == "true"
        known = _ANYBODY in one.properties.get("super.users", "").split(";")
        if one.properties.get("authorizer.class.name") and not lenient and not known:
            yield UsageError(
                f"service {one.name!r} has an authorizer, which does not let {_ANYBODY} create topics.",
                f"Add {_ANYBODY} to super.users: seawall connects as that user.",
            )


def unreachable(file: StackFile, services: Iterable[NodeService]) -> Iterator[UsageError]:
    """Services of which no port can be published."""
    for one in services:
        if not reached(one.networks, file):
            yield UsageError(
                f"service {one.name!r} is on internal networks alone, from which no port can be published.",
                "Give it one that is not internal.",
            )
