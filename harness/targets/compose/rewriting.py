"""Merges the overlay into the user's resolved compose file, and removes what would clash with another run.

Two runs of one file, or a run and the user's own stack, would compete for published ports, container names, named
networks, address ranges and data. A run has its own of each. This needs no ``!reset`` (Compose 2.24), so every Compose
works.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.errors import UsageError

Stack = Mapping[str, Any]
"""A compose file as plain data, resolved: see :func:`harness.targets.compose.compose_tool.resolved`."""

_ADDRESSES = ("ipv4_address", "ipv6_address", "link_local_ips", "mac_address")
_OF_NETWORKS = ("name", "ipam", "external", "attachable")
_BRIDGE = "com.docker.network.bridge.name"
_OF_SERVICES = ("ports", "container_name", "profiles", "scale", "networks", "mac_address")
_SHARED = ("host", "container:")
_REST = ("secrets", "configs")


def without_addresses(stack: Stack) -> Stack:
    """The file with the services' fixed addresses replaced by their names.

    That includes variables, commands and health checks.
    """
    fixed = {address: name for name, service in _services(stack).items() for address in _fixed(service)}
    if not fixed:
        return stack
    services = {name: _freed(_renamed(service, fixed), fixed) for name, service in _services(stack).items()}
    return {**stack, "services": services}


def kept(stack: Stack, wanted: Iterable[str]) -> list[str]:
    """The services to run: the wanted ones and their dependencies, in the order of the file.

    Raises:
        UsageError: one of them shares this machine's network, or that of a container outside the run.
    """
    services, found, waiting = _services(stack), set[str](), list(wanted)
    while waiting:
        if (name := waiting.pop()) in services and name not in found:
            found.add(name)
            waiting += _needed_by(services[name])
    for name in sorted(found):
        if (mode := str(services[name].get("network_mode", ""))).startswith(_SHARED):
            raise UsageError(
                f"service {name!r} has network_mode {mode!r}, so that its ports would not be the run's alone.",
                "Let it have a network of the project.",
            )
    return [name for name in services if name in found]


def rewritten(stack: Stack, overlay: Stack, names: Sequence[str], project: str) -> dict[str, Any]:
    """The file for Compose.

    Args:
        stack: the user's file; not changed.
        overlay: see :func:`harness.targets.compose.overlay.overlay`.
        names: of its services to run.
        project: its name, the prefix of the container names.
    """
    written, added = _services(stack), overlay["services"]
    wanted = [*names, *(name for name in added if name not in written)]
    services = {name: _merged(written.get(name, {}), added.get(name, {})) for name in wanted}
    ours = next(iter(added.values()))["labels"]
    for name, service in services.items():
        service |= {"container_name": container_name(project, name), "labels": {**service["labels"], **ours}}
    networks = _used({network for service in services.values() for network in service.get("networks", ())}, stack)
    volumes = {**(stack.get("volumes") or {}), **overlay["volumes"]}
    mounted = {source for service in services.values() for source in _sources(service)}
    made = {
        "services": services,
        "networks": networks,
        "volumes": {name: volume for name, volume in volumes.items() if name in mounted},
        **{part: stack[part] for part in _REST if stack.get(part)},
    }
    return made if overlay.get("version") is None else {"version": overlay["version"], **made}


def container_name(project: str, service: str) -> str:
    """The name of a service's container."""
    return f"{project}-{service}"


def target_of(written: str | Mapping[str, Any]) -> str:
    """Where a volume, as Compose writes it, is in its container."""
    if not isinstance(written, str):
        return str(written["target"])
    parts = written.split(":")
    return parts[1] if len(parts) > 1 and parts[1].startswith("/") else parts[0]


# ---------------------------------------------------------------------------------------------------------- addresses


def _services(stack: Stack) -> Mapping[str, Mapping[str, Any]]:
    return stack.get("services") or {}


def _fixed(service: Mapping[str, Any]) -> Iterator[str]:
    for network in _networks(service).values():
        yield from (str(network[key]) for key in _ADDRESSES[:2] if key in network)


def _renamed(written: Any, fixed: Mapping[str, str]) -> Any:
    """The same data with the addresses in its texts replaced by the names."""
    if isinstance(written, str):
        for address, name in fixed.items():
            written = re.sub(rf"(?<![\d.]){re.escape(address)}(?![\d.]*\d)", name, written)
        return written
    if isinstance(written, Mapping):
        return {key: _renamed(value, fixed) for key, value in written.items()}
    return [_renamed(one, fixed) for one in written] if isinstance(written, list) else written


def _freed(service: Mapping[str, Any], fixed: Mapping[str, str]) -> dict[str, Any]:
    networks = {
        name: {key: value for key, value in network.items() if key not in _ADDRESSES}
        for name, network in _networks(service).items()
    }
    hosts = [pair for pair in extra_hosts(service) if pair[1] not in fixed.values()]
    freed = {key: value for key, value in service.items() if key not in ("networks", "extra_hosts")}
    freed |= {"networks": networks} if networks else {}
    return freed | ({"extra_hosts": [f"{name}:{address}" for name, address in hosts]} if hosts else {})


def extra_hosts(service: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The additional names in its hosts file, with their addresses; the tools write them in several ways."""
    written = service.get("extra_hosts") or ()
    if isinstance(written, Mapping):
        return [(name, str(address)) for name, address in written.items()]
    pairs = [re.split("[:=]", str(pair), maxsplit=1) for pair in written]
    return [(name.strip(), address.strip()) for name, address in pairs]


# ---------------------------------------------------------------------------------------------------------- services


def _needed_by(service: Mapping[str, Any]) -> Iterator[str]:
    yield from service.get("depends_on") or ()
    for link in (*(service.get("links") or ()), *(service.get("volumes_from") or ())):
        yield str(link).partition(":")[0]
    mode = str(service.get("network_mode", ""))
    if mode.startswith("service:"):
        yield mode.removeprefix("service:")


def _networks(service: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The networks of a service with their options; empty where the file has none."""
    written = service.get("networks") or {}
    named = dict.fromkeys(written) if isinstance(written, list) else dict(written)
    return {name: network or {} for name, network in named.items()}


def _merged(service: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A service with the overlay's additions: variables and volumes take precedence, ports replace the file's."""
    made = {key: value for key, value in service.items() if key not in _OF_SERVICES}
    made |= {key: value for key, value in added.items() if key not in ("environment", "volumes", "labels", "networks")}
    made["environment"] = {**variables(service), **added.get("environment", {})}
    made["labels"] = labels(service)
    taken = {target_of(one) for one in added.get("volumes", ())}
    own = [one for one in service.get("volumes") or () if target_of(one) not in taken]
    made["volumes"] = [*own, *added.get("volumes", ())]
    if isinstance(deploy := service.get("deploy"), Mapping) and "restart" in added:
        made["deploy"] = {key: value for key, value in deploy.items() if key != "restart_policy"}
    if "network_mode" not in made:
        made["networks"] = _joined(service, added)
    return made


def _joined(service: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """The networks, with the file's container name and host name as aliases."""
    called = {str(service[key]) for key in ("container_name", "hostname") if key in service}
    joined = {**_networks(service), **_networks(added)} or {"default": {}}
    return {
        name: {**network, "aliases": sorted({*network.get("aliases", ()), *called})} if called else dict(network)
        for name, network in joined.items()
    }


def variables(service: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a service's environment."""
    return _mapping(service.get("environment"))


def labels(service: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of a service."""
    return _mapping(service.get("labels"))


def _mapping(written: Any) -> dict[str, Any]:
    """Variables or labels; the tool turns a list of ``KEY=VALUE`` into a mapping."""
    if isinstance(written, list):
        return dict(pair.partition("=")[::2] for pair in written)
    return dict(written or {})


def _used(names: Iterable[str], stack: Stack) -> dict[str, Any]:
    """The run's own networks, with the file's options except names and addresses."""
    written = stack.get("networks") or {}
    return {name: _own_network(written.get(name) or {}) for name in sorted(names)}


def _own_network(written: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in written.items() if key not in _OF_NETWORKS}
    if _BRIDGE in (options := made.get("driver_opts") or {}):
        made["driver_opts"] = {key: value for key, value in options.items() if key != _BRIDGE}
    return made


def _sources(service: Mapping[str, Any]) -> Iterator[str]:
    for one in service.get("volumes", ()):
        yield one.partition(":")[0] if isinstance(one, str) else str(one.get("source", ""))
