"""The configurations that a topic may have: names, types and bounds, as in Kafka's ``LogConfig``.

These are the ones that the built-in brokers obey. They refuse all others, also those that Kafka knows, so that no user
takes one for effective that is not. A topic has only those that were set for it; for the rest the cluster's settings
apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from harness.error_codes import ErrorCode
from harness.spelling import closest

COMPACT = "compact"
DELETE = "delete"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"

Configs = Mapping[str, str]
"""The configurations of a topic by name, as text."""

Value = bool | int | float | tuple[str, ...]

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


class Refusal(NamedTuple):
    """Why a topic cannot be created or changed."""

    error: ErrorCode
    message: str


class ConfigKind(NamedTuple):
    """The type of a configuration, and its bounds where that is a number, both inclusive."""

    type: Literal["boolean", "int", "long", "double", "list"]
    least: float = 0
    most: float = _MAX_LONG


TOPIC_CONFIGS: Mapping[str, ConfigKind] = MappingProxyType(
    {
        "cleanup.policy": ConfigKind("list"),
        "delete.retention.ms": ConfigKind("long"),
        "flush.messages": ConfigKind("long", 1),
        "flush.ms": ConfigKind("long"),
        "max.compaction.lag.ms": ConfigKind("long", 1),
        "max.message.bytes": ConfigKind("int", most=_MAX_INT),
        "message.timestamp.after.max.ms": ConfigKind("long"),
        "min.cleanable.dirty.ratio": ConfigKind("double", most=1),
        "min.compaction.lag.ms": ConfigKind("long"),
        MIN_INSYNC_REPLICAS: ConfigKind("int", 1, _MAX_INT),
        "retention.ms": ConfigKind("long", -1),
        "segment.bytes": ConfigKind("int", 14, _MAX_INT),
        "segment.ms": ConfigKind("long", 1),
        UNCLEAN_ELECTION: ConfigKind("boolean"),
    }
)
"""By name, in alphabetical order."""


class Alteration(NamedTuple):
    """A change of one configuration (``AlterConfigOp``, KIP-339).

    ``append`` and ``subtract`` add and remove elements of a list. ``value`` is None where the request has none.
    """

    name: str
    operation: Literal["set", "delete", "append", "subtract"]
    value: str | None


def parsed(name: str, text: str) -> Value:
    """The value of configuration ``name`` that ``text`` stands for.

    Raises:
        ValueError: there is no such configuration, or ``text`` is no value of it; a sentence for the client.
    """
    kind = TOPIC_CONFIGS.get(name)
    if kind is None:
        raise ValueError(f"Unknown topic config name: {name}; {closest(name, TOPIC_CONFIGS)}")
    text = text.strip()
    match kind.type:
        case "boolean":
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise ValueError(f"Invalid value {text!r} for configuration {name}: must be true or false.")
        case "list":
            return _policies(name, text)
        case "double":
            return _number(name, text, float, kind)
        case _:
            return _number(name, text, int, kind)


def _policies(name: str, text: str) -> tuple[str, ...]:
    policies = tuple(part.strip() for part in text.split(","))
    if not set(policies) <= {COMPACT, DELETE}:
        raise ValueError(f"Invalid value {text!r} for configuration {name}: must be compact, delete, or both.")
    return tuple(sorted(set(policies)))


def _number(name: str, text: str, convert: type[int] | type[float], kind: ConfigKind) -> int | float:
    try:
        value = convert(text)
    except ValueError:
        raise ValueError(
            f"Invalid value {text!r} for configuration {name}: not a number of type {kind.type}."
        ) from None
    if not kind.least <= value <= kind.most:
        bounds = (
            f"from {kind.least:.12g} to {kind.most:.12g}" if kind.most != _MAX_LONG else f"{kind.least:.12g} or more"
        )
        raise ValueError(f"Invalid value {text!r} for configuration {name}: must be {bounds}.")
    return value


def altered(before: Configs, alterations: Iterable[Alteration], *, replaces: bool = False) -> dict[str, str] | Refusal:
    """The configurations ``before`` after ``alterations``; ``replaces``: those without an alteration are gone."""
    configs = {} if replaces else dict(before)
    names = [one.name for one in alterations]
    if len(set(names)) < len(names):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys.")
    for name, operation, value in alterations:
        if operation == "delete":
            configs.pop(name, None)
            problem = "" if name in TOPIC_CONFIGS else _problem(name, "")
        elif value is None:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for configuration {name}.")
        elif operation != "set" and name in TOPIC_CONFIGS and TOPIC_CONFIGS[name].type != "list":
            problem = f"Can't {operation.upper()} to key {name} because its type is not LIST."
        else:
            configs[name] = value if operation == "set" else _listed(before.get(name, DELETE), operation, value)
            problem = _problem(name, configs[name])
        if problem:
            return Refusal(ErrorCode.INVALID_CONFIG, problem)
    return dict(sorted(configs.items()))


def _listed(before: str, operation: str, value: str) -> str:
    """A list, as text, after elements were added to it or removed from it."""
    old, more = before.split(","), value.split(",")
    if operation == "append":
        return ",".join([*old, *(one for one in more if one not in old)])
    return ",".join(one for one in old if one not in more)


def _problem(name: str, text: str) -> str:
    try:
        parsed(name, text)
    except ValueError as error:
        return str(error)
    return ""
