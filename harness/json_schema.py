"""Makes the JSON Schemas that ``docs/schemas`` publishes from pydantic models and dataclasses.

Descriptions come from the docstrings, so that a key is described in one place: its line below ``Attributes:``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_ATTRIBUTE = re.compile(r"^    (\S[^:]*): (.*(?:\n     .*)*)", re.MULTILINE)
_ROLE = re.compile(r":[a-z]+:`([^`]+)`")
_NONE = re.compile(r"\bNone\b")


def schema_of(declared: Any, mode: Literal["validation", "serialization"] = "validation") -> Schema:
    """The schema of a model, a dataclass or another type, whose keys carry the descriptions of its docstring.

    Every key of a dataclass is required, because ``asdict`` writes all of them.
    """
    return TypeAdapter(declared).json_schema(mode=mode, schema_generator=_Described)


def published(name: str, title: str, schema: Schema) -> str:
    """The text of the file ``name`` below ``docs/schemas``."""
    rest = {key: value for key, value in schema.items() if key != "title"}
    return json.dumps({"$schema": DIALECT, "$id": name, "title": title, **rest}, indent=2) + "\n"


def given(name: str) -> Schema:
    """Requires a key that is not null, which is how readers understand a key that is left out."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def filled(name: str) -> Schema:
    """Requires a list that is not empty."""
    return {"required": [name], "properties": {name: {"minItems": 1}}}


def exactly_one(*names: str) -> Schema:
    """Requires one of some keys, and no other of them."""
    return {"oneOf": [given(name) for name in names]}


def when(name: str, value: Schema, then: Schema) -> Schema:
    """Requires ``then`` where the key is there with such a value."""
    return {"if": {"required": [name], "properties": {name: value}}, "then": then}


@cache
def described_by(declared: type) -> Mapping[str, str]:
    """The descriptions of the attributes of a class, those that it inherits included."""
    found: dict[str, str] = {}
    for one in reversed(declared.__mro__):
        section = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2]
        for names, text in _ATTRIBUTE.findall(section):
            found |= dict.fromkeys(names.split(", "), _plain(text))
    return found


class Shape:
    """Declares that a mapping of a dataclass has the keys of a model, for validation and for the schema.

    ``guarantees: Annotated[Mapping[str, Any], Shape(Guarantees)]``
    """

    def __init__(self, declared: Any) -> None:
        self.declared = declared

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The model's in place of the mapping's."""
        return handler.generate_schema(self.declared)


class _Described(GenerateJsonSchema):
    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _described(super().dataclass_schema(schema), schema["cls"])

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """A key that fits no pattern is refused when it is read, and so by the schema."""
        found = super().dict_schema(schema)
        return {**found, "additionalProperties": False} if "patternProperties" in found else found

    def field_is_required(self, field: Any, total: bool) -> bool:
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _described(schema: JsonSchemaValue, declared: type) -> JsonSchemaValue:
    properties = {
        name: {**one, **({"description": words[name]} if name in words else {})}
        for words in [{**described_by(declared), **_by_alias(declared)}]
        for name, one in schema.get("properties", {}).items()
    }
    head = _plain(inspect.cleandoc(declared.__doc__ or "").partition("\n\nAttributes:")[0])
    return {**schema, **({"description": head} if head else {}), **({"properties": properties} if properties else {})}


def _by_alias(declared: type) -> Mapping[str, str]:
    fields = getattr(declared, "model_fields", {})
    return {
        field.alias: described_by(declared)[name]
        for name, field in fields.items()
        if field.alias and name in described_by(declared)
    }


def _plain(text: str) -> str:
    """Docstring markup as plain text in one line."""
    words = _ROLE.sub(r"`\1`", " ".join(text.split())).replace("``", "`")
    words = _NONE.sub("null", words)
    return words[:1].upper() + words[1:]
