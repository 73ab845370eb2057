"""The published schemas as validators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from harness.cli.schema import SCHEMAS, Document

DIRECTORY = Path(__file__).parents[3] / "docs/schemas"


@cache
def printed(document: Document) -> dict[str, Any]:
    """What ``seawall schema`` prints; here no plugin is installed."""
    found: dict[str, Any] = json.loads(SCHEMAS[document]())
    return found


@cache
def validator(document: Document) -> Draft202012Validator:
    """As published."""
    return Draft202012Validator(printed(document))


@cache
def closed(document: Document) -> Draft202012Validator:
    """As published, but what no reader knows is refused, except where a key may be anything."""
    return Draft202012Validator(_closed(printed(document)))


def complaints(found: Draft202012Validator, instance: object) -> list[str]:
    """The places and reasons of what is refused."""
    return [f"{error.json_path}: {error.message[:200]}" for error in found.iter_errors(instance)]


def from_yaml(text: str) -> Any:
    """As the reader of scenarios sees it, but quickly."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, loader)


def undescribed(schema: object, path: str = "") -> Iterator[str]:
    """The keys of a schema without a description."""
    if isinstance(schema, Mapping):
        described = schema.get("type") == "object" or "$defs" in schema
        for name, one in schema.get("properties", {}).items() if described else ():
            if "description" not in one:
                yield f"{path}/{name}"
        for key, one in schema.items():
            yield from undescribed(one, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from undescribed(one, f"{path}/{number}")


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(one) for key, one in schema.items()}
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", False)
    return found
