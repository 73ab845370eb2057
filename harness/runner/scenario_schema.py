"""Makes the JSON Schema of a scenario file.

A scenario's own models leave open what other packages define: the kinds of faults and of workloads, the settings of
brokers, and the knobs of the protocol. The schema has all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, get_args, get_type_hints

import faults
import workloads
from harness.broker.settings import Settings
from harness.errors import EnvironmentFault
from harness.json_schema import Schema, described_by, published, schema_of
from harness.plugins import Registry
from harness.replication.knobs import GENERATIONS, Knobs
from harness.scenario import Scenario
from harness.steps import LONGEST_S

NAME: Final = "scenario-1.json"
"""The file below ``docs/schemas``."""

_AS: Final[Schema] = {
    "type": "string",
    "description": "The name by which a later step heals the fault.",
}
_IN_CHAOS: Final[Mapping[str, Schema]] = {
    "weight": {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 1,
        "description": "How often the fault comes up in a round.",
    },
    "for_s": {
        "type": "array",
        "items": {"type": "number", "minimum": 0, "maximum": LONGEST_S},
        "minItems": 2,
        "maxItems": 2,
        "description": "Shortest and longest time in seconds that it lasts; without it that of the mix.",
    },
}


def schema(*, plugins: bool = False, left_out: Callable[[EnvironmentFault], None] = lambda broken: None) -> str:
    """The schema, for editors.

    Args:
        plugins: with the faults and workloads of the plugins that are installed here.
        left_out: called with the error about each plugin that cannot be used; the schema does not have it.
    """
    found = schema_of(Scenario)
    parts: dict[str, Schema] = found["$defs"]
    kinds = list(_kinds(faults.KINDS, plugins, left_out))
    parts["Step"]["properties"]["inject"] = _nullable(_choice(parts, "inject", kinds), parts["Step"], "inject")
    parts["Chaos"]["properties"]["faults"]["items"] = _choice(parts, "chaos", kinds)
    parts["Workload"] = _workload(parts, _kinds(workloads.KINDS, plugins, left_out))
    parts["Cluster"]["properties"]["settings"]["properties"] = dict(_settings())
    found["properties"]["replication"] |= {"properties": dict(_knobs()), "additionalProperties": False}
    found["properties"]["generation"] |= {"anyOf": [{"enum": [*GENERATIONS]}, {"type": "null"}]}
    found["properties"]["predictions"]["propertyNames"] = {"enum": [*GENERATIONS]}
    return published(NAME, "A scenario of seawall", found)


def _nullable(schema: Schema, owner: Schema, name: str) -> Schema:
    described = {key: owner["properties"][name][key] for key in ("default", "description")}
    return {"anyOf": [schema, {"type": "null"}], **described}


def _kinds(
    registry: Registry[Any], plugins: bool, left_out: Callable[[EnvironmentFault], None]
) -> Iterator[tuple[str, Any]]:
    for name in registry if plugins else registry.own:
        try:
            yield name, registry[name]
        except EnvironmentFault as broken:
            left_out(broken)


def _choice(parts: dict[str, Schema], place: str, kinds: Iterable[tuple[str, Any]]) -> Schema:
    """A fault as it is written in a place: with a name in a schedule, with a weight in a random mix."""
    own = {"as": _AS} if place == "inject" else _IN_CHAOS
    names = []
    for kind, fault in kinds:
        one = _within(parts, schema_of(fault))
        one["properties"] = {"fault": {"const": kind, "description": "The kind of fault."}, **one["properties"], **own}
        one["required"] = ["fault", *one.get("required", ()), *(["as"] if place == "inject" else [])]
        parts[f"{place}_{kind}"] = one
        names.append(f"{place}_{kind}")
    return _one_of("fault", names)


def _workload(parts: dict[str, Schema], kinds: Iterable[tuple[str, Any]]) -> Schema:
    names = []
    for name, kind in kinds:
        one = _within(parts, schema_of(kind.parameters))
        one["properties"] = {"name": {"const": name, "description": "Of the workload."}, **one["properties"]}
        one["required"] = ["name", *one.get("required", ())]
        parts[f"workload_{name}"] = one
        names.append(f"workload_{name}")
    return {"description": "The load in the background.", **_one_of("name", names)}


def _within(parts: dict[str, Schema], one: Schema) -> Schema:
    parts.update(one.pop("$defs", {}))
    return one


def _one_of(key: str, names: Iterable[str]) -> Schema:
    return {"type": "object", "required": [key], "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names]}


def _settings() -> Iterable[tuple[str, Schema]]:
    """Those that the built-in brokers have, too; real Kafka has others beside them."""
    for field in fields(Settings):
        name = field.name.replace("_", ".")
        unit = _unit(name)
        described = {"description": f"A setting of brokers{f', in {unit}' if unit else ''}.", "default": field.default}
        if field.type == "bool":
            yield name, {"anyOf": [{"type": "boolean"}, {"pattern": "^([tT]rue|[fF]alse)$"}], **described}
        else:
            yield name, {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?[0-9]+$"}], **described}


def _unit(name: str) -> str:
    last = name.rpartition(".")[2]
    return {"ms": "milliseconds", "bytes": "bytes"}.get(last, "")


def _knobs() -> Iterable[tuple[str, Schema]]:
    words = described_by(Knobs)
    for name, hint in get_type_hints(Knobs).items():
        about = {"description": words.get(name, "A knob of the protocol; docs/generations.md.")}
        if name == "bugs":
            yield name, {"type": "string", **about}
        elif hint is bool:
            yield name, {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}], **about}
        else:
            yield name, {"enum": [*get_args(hint)], **about}
