"""Reads the Kafka settings of a compose file, and refuses a file whose services differ in one of them.

A run gives all brokers and controllers the same settings, and derives its promises from them. It would silently remove
a difference between services that may be what the user wants to test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from harness.errors import UsageError
from harness.targets.compose.compose_file import ComposeFile


def agreed(file: ComposeFile, names: Iterable[str]) -> dict[str, str]:
    """Those of the settings called ``names`` that the file sets.

    Brokers and controllers have to set the same value, and what one broker sets, every broker has to set.

    Raises:
        UsageError: services differ in one of them.
    """
    found = {}
    for name in sorted(names):
        brokers = {one.properties.get(name) for one in file.brokers}
        values = {one.properties[name] for one in file.kafkas if name in one.properties}
        if len(brokers) > 1 or len(values) > 1:
            raise UsageError(
                f"{file.path}: services differ in {name}: {_told(file, name)}; a run gives all of them the same.",
                f"Make them agree, or set it for all: --set settings.{name}=VALUE.",
            )
        if values:
            found[name] = values.pop()
    return found


def _told(file: ComposeFile, name: str) -> str:
    services: dict[str, list[str]] = defaultdict(list)
    for one in file.kafkas:
        services[one.properties.get(name, "not set")].append(one.name)
    return ", ".join(f"{value} ({', '.join(where)})" for value, where in services.items())
