"""Reads what follows ``bootstrap:`` in ``--target``: the addresses of a running cluster, and options behind ``#``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.client_properties import PLAINTEXT, Access, ClientProperties
from harness.errors import UsageError
from harness.model import is_kafkas_own
from harness.property_file import read_properties, whole_path
from harness.spelling import closest

ARGUMENT = "HOST:PORT"
"""What follows the colon, in a word."""

MARK = "#"
"""What is in front of each option."""

_CLIENT = "client"
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,#\[\]]+):([0-9]{1,5})")
_PREFIX = re.compile(r"[a-zA-Z0-9._-]{1,40}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Named:
    """A running cluster, as ``--target`` names it.

    Attributes:
        bootstrap: ``host:port,...``.
        keeps_topics: whether its topics stay when the run has ended.
        prefix: with what the names of topics, groups and transactional ids begin, before what is drawn for each run.
        promises: what the user says that the cluster promises, by Kafka's names of settings.
        client: what its clients need besides addresses.
        topics: of the cluster, which take the place of the scenario's first topics, in this order.
    """

    bootstrap: str
    keeps_topics: bool = False
    prefix: str = "seawall-"
    promises: Mapping[str, str] = field(default_factory=dict)
    client: ClientProperties = PLAINTEXT
    topics: tuple[str, ...] = ()

    @property
    def access(self) -> Access:
        """How clients reach it."""
        return Access(self.bootstrap, self.client)

    def of_one_run(self) -> Named:
        """The same, with a prefix that no other run has."""
        return replace(self, prefix=f"{self.prefix}{secrets.token_hex(4)}-")


def named(argument: str) -> Named:
    """What ``HOST:PORT,...#OPTION#OPTION`` names.

    Raises:
        UsageError: an address, an option, or the file of client properties is malformed.
    """
    addresses, *options = argument.split(MARK)
    for address in addresses.split(","):
        if not is_address(address):
            raise UsageError(f"target 'bootstrap:{argument}': {address!r} is not HOST:PORT.")
    cluster = Named(addresses)
    for option in options:
        key, _, value = option.partition("=")
        if key not in _OPTIONS:
            raise UsageError(f"target 'bootstrap:{argument}': {option!r} is no option; {closest(key, _OPTIONS)}")
        cluster = _OPTIONS[key](cluster, value)
    return cluster


def is_address(written: str) -> bool:
    """Whether it is ``HOST:PORT``."""
    found = _ADDRESS.fullmatch(written)
    return found is not None and 0 < int(found[2]) <= _LAST_PORT


def from_anywhere(argument: str) -> str:
    """The same argument, with which every working directory names the same file of client properties."""
    addresses, *options = argument.split(MARK)
    return MARK.join([addresses, *map(_with_whole_path, options)])


def _with_whole_path(option: str) -> str:
    key, _, value = option.partition("=")
    return f"{key}={whole_path(Path(value))}" if key == _CLIENT and value else option


def _keep(cluster: Named, value: str) -> Named:
    if value:
        raise UsageError(f"target option keep-topics={value}: it takes no value.")
    return replace(cluster, keeps_topics=True)


def _prefixed(cluster: Named, value: str) -> Named:
    if not _PREFIX.fullmatch(value) or is_kafkas_own(value):
        raise UsageError(
            f"target option prefix={value}: topics cannot begin with {value!r}.",
            "Write 1 to 40 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and not '__' in front.",
        )
    return replace(cluster, prefix=value)


def _promised(cluster: Named, value: str) -> Named:
    key, equals, promised = value.partition("=")
    if not (key and equals and promised):
        raise UsageError(f"target option promise={value}: write promise=SETTING=VALUE.")
    return replace(cluster, promises={**cluster.promises, key: promised})


def _reached(cluster: Named, value: str) -> Named:
    if not value:
        raise UsageError("target option client: write client=FILE.")
    return replace(cluster, client=read_properties(Path(value)))


def given(cluster: Named, value: str) -> Named:
    """The same cluster, with one more topic that is given to the run.

    Raises:
        UsageError: no topic can have that name, or it is Kafka's own, or it is given already.
    """
    if not _TOPIC.fullmatch(value) or is_kafkas_own(value) or value in cluster.topics:
        raise UsageError(
            f"topic {value!r} cannot be given to a run: it is Kafka's own, given twice, or no name of a topic."
        )
    return replace(cluster, topics=(*cluster.topics, value))


_OPTIONS: dict[str, Callable[[Named, str], Named]] = {
    _CLIENT: _reached,
    "keep-topics": _keep,
    "prefix": _prefixed,
    "promise": _promised,
    "topic": given,
}
