"""Checks the type and the bounds of each field of a control request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_SHOWN = 60

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


def whole(request: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """A whole number, both bounds inclusive.

    Raises:
        ValueError: there is none, or it is another value.
    """
    value = request.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: {_shown(value)} is no whole number from {least} to {most}.")
    return value


def whole_or_none(request: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    """Likewise, or null; missing means null, too."""
    return None if request.get(name) is None else whole(request, name, least, most)


def number(request: Mapping[str, Any], name: str, most: float) -> float:
    """A number above 0, up to ``most``; errors as for :func:`whole`."""
    value = request.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise ValueError(f"{name}: {_shown(value)} is no number above 0, up to {most:g}.")
    return float(value)


def flag(request: Mapping[str, Any], name: str) -> bool:
    """True or false; missing means false; errors as for :func:`whole`."""
    value = request.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {_shown(value)} is neither true nor false.")
    return value


def text(request: Mapping[str, Any], name: str) -> str:
    """A string; errors as for :func:`whole`."""
    value = request.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: {_shown(value)} is no string.")
    return value


def one_of(request: Mapping[str, Any], name: str, known: Collection[str], default: str) -> str:
    """One of the strings that are ``known``; errors as for :func:`whole`."""
    value = request.get(name, default)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}: {_shown(value)} is none of {', '.join(map(repr, known))}.")
    return value


def pairs(request: Mapping[str, Any], name: str, known: Collection[str]) -> list[tuple[str, str]]:
    """A list of pairs of strings that are ``known``; errors as for :func:`whole`."""
    value = request.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name}: {_shown(value)} is no list.")
    for pair in value:
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(end, str) for end in pair)
        if not is_pair or not {*pair} <= {*known}:
            raise ValueError(f"{name}: {_shown(pair)} is no pair of two of {', '.join(map(repr, known))}.")
    return [(source, destination) for source, destination in value]


def address(request: Mapping[str, Any], name: str) -> tuple[str, int]:
    """A host and a port; errors as for :func:`whole`."""
    value = request.get(name)
    if isinstance(value, list) and len(value) == 2:
        host, port = value
        if isinstance(host, str) and isinstance(port, int) and 0 <= port <= 0xFFFF:
            return host, port
    raise ValueError(f"{name}: {_shown(value)} is no pair of a host and a port.")


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
