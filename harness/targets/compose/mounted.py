"""Turns a mounted ``server.properties``, as the image apache/kafka reads it, into variables of the service.

The image starts from ``/mnt/shared/config/server.properties`` and appends the variables, which take precedence. So
adding the file's settings as variables changes nothing. Secrets, and names that a variable cannot express, stay in the
file alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness import documents
from harness.documents import Unfit
from harness.errors import UsageError
from harness.targets.compose.mounts import Mount, Source, mounts
from harness.targets.compose.rewriting import Stack, variables

_NAME = "server.properties"
_READ = PurePosixPath("/mnt/shared/config")
"""Where apache/kafka reads it."""

_TAKES_NO_VARIABLES = tuple(map(PurePosixPath, ("/bitnami/kafka/config", "/opt/bitnami/kafka/config")))
_PLAIN = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*")
_SECRET = re.compile(r"password|secret|jaas|credential")
_PAIR = re.compile(r"(?P<name>[^\s=:]+)\s*[=:\s]\s*(?P<value>.*)", re.DOTALL)


def with_mounted_properties(stack: Stack) -> Stack:
    """The stack with the mounted properties added to the variables of their services.

    Raises:
        UsageError: such a file cannot be read; or the image would ignore variables beside it.
    """
    mounted = mounts(stack)
    services = {name: _told(name, service, mounted[name]) for name, service in (stack.get("services") or {}).items()}
    return {**stack, "services": services}


def _told(name: str, service: Mapping[str, Any], mounted: list[Mount]) -> Mapping[str, Any]:
    for place in _TAKES_NO_VARIABLES:
        if _mounted_at(place, mounted) is not None:
            raise UsageError(
                f"service {name!r} mounts {_NAME} at {place}, and its image reads no variables then, so that nothing "
                "can be added.",
                "Write its settings as variables, KAFKA_CFG_...",
            )
    path = _mounted_at(_READ, mounted)
    if path is None:
        return service
    written = {f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in _properties(name, path)}
    return {**service, "environment": {**written, **variables(service)}}


def _mounted_at(place: PurePosixPath, mounted: list[Mount]) -> Path | None:
    """The file of this machine that a service has at ``place``; None: it has none."""
    for mount in mounted:
        target, source = PurePosixPath(mount.target), Path(mount.name)
        if mount.source is Source.DIRECTORY and target == place / _NAME:
            return source
        if mount.source is Source.DIRECTORY and target == place and (source / _NAME).exists():
            return source / _NAME
    return None


def _properties(service: str, path: Path) -> Iterator[tuple[str, str]]:
    """The settings of a file, as written: the image reads variables with the same escapes."""
    try:
        text = documents.text(path)
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"service {service!r} mounts {path}, which cannot be read: {reason}.") from None
    for line in re.sub(r"\\\r?\n\s*", "", text).splitlines():
        pair = _PAIR.fullmatch(line.strip())
        if pair and not line.lstrip().startswith(("#", "!")) and _is_told(pair["name"]):
            yield pair["name"], pair["value"].strip()


def _is_told(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and _SECRET.search(name) is None
