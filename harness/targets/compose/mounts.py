"""Replaces the mounts through which services of a compose file could write to the user's data.

A run writes only to what it has made itself. It replaces a volume of the file by an empty one of the project, for all
services that share it. It mounts a directory of this machine, or an external volume, read-only; where Kafka or
ZooKeeper keeps its data, it replaces that by an empty volume, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import PurePosixPath
from typing import Any

OWN_VOLUME = "seawall-{of}"
"""The name in the overlay of the volume that replaces one of the file's, or a directory of a service's."""


class Source(Enum):
    """The kind of thing that is mounted."""

    DIRECTORY = auto()
    VOLUME = auto()
    EXTERNAL_VOLUME = auto()


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount of a service's.

    Attributes:
        source: what is mounted.
        name: of the volume in the file, or the path of the directory.
        target: in the container.
        is_read_only: whether the service cannot write to it.
    """

    source: Source
    name: str
    target: str
    is_read_only: bool


def mounts(resolved: Mapping[str, Any]) -> dict[str, list[Mount]]:
    """The mounts of each service of a resolved file, without anonymous volumes, which are new in each run."""
    volumes: Mapping[str, Any] = resolved.get("volumes") or {}
    external = {name for name, volume in volumes.items() if (volume or {}).get("external")}
    services: Mapping[str, Any] = resolved.get("services") or {}
    return {name: list(_mounts(service, external)) for name, service in services.items()}


def _mounts(service: Mapping[str, Any], external: set[str]) -> Iterator[Mount]:
    for written in service.get("volumes") or ():
        kind, name, target, is_read_only = _parts(written)
        if kind == "bind":
            yield Mount(Source.DIRECTORY, name, target, is_read_only)
        elif kind == "volume" and name:
            source = Source.EXTERNAL_VOLUME if name in external else Source.VOLUME
            yield Mount(source, name, target, is_read_only)


def _parts(written: str | Mapping[str, Any]) -> tuple[str, str, str, bool]:
    """Kind, source, target, whether it is read-only: Compose v2 resolves to mappings, v1 to ``SOURCE:TARGET:MODE``."""
    if not isinstance(written, str):
        return written["type"], str(written.get("source") or ""), written["target"], bool(written.get("read_only"))
    *rest, last = written.split(":")
    *source, target = rest if rest and not last.startswith("/") else [*rest, last]
    name = ":".join(source)
    return ("bind" if name.startswith(("/", ".", "~")) else "volume"), name, target, "ro" in last.split(",")


def replaced(service: str, mounted: Sequence[Mount], data: Sequence[str]) -> Iterator[tuple[str | dict[str, Any], str]]:
    """The replacements for a service's mounts, as Compose writes them, each with the overlay's volume for it.

    Args:
        service: its name.
        mounted: its mounts in the file.
        data: the possible data directories in the container.
    """
    for number, mount in enumerate(mounted):
        mode = ":ro" if mount.is_read_only else ""
        if mount.source is Source.VOLUME:
            volume = OWN_VOLUME.format(of=f"of-file-{mount.name}")
            yield f"{volume}:{mount.target}{mode}", volume
        elif not mount.is_read_only and any(_overlap(mount.target, place) for place in data):
            volume = OWN_VOLUME.format(of=f"for-{service}-{number}")
            yield f"{volume}:{mount.target}", volume
        elif not mount.is_read_only:
            kind = "bind" if mount.source is Source.DIRECTORY else "volume"
            yield {"type": kind, "source": mount.name, "target": mount.target, "read_only": True}, ""


def _overlap(one: str, other: str) -> bool:
    """Whether two directories are equal, or one contains the other."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)
