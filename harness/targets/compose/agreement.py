"""What a compose file sets of Kafka's settings, about which its services have to agree.

The settings of a run are given to every broker and controller, and promises are made from them. Services that differ
would silently be made alike, and that they differ may be just what was to be tested: they are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from harness.errors import UsageError
from harness.targets.compose.compose_file import ComposeFile


def agreed(file: ComposeFile, names: Iterable[str]) -> dict[str, str]:
    """Those of the settings called ``names`` that the file sets.

    What brokers and controllers set has to be the same, and what one broker sets, every broker has to set.

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
                f"Let them agree, or say what it is to be: --set settings.{name}=VALUE.",
            )
        if values:
            found[name] = values.pop()
    return found


def _told(file: ComposeFile, name: str) -> str:
    services: dict[str, list[str]] = defaultdict(list)
    for one in file.kafkas:
        services[one.properties.get(name, "not set")].append(one.name)
    return ", ".join(f"{value} ({', '.join(where)})" for value, where in services.items())
