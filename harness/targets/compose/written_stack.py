"""Reads what ``--target compose:FILE`` names, before it is known what its brokers are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.targets.compose import compose_tool
from harness.targets.compose.mounted import with_mounted_properties
from harness.targets.compose.rewriting import Stack, without_addresses

PATTERN_MARK = "#"
"""Between the path of the file and the pattern of its services."""


class WrittenStack(NamedTuple):
    """A compose file.

    Attributes:
        stack: the file as plain data; see :mod:`harness.targets.compose.rewriting`.
        path: of the file.
        pattern: of the names of the services that are brokers; None: of all that look like one.
    """

    stack: Stack
    path: Path
    pattern: str | None


def read(argument: str) -> WrittenStack:
    """The file with the path before the ``#``, and the pattern behind it.

    Raises:
        UsageError: the file is missing, or Compose refuses it.
        EnvironmentFault: there is no Compose.
    """
    path, _, pattern = argument.partition(PATTERN_MARK)
    place = Path(path).expanduser()
    return WrittenStack(
        without_addresses(with_mounted_properties(compose_tool.resolved(place))), place, pattern or None
    )
