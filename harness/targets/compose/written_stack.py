"""Reads what ``--target compose:FILE`` names, before it is known what its brokers are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.client_properties import PLAINTEXT, ClientProperties
from harness.errors import UsageError
from harness.property_file import read_properties
from harness.targets.compose import compose_tool
from harness.targets.compose.mounted import with_mounted_properties
from harness.targets.compose.rewriting import Stack, without_addresses

MARK = "#"
"""In front of the pattern of a file's services, and of an option."""

_CLIENT = "client="


class WrittenStack(NamedTuple):
    """A compose file.

    Attributes:
        stack: the file as plain data; see :mod:`harness.targets.compose.rewriting`.
        path: of the file.
        pattern: of the names of the services that are brokers; None: of all that look like one.
        client: what clients need to be let in; none, for brokers that take any.
    """

    stack: Stack
    path: Path
    pattern: str | None
    client: ClientProperties = PLAINTEXT


def read(argument: str) -> WrittenStack:
    """The file with the path before the first ``#``, and behind it a pattern, ``client=FILE``, or both.

    Raises:
        UsageError: the file is missing, or Compose refuses it; so is that of client properties, or it is malformed.
        EnvironmentFault: there is no Compose.
    """
    path, *words = argument.split(MARK)
    place = Path(path).expanduser()
    files = [word.removeprefix(_CLIENT) for word in words if word.startswith(_CLIENT)]
    patterns = [word for word in words if word and not word.startswith(_CLIENT)]
    if len(files) > 1 or len(patterns) > 1:
        raise UsageError(f"target 'compose:{argument}': write FILE, and once each #PATTERN and #{_CLIENT}FILE.")
    client = read_properties(Path(files[0])) if files else PLAINTEXT
    stack = without_addresses(with_mounted_properties(compose_tool.resolved(place)))
    return WrittenStack(stack, place, next(iter(patterns), None), client)
