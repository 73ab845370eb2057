"""Reads client properties from a file of ``key=value`` lines, as librdkafka's own tools have them (kcat)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.client_properties import FILES, KNOWN, MECHANISM, SHOWN, ClientProperties, Secret
from harness.documents import Unfit, opened, text
from harness.errors import UsageError
from harness.spelling import closest

_NAME = re.compile(r"[a-z0-9]+(\.[a-z0-9-]+)+|acks|retries")
"""A line that does not begin so may be part of a secret, and is not repeated."""

_ELSEWHERE = re.compile(r"\$\{(env|file):([^}]+)\}")
_ALIASES = {"sasl.mechanisms": MECHANISM}

_SEAWALLS_OWN = frozenset(
    {
        *("acks", "bootstrap.servers", "client.id", "compression.type", "delivery.timeout.ms", "enable.auto.commit"),
        *("auto.offset.reset", "enable.idempotence", "group.id", "group.instance.id", "group.protocol", "linger.ms"),
        *("heartbeat.interval.ms", "isolation.level", "max.in.flight.requests.per.connection", "max.poll.interval.ms"),
        *("message.timeout.ms", "metadata.broker.list", "partition.assignment.strategy", "request.required.acks"),
        *("request.timeout.ms", "retries", "session.timeout.ms", "transaction.timeout.ms", "transactional.id"),
    }
)
"""What decides what clients do, and so what is judged."""

_INSTEAD = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "ssl.truststore.location": "ssl.ca.location, with certificates as PEM",
    "ssl.truststore.password": "ssl.ca.location, with certificates as PEM",
    "ssl.truststore.type": "ssl.ca.location, with certificates as PEM",
    "ssl.keystore.type": "ssl.keystore.location, of a PKCS#12 file",
}
"""Properties of Java clients, and what librdkafka has instead."""


def read_properties(path: Path) -> ClientProperties:
    """The properties in a file; the paths in it are relative to its directory.

    Raises:
        UsageError: it cannot be read, or what is in it is malformed, unknown, refused, or contradictory. No value that
            may be secret is in the message.
    """
    path = whole_path(path)
    try:
        lines = text(path).splitlines()
    except (OSError, Unfit) as problem:
        raise UsageError(f"client properties {str(path)!r} cannot be read: {_reason(problem)}.") from None
    values: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line[0] in "#!":
            continue
        where = f"{path}, line {number}"
        written, equals, value = (part.strip() for part in line.partition("="))
        if not (equals and _NAME.fullmatch(written)):
            raise UsageError(f"{where}: it is not key=value.")
        name = _ALIASES.get(written, written)
        _refuse_unknown(name, where)
        if name in values:
            raise UsageError(f"{where}: {written} is set twice.")
        values[name] = _value(name, value, where, path.parent)
    return ClientProperties(values, path)


def whole_path(path: Path) -> Path:
    """The path of such a file from the root on."""
    return path.expanduser().absolute()


def _refuse_unknown(name: str, where: str) -> None:
    if name in KNOWN:
        return
    if name in _INSTEAD:
        raise UsageError(f"{where}: {name} is of Java clients.", f"Write {_INSTEAD[name]}.")
    if name in _SEAWALLS_OWN:
        raise UsageError(f"{where}: {name} is seawall's to set, for it decides what is judged.", "Leave it out.")
    raise UsageError(f"{where}: {name} is no property that seawall takes; {closest(name, KNOWN)}")


def _value(name: str, written: str, where: str, directory: Path) -> str:
    value = _ELSEWHERE.sub(lambda found: _from(found[1], found[2], name, where, directory), written)
    if not value or not value.isprintable():
        raise UsageError(f"{where}: the value of {name} is empty, or has characters that cannot be printed.")
    if name in FILES:
        value = str(directory / Path(value).expanduser())
        _refuse_unreadable(Path(value), name, where)
    return value if (name in SHOWN and value == written) or (name in FILES and "${" not in written) else Secret(value)


def _from(kind: str, place: str, name: str, where: str, directory: Path) -> str:
    """The value of an environment variable, or what is in a file without the line's end."""
    if kind == "env":
        if (value := os.environ.get(place)) is None:
            raise UsageError(f"{where}: {name} is to come from the environment variable {place}, which is not set.")
        return value
    try:
        return text(directory / Path(place).expanduser()).rstrip("\r\n")
    except (OSError, Unfit) as problem:
        raise UsageError(f"{where}: {name} is to come from {place!r}: {_reason(problem)}.") from None


def _refuse_unreadable(path: Path, name: str, where: str) -> None:
    try:
        opened(path).close()
    except (OSError, Unfit) as problem:
        raise UsageError(f"{where}: {name} is {str(path)!r}, which cannot be read: {_reason(problem)}.") from None


def _reason(problem: OSError | Unfit) -> str:
    return problem.strerror or "" if isinstance(problem, OSError) else str(problem)
