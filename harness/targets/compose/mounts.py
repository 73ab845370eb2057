"""Through which mounts the services of a compose file could write to what is not of the run, and what replaces them.

A run writes to nothing but what it has made itself. A volume of the file is replaced by an empty one of the project,
for all the services that share it. A directory of this machine, or a volume that the file calls external, is mounted
read-only; where Kafka or ZooKeeper keeps its data, it is replaced by an empty volume, too.
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
    """What is mounted."""

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
    """What each service of a resolved file has mounted; not what only its container has, as it is new in each run."""
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
    """What a service has mounted instead, as Compose writes it, each with the volume of the overlay that this takes.

    Args:
        service: its name.
        mounted: what the file mounts.
        data: the directories of the container that its data are in, or may be in.
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
    """Whether one of two directories is in the other, or is it."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)
