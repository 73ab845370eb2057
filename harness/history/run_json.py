"""Validates ``run.json``: every value must have the type that its reader expects.

Otherwise a checker could misread a guarantee of the run, or ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.validation import shortened

VERDICTS = ("VIOLATION", "EXPECTED", "DOCUMENTED", "WEAK", "INDETERMINATE")
"""What a prediction's verdict may be: the values of ``harness.checker.Verdict``."""


class Kind(NamedTuple):
    """The name of a type of values, and a test for it."""

    name: str
    fits: Callable[[Any], bool]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_STRING = Kind("a string", lambda value: isinstance(value, str))
_INTEGER = Kind("a whole number", _is_int)
_COUNT = Kind("a whole number from 0 on", lambda value: _is_int(value) and value >= 0)
_FLAG = Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = Kind("an object", lambda value: isinstance(value, dict))
_OBJECTS = Kind("a list of objects", lambda value: isinstance(value, list) and all(map(_OBJECT.fits, value)))
_OBJECTS_OR_NULL = Kind("a list of objects or null", lambda value: value is None or _OBJECTS.fits(value))
_SECONDS = Kind(
    "a number from 0 on or null",
    lambda value: value is None or ((_is_int(value) or isinstance(value, float)) and value >= 0),
)
_TEXT = Kind("a string or null", lambda value: value is None or isinstance(value, str))
_COUNT_OR_NULL = Kind("a whole number from 0 on or null", lambda value: value is None or _COUNT.fits(value))


def _one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(words)}", lambda value: value in words)


def _up_to(most: int) -> Kind:
    """A number from which readers make a list, which must not fill the memory."""
    return Kind(f"a whole number from 0 to {most:,}", lambda value: _is_int(value) and 0 <= value <= most)


def _are_counts_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_COUNT.fits, value)))


_DOCUMENT: Mapping[str, Kind] = {
    **dict.fromkeys(("run", "scenario", "started_wall", "state", "generation", "why"), _STRING),
    "seed": _INTEGER,
    **dict.fromkeys(("versions", "configuration", "guarantees", "tables", "unrest"), _OBJECT),
    **dict.fromkeys(("predictions", "endings"), _OBJECTS),
    "orders": _OBJECTS_OR_NULL,
    "duration_s": _SECONDS,
}
_GUARANTEES: Mapping[str, Kind] = {
    **dict.fromkeys(("min_insync_replicas", "replication_factor", "laggards_leave_ms"), _COUNT_OR_NULL),
    **dict.fromkeys(
        ("unclean_election", "retention", "idempotent_producers", "eligible_replicas", "settles"), _FLAG
    ),
    **dict.fromkeys(("timeline", "time"), _STRING),
}  # fmt: skip
_STRINGS = Kind("a list of strings", lambda value: isinstance(value, list) and all(map(_STRING.fits, value)))
_COUNTS = Kind("a list of whole numbers", lambda value: isinstance(value, list) and all(map(_COUNT.fits, value)))
_UNREST: Mapping[str, Kind] = {
    "of": _one_of("rest", "reads", "sends"),
    "still_s": _SECONDS,
    "looks": _COUNT,
    **dict.fromkeys(("missing", "eligible"), _OBJECT),
    "gone": _COUNTS,
    "probes": _STRINGS,
}
_ENDING: Mapping[str, Kind] = {
    **dict.fromkeys(("node", "incarnation", "time_ns"), _COUNT),
    "status": _INTEGER,
    **dict.fromkeys(("said", "blames"), _STRING),
}
_ORDER: Mapping[str, Kind] = {
    "topic": _STRING,
    **dict.fromkeys(("partition", "timeout_ms", "invoked_ns"), _COUNT),
    **dict.fromkeys(("before", "node", "completed_ns"), _COUNT_OR_NULL),
    "error": _TEXT,
    "low_watermark": Kind("a whole number or null", lambda value: value is None or _is_int(value)),
}
_PREDICTION: Mapping[str, Kind] = {
    "kind": _STRING,
    "topic": _TEXT,
    **dict.fromkeys(("partition", "offset"), _COUNT_OR_NULL),
    "verdict": _one_of(*VERDICTS),
}
_SIZE: Mapping[str, Kind] = dict.fromkeys(("rows", "parts"), _COUNT)

_CONFIGURATION: Mapping[str, Kind] = {
    **dict.fromkeys(("target", "reproduce"), _STRING),
    **dict.fromkeys(("scenario", "knobs", "settings", "workload", "imported"), _OBJECT),
}
_SCENARIO: Mapping[str, Kind] = {
    "cluster": _OBJECT,
    "topics": _OBJECTS,
    "schedule": _OBJECTS_OR_NULL,
    "chaos": Kind("an object or null", lambda value: value is None or _OBJECT.fits(value)),
}
_CLUSTER: Mapping[str, Kind] = {"brokers": _up_to(1_000)}
_TOPIC: Mapping[str, Kind] = {
    "name": _STRING,
    "partitions": _up_to(100_000),
    "replication_factor": _up_to(1_000),
    "replicas": Kind("a list of whole numbers from 0 on or null", _are_counts_or_null),
}
_STEP: Mapping[str, Kind] = dict.fromkeys(("inject", "hold"), _OBJECT)
_NAMED: Mapping[str, Kind] = {"as": _STRING, "fault": _STRING}
_CHAOS: Mapping[str, Kind] = {"faults": _OBJECTS}
_CHAOS_FAULT: Mapping[str, Kind] = {"fault": _STRING, "weight": _up_to(10_000)}


def wrong(document: Mapping[str, Any]) -> str | None:
    """The first key of ``run.json`` with a wrong value, in a clause; None: there is none.

    Examples:
        ``guarantees.min_insync_replicas is '2', and should be a whole number from 0 on or null``
    """
    return next(_wrong(document), None)


def _wrong(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _mistyped("", document, _DOCUMENT)
    yield from _mistyped("guarantees.", document.get("guarantees", {}), _GUARANTEES)
    yield from _mistyped("unrest.", unrest := document.get("unrest", {}), _UNREST)
    for key, kind in (("missing", _STRINGS), ("eligible", _COUNTS)):
        named = unrest.get(key, {})
        yield from _mistyped(f"unrest.{key}.", named, dict.fromkeys(named, kind))
    for number, prediction in enumerate(document.get("predictions", ())):
        where = f"predictions[{number}]"
        for key in sorted(set(prediction) - set(_PREDICTION)):
            yield f"{where} has the key {key!r}, which is none of {', '.join(_PREDICTION)}"
        if "kind" not in prediction:
            yield f"{where} has no kind"
        yield from _mistyped(f"{where}.", prediction, _PREDICTION)
    for name, keys in (("endings", _ENDING), ("orders", _ORDER)):
        for number, one in enumerate(document.get(name) or ()):
            yield from (f"{name}[{number}] has no {key}" for key in keys if key not in one)
            yield from _mistyped(f"{name}[{number}].", one, keys)
    yield from _of_configuration(document.get("configuration", {}))
    for name, size in document.get("tables", {}).items():
        if not _OBJECT.fits(size):
            yield f"tables.{name} is {shortened(size)}, and should be {_OBJECT.name}"
        yield from _mistyped(f"tables.{name}.", size, _SIZE)


def _of_configuration(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Validates what readers use of the resolved scenario; the rest may be anything."""
    yield from _mistyped("configuration.", configuration, _CONFIGURATION)
    where, scenario = "configuration.scenario", configuration.get("scenario", {})
    yield from _mistyped(f"{where}.", scenario, _SCENARIO)
    yield from _mistyped(f"{where}.cluster.", scenario.get("cluster", {}), _CLUSTER)
    for number, topic in enumerate(scenario.get("topics", ())):
        yield from _mistyped(f"{where}.topics[{number}].", topic, _TOPIC)
    for number, step in enumerate(scenario.get("schedule") or ()):
        yield from _mistyped(f"{where}.schedule[{number}].", step, _STEP)
        for kind in _STEP:
            yield from _mistyped(f"{where}.schedule[{number}].{kind}.", step.get(kind, {}), _NAMED)
    chaos = scenario.get("chaos") or {}
    yield from _mistyped(f"{where}.chaos.", chaos, _CHAOS)
    for number, fault in enumerate(chaos.get("faults", ())):
        yield from _mistyped(f"{where}.chaos.faults[{number}].", fault, _CHAOS_FAULT)


def _mistyped(where: str, values: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Iterator[str]:
    for key, kind in kinds.items():
        if key in values and not kind.fits(values[key]):
            yield f"{where}{key} is {shortened(values[key])}, and should be {kind.name}"
