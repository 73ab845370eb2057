"""Lists for each Kafka release the jars it needs on a current Java, and its protocol generation.

The rows of :data:`FAMILIES` begin where something changes; a release belongs to the newest row that is not newer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from harness.errors import UsageError

_NUMBERS = re.compile(r"\d+(\.\d+){1,3}")


class Metadata(StrEnum):
    """Where the cluster's state is kept."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar in a Maven repository."""

    group: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Family:
    """Releases with the same needs.

    Attributes:
        since: the first of them.
        generation: their protocol generation, see :data:`harness.replication.knobs.GENERATIONS`.
        knobs: where these releases differ from that generation.
        scala: the Scala version of the build.
        metadata: where the cluster's state is kept; KRaft where both are possible.
        magic: the message format version that brokers write: 1, or 2 with record batches.
        jars: jars that these releases lack, and replacements for those that do not run.
        binding: the slf4j binding, which distributions contain and Kafka's jar does not name.
        log4j: the major version of log4j.
    """

    since: str
    generation: str
    scala: str
    metadata: Metadata
    magic: int = 2
    knobs: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[Artifact, ...] = ()
    binding: Artifact | None = None
    log4j: int = 1


@dataclass(frozen=True, slots=True)
class Release:
    """One release.

    Attributes:
        version: as Kafka spells it, ``"0.10.2.2"``.
        family: what it needs.
    """

    version: str
    family: Family

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version, to be compared."""
        return numbers(self.version)

    @property
    def generation(self) -> str:
        """The name of its protocol generation."""
        return self.family.generation

    @property
    def metadata(self) -> Metadata:
        """Where the cluster's state is kept."""
        return self.family.metadata

    @property
    def magic(self) -> int:
        """The message format version that brokers write."""
        return self.family.magic

    @property
    def artifact(self) -> Artifact:
        """Kafka itself, whose dependencies are everything else."""
        return Artifact("org.apache.kafka", f"kafka_{self.family.scala}", self.version)


_JAXB = Artifact("javax.xml.bind", "jaxb-api", "2.3.1")
"""Kafka 0.10.2 encodes its cluster id with it; Java had it until 10."""

_LOG4J = Artifact("org.slf4j", "slf4j-log4j12", "1.7.25")
_RELOAD4J = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")
_LOG4J_2 = Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3")
"""Bindings for slf4j: releases from 1.0 on log nothing without one, and some do not start."""

_ZOOKEEPER = Artifact("org.apache.zookeeper", "zookeeper", "3.4.10")
_ZOOKEEPER_3_5 = Artifact("org.apache.zookeeper", "zookeeper", "3.5.9")
"""From 3.4.13 to 3.5.7 its client cannot resolve an address on Java 14 and later (ZOOKEEPER-3779)."""

_ZK, _KRAFT = Metadata.ZOOKEEPER, Metadata.KRAFT
_OFFLINE_DIR = {"disk_full": "offline_dir"}
_LAST_STAYS = {"last_isr_member": "stays"}
_DIVERGING = {"diverging_fetch_is_progress": "true"}
_STALE = {"stale_truncation_applied": "true"}
_DIRTY = {"hw_from_diverging": "true"}
_FORGETFUL = {"placing_forgets_eligible": "true"}
"""Bugs that a later release has mended; see :class:`harness.replication.knobs.Knobs`."""

FAMILIES: tuple[Family, ...] = (
    Family("0.10.2.0", "0.10", "2.12", _ZK, magic=1, jars=(_JAXB,)),
    Family("0.11.0.0", "0.11", "2.12", _ZK, jars=(_JAXB,)),
    Family("1.0.0", "0.11", "2.12", _ZK, knobs=_OFFLINE_DIR, binding=_LOG4J),
    Family("1.1.0", "0.11", "2.12", _ZK, knobs={**_OFFLINE_DIR, **_LAST_STAYS}, binding=_LOG4J),
    Family("2.0.0", "2.0.0", "2.12", _ZK, jars=(_ZOOKEEPER,), binding=_LOG4J),
    Family("2.0.1", "2.0.1", "2.12", _ZK, jars=(_ZOOKEEPER,), binding=_LOG4J),
    Family("2.1.0", "2.1", "2.12", _ZK, jars=(_ZOOKEEPER,), binding=_LOG4J),
    Family("2.4.0", "2.1", "2.12", _ZK, jars=(_ZOOKEEPER_3_5,), binding=_LOG4J),
    Family("2.8.0", "2.8", "2.13", _ZK, knobs={**_DIVERGING, **_STALE, **_DIRTY}, binding=_RELOAD4J),
    Family("2.8.1", "2.8", "2.13", _ZK, knobs=_DIRTY, binding=_RELOAD4J),
    Family("3.3.0", "2.8", "2.13", _KRAFT, knobs=_DIRTY, binding=_RELOAD4J),
    Family("3.5.0", "2.8", "2.13", _KRAFT, binding=_RELOAD4J),
    Family("3.7.0", "3.7", "2.13", _KRAFT, binding=_RELOAD4J),
    Family("4.0.0", "3.7", "2.13", _KRAFT, binding=_LOG4J_2, log4j=2),
    Family("4.1.0", "4.1", "2.13", _KRAFT, knobs=_FORGETFUL, binding=_LOG4J_2, log4j=2),
    Family("4.3.0", "4.1", "2.13", _KRAFT, binding=_LOG4J_2, log4j=2),
)
"""Oldest first."""

TRIED = (
    "0.10.2.2",
    "0.11.0.3",
    "1.1.1",
    "2.0.0",
    "2.0.1",
    "2.1.1",
    "2.8.0",
    "2.8.1",
    "3.9.1",
    "4.1.0",
    "4.2.1",
    "4.3.0",
    "4.4.0",
)
"""Releases that the tests start, load and kill. Others of their families are likely to run, too."""


@cache
def numbers(version: str) -> tuple[int, ...]:
    """``"0.10.2.2"`` as ``(0, 10, 2, 2)``."""
    return tuple(map(int, version.split(".")))


def release(version: str) -> Release:
    """The release called ``version``.

    Raises:
        UsageError: that is no version, or one older than any that is known.
    """
    if not _NUMBERS.fullmatch(version):
        raise UsageError(f"Kafka release {version!r} is no version.", "Versions are written 3.9.1 or 0.10.2.2.")
    if (meant := [one for one in TRIED if one.startswith(f"{version}.")]) and version not in TRIED:
        raise UsageError(f"Kafka {version} is no release, but a family of them; did you mean {meant[-1]}?")
    older = [family for family in FAMILIES if numbers(family.since) <= numbers(version)]
    if not older:
        raise UsageError(
            f"Kafka release {version} is older than any that can be run.", f"The first is {FAMILIES[0].since}."
        )
    return Release(version, older[-1])
