"""Builds the overlay for brokers of another make: what seawall adds to a user's compose file; see :mod:`.beside`.

A broker keeps the listeners that it has. The address that it advertises to clients on this machine becomes Toxiproxy's,
or a relay's, in its command and its variables; the same port of its container is published for the harness, too, past
every proxy. Where the broker mounts a single volume, that is replaced by one of limited size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.targets.compose.beside import Addition, Ports, Surroundings, completed, published, volume_of
from harness.targets.compose.foreign_file import ForeignBroker, ForeignFile
from harness.targets.compose.rewriting import Stack
from harness.targets.compose.services import environment

_COMMANDS = ("entrypoint", "command")


def overlay(file: ForeignFile, stack: Stack, run: Surroundings) -> dict[str, Any]:
    """The additions, as plain data in the form of a compose file.

    Args:
        file: its brokers.
        stack: the same file as plain data.
        run: the parameters.
    """
    services = {
        broker.name: _broker(broker, str(node), stack["services"][broker.name], run)
        for node, broker in enumerate(file.brokers)
    }
    disks = {broker.name: [broker.disk] for broker in file.brokers if broker.disk is not None}
    return completed(file, services, run, disks=list(disks), data=disks)


def shown(added: Mapping[str, Any], file: ForeignFile, ports: Ports) -> dict[str, Any]:
    """The additions as they may be written down: of texts of the user's file, which may have secrets, addresses alone.

    Args:
        added: see :func:`overlay`.
        file: whose brokers they are for.
        ports: what the addresses are.
    """
    services = dict(added["services"])
    for node, broker in enumerate(file.brokers):
        service, address = services[broker.name], _address(str(node), ports)
        commands = {part: f"... {address} ..." for part in _COMMANDS if part in service}
        variables = {
            name: f"... {address} ..." if address in value else value for name, value in service["environment"].items()
        }
        services[broker.name] = {**service, **commands, "environment": variables}
    return {**added, "services": services}


def _address(node: str, ports: Ports) -> str:
    """Where clients on this machine are to connect."""
    return f"127.0.0.1:{ports.advertised[node]}"


def _broker(broker: ForeignBroker, node: str, service: Mapping[str, Any], run: Surroundings) -> dict[str, Any]:
    clock = run.clocks.get(broker.name, Addition())
    written = {part: service[part] for part in _COMMANDS if service.get(part)}
    variables = environment(service)
    address = _address(node, run.ports)
    return {
        "restart": "no",  # seawall alone starts it again
        **_changed(written, broker.advertised, address),
        "environment": {**_changed(variables, broker.advertised, address), **clock.environment},
        "volumes": [*_disk(broker), *clock.volumes],
        "ports": [published(run.ports.harness[node], broker.port)],
    }


def _disk(broker: ForeignBroker) -> Iterator[Mapping[str, Any]]:
    """The volume at its data directory, empty: what an image has there would be copied before the holder keeps it."""
    if broker.disk is not None:
        mounted = {"source": volume_of(broker.name), "target": broker.disk, "volume": {"nocopy": True}}
        yield {"type": "volume", **mounted}


def _changed(written: Mapping[str, Any], address: str, to: str) -> Mapping[str, Any]:
    """Those values in which an address is written, with another in its place."""
    replaced = {name: _replaced(value, address, to) for name, value in written.items()}
    return {name: value for name, value in replaced.items() if value != written[name]}


def _replaced(value: str | Sequence[str], address: str, to: str) -> str | Sequence[str]:
    if not isinstance(value, str):
        return [str(_replaced(str(one), address, to)) for one in value]
    return re.sub(rf"(?<![\w.-]){re.escape(address)}(?!\d)", to, value)
