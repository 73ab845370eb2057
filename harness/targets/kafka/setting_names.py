"""Decides which settings a scenario may write for real brokers: Kafka's, except those that the harness sets.

``settings.csv``, extracted from the releases, has a row for every setting, undocumented ones included, with the first
release that knows it and the first that no longer does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import NamedTuple

from harness.errors import UsageError
from harness.targets.kafka.releases import Metadata, Release, numbers

LOG_DIRS_COUNT = "log.dirs.count"
SESSION = "broker.session.timeout.ms"
HEARTBEAT = "broker.heartbeat.interval.ms"

_TRANSLATED = frozenset({LOG_DIRS_COUNT, SESSION, HEARTBEAT})
"""The name that scenarios use for every release."""

_DECIDED: Mapping[str, tuple[str, ...]] = {
    "seawall decides where nodes are, and their ids": (
        *("advertised.", "broker.id", "broker.id.", "host.name", "node.id", "port", "process.roles"),
        *("control.plane.listener.name", "controller.listener.names", "early.start.listeners"),
        *("inter.broker.listener.name", "listener.", "listeners"),
        *("controller.quorum.bootstrap.servers", "controller.quorum.voters", "zookeeper.connect"),
    ),
    f"seawall decides where logs and metadata are; {LOG_DIRS_COUNT} is the number of log directories": (
        *("log.dir", "log.dirs", "metadata.", "internal.metadata."),
    ),
    "seawall and its brokers speak in plain text, and to everybody": (
        *("authorizer.", "delegation.token.", "password.encoder.", "principal.builder.class", "sasl.", "security."),
        *("ssl.", "zookeeper.clientCnxnSocket", "zookeeper.set.acl", "zookeeper.ssl."),
    ),
}
"""Why a scenario may not set a setting of this name, or with this prefix if it ends with a dot."""


class _Known(NamedTuple):
    since: str
    until: str


def may_be_written(wanted: Release) -> frozenset[str]:
    """The names of all settings that a scenario may write for a release."""
    return _TRANSLATED | {name for name in _table() if is_known(name, wanted) and not _why_decided(name)}


def is_known(name: str, wanted: Release) -> bool:
    """Whether brokers of a release know a setting of that name."""
    known = _table().get(name)
    if known is None or _is_of_zookeeper(name, wanted):
        return False
    return numbers(known.since) <= wanted.numbers and not (known.until and numbers(known.until) <= wanted.numbers)


def refuse_foreign(name: str, wanted: Release) -> None:
    """Refuse a setting that brokers of a release do not know, or that a scenario may not set.

    Raises:
        UsageError: it is refused.
    """
    if name in _TRANSLATED:
        return
    known = _table().get(name)
    if known is None:
        near = " or ".join(map(repr, get_close_matches(name, sorted(may_be_written(wanted)), n=3, cutoff=0.5)))
        raise UsageError(f"broker setting {name!r} is not known{f'; did you mean {near}?' if near else '.'}")
    if _is_of_zookeeper(name, wanted):
        raise UsageError(f"broker setting {name!r} means nothing to Kafka {wanted.version}, which has no ZooKeeper.")
    if not is_known(name, wanted):
        is_to_come = wanted.numbers < numbers(known.since)
        raise UsageError(
            f"broker setting {name!r} is not known to Kafka {wanted.version}.",
            f"It came with {known.since}." if is_to_come else f"It is gone since {known.until}.",
        )
    if why := _why_decided(name):
        raise UsageError(f"broker setting {name!r} is not for a scenario: {why}.")


def _is_of_zookeeper(name: str, wanted: Release) -> bool:
    """Whether a setting is about ZooKeeper, which the release runs without."""
    return wanted.metadata is Metadata.KRAFT and name.startswith("zookeeper.")


@cache
def _why_decided(name: str) -> str:
    """Why the harness sets a setting; empty: it does not."""
    for why, names in _DECIDED.items():
        if any(name.startswith(one) if one.endswith(".") else name == one for one in names):
            return why
    return ""


@cache
def _table() -> Mapping[str, _Known]:
    text = resources.files("harness.targets.kafka").joinpath("settings.csv").read_text()
    return {row["name"]: _Known(row["since"], row["until"]) for row in csv.DictReader(text.splitlines())}
