"""Kafka's own message definitions, as kafka-python ships them, or else Kafka itself, against our declarations."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from harness.wire.declaration import LATEST, MESSAGES, Message, Struct, Wire, all_fields, default_of
from harness.wire.frames import ADVERTISED, ApiKey
from tests.harness.targets.contract import fetched_or_skip

KINDS = {"bool": "boolean"}
OF_SHARE_GROUPS = {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
CLIENT_FACING = [
    pytest.param(cls, id=cls.__name__)
    for (_, key), cls in MESSAGES.items()
    if key in ADVERTISED.keys() | OF_SHARE_GROUPS
]


def definition(name: str) -> dict[str, Any]:
    package = find_spec("kafka")
    assert package is not None
    assert package.origin is not None
    shipped = Path(package.origin).parent / "protocol/schemas/resources" / f"{name}.json"
    text = shipped.read_text() if shipped.exists() else of_kafka(name)
    lines = [line for line in text.splitlines() if not line.strip().startswith("//")]
    found: dict[str, Any] = json.loads("\n".join(lines))
    shared = {struct["name"]: struct["fields"] for struct in found.get("commonStructs", [])}
    put_in(found["fields"] + [field for fields in shared.values() for field in fields], shared)
    return found


def of_kafka(name: str) -> str:
    libraries = fetched_or_skip("4.3.0").home / "libs"
    with ZipFile(libraries / "kafka-clients-4.3.0.jar") as jar:
        return jar.read(f"common/message/{name}.json").decode()


def put_in(fields: list[dict[str, Any]], shared: dict[str, list[dict[str, Any]]]) -> None:
    """Put the fields of structs that a definition shares where they are used."""
    for field in fields:
        if field["type"].removeprefix("[]") in shared:
            field["fields"] = shared[field["type"].removeprefix("[]")]
        elif "fields" in field:
            put_in(field["fields"], shared)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def span(text: str) -> tuple[int, int]:
    if text == "none":
        return LATEST, 0
    first, _, last = text.rstrip("+").partition("-")
    return int(first), LATEST if text.endswith("+") else int(last or first)


def clipped(first: int, last: int, versions: tuple[int, int]) -> tuple[int, int] | None:
    low, high = max(first, versions[0]), min(last, versions[1])
    return (low, high) if low <= high else None


def default(field: dict[str, Any], kind: str) -> Any:
    told = field.get("default")
    match kind:
        case "int8" | "int16" | "uint16" | "int32" | "int64":
            return int(str(told or 0), 0)
        case "float64":
            return float(told or 0)
        case "boolean":
            return told == "true"
        case "string":
            return None if told == "null" else told or ""
        case _:
            return None


def expected(fields: list[dict[str, Any]], versions: tuple[int, int]) -> list[dict[str, Any]]:
    """What our declaration of ``fields`` must say within ``versions``."""
    return [
        {
            "name": snake(field["name"]),
            "versions": clipped(*span(field["versions"]), versions),
            "nullable": clipped(*span(field.get("nullableVersions", "none")), within),
            "tag": field.get("tag"),
            "type": field["type"],
            "field": field,
        }
        for field in fields
        if (within := clipped(*span(field["versions"]), versions))
    ]


def check(cls: type[Struct], fields: list[dict[str, Any]], versions: tuple[int, int]) -> None:
    wanted = expected(fields, versions)
    assert [name for name, _ in all_fields(cls)] == [field["name"] for field in wanted]
    for (name, wire), field in zip(all_fields(cls), wanted, strict=True):
        assert clipped(wire.since, wire.until, versions) == field["versions"], name
        assert wire.tag == field["tag"], name
        check_kind(cls, name, wire, field, versions)


def check_kind(cls: type[Struct], name: str, wire: Wire, field: dict[str, Any], versions: tuple[int, int]) -> None:
    kind = field["type"]
    within = clipped(wire.since, wire.until, versions)
    assert within is not None
    if kind.startswith("[]") and isinstance(wire.element, type):
        assert wire.kind == "array"
        check(wire.element, field["field"]["fields"], within)
    elif kind.startswith("[]"):
        assert (wire.kind, wire.element) == ("array", kind[2:])
    elif isinstance(wire.element, type):
        assert wire.kind == "struct"
        check(wire.element, field["field"]["fields"], within)
        if wire.tag is not None:
            return  # a tagged struct is None while Kafka's has its default
    else:
        assert wire.kind == KINDS.get(kind, kind), name
        if wire.kind not in {"uuid", "records", "bytes"} and (wire.kind != "string" or wire.nullable is None):
            assert default_of(cls, name) == default(field["field"], wire.kind), name
    nullable = None if wire.nullable is None else clipped(wire.nullable, wire.until, within)
    assert nullable == field["nullable"], name


@pytest.mark.parametrize("cls", CLIENT_FACING)
def test_a_declaration_differs_from_kafkas_definition(cls: type[Message]) -> None:
    told = definition(cls.__name__)
    _, last = span(told["validVersions"])
    assert cls.versions[1] <= last
    assert cls.flexible == span(told["flexibleVersions"])[0]
    assert cls.api_key == told["apiKey"]
    check(cls, told["fields"], cls.versions)
