"""Reads what every service of a resolved compose file may have: its image, variables, networks and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from harness.errors import UsageError
from harness.spelling import as_text


def environment(service: Mapping[str, Any]) -> Mapping[str, str]:
    """The variables of a service; the tool turns lists of ``KEY=VALUE`` into mappings."""
    written = service.get("environment") or {}
    if isinstance(written, list):
        written = dict(pair.partition("=")[::2] for pair in written)
    return {name: as_text(value) for name, value in written.items() if value is not None}


def names_of(name: str, service: Mapping[str, Any]) -> Set[str]:
    """The names of a service's container on its networks, the service's own included."""
    networks = service.get("networks") or {}
    connected = [network or {} for network in networks.values()] if isinstance(networks, Mapping) else []
    others = {alias for network in connected for alias in network.get("aliases") or ()}
    given = {str(service[key]) for key in ("container_name", "hostname") if key in service}
    return {name, *others, *given}


def refuse_several(name: str, service: Mapping[str, Any]) -> None:
    """Refuse a service that is started more than once.

    Raises:
        UsageError: it is.
    """
    deploy = service.get("deploy") or {}
    for count in (service.get("scale", 1), deploy.get("replicas", 1)):
        if count not in (1, "1"):
            raise UsageError(
                f"service {name!r} is started {count} times, but each broker has an id of its own.",
                "Write a service for each broker.",
            )


def image_of(name: str, service: Mapping[str, Any]) -> str:
    """The name of a service's image.

    Raises:
        UsageError: it has none.
    """
    if not (image := service.get("image")):
        raise UsageError(
            f"service {name!r} has no image.", "Give what it builds a name: `image:` works beside `build:`."
        )
    return str(image)


def networks_of(name: str, service: Mapping[str, Any]) -> Sequence[str]:
    """The networks of a service.

    Raises:
        UsageError: it has another's, or this machine's.
    """
    if mode := service.get("network_mode"):
        raise UsageError(
            f"service {name!r} has network_mode {mode!r}, so that nothing can be cut off.",
            "Let it have a network of the project.",
        )
    return list(service.get("networks") or ["default"])


def internal_networks(resolved: Mapping[str, Any]) -> Set[str]:
    """The networks of a resolved file from which nothing can be published."""
    return {name for name, network in (resolved.get("networks") or {}).items() if (network or {}).get("internal")}


def version_of(resolved: Mapping[str, Any]) -> str | None:
    """The format version in a resolved file."""
    version = resolved.get("version")
    return None if version is None else str(version)
