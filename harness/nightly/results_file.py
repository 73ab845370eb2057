"""Reads and writes ``results.jsonl``: the results of a night, one cell a line, and publishes the schema of a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from harness import documents
from harness.documents import Unfit
from harness.errors import InvalidRun, UsageError
from harness.json_schema import published, schema_of
from harness.nightly.result import SCHEMA_VERSION, CellResult
from harness.scratch import unfinished
from harness.unwritable import writing_below
from harness.validation import validated

NAME = "results.jsonl"

MOST_BYTES = 256 << 20
"""The greatest size of a file of results: some hundred thousand cells."""

_REMEDY = "Remove that line, or run the night again with --resume."


def write(path: Path, results: Iterable[CellResult]) -> None:
    """Replace the file at once: a reader finds the old lines or the new ones.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    text = "".join(f"{line(one)}\n" for one in results)
    with writing_below(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def line(result: CellResult) -> str:
    """A result as a line of JSON, without the line's end."""
    try:
        return result.model_dump_json()
    except PydanticSerializationError:  # a name that is not UTF-8
        return json.dumps(_encodable(result.model_dump()), separators=(",", ":"))


def read(path: Path) -> list[CellResult]:
    """The results in a file. A last line that was not written to its end is left out.

    Raises:
        InvalidRun: the file cannot be read, or another line is no result; names the line.
    """
    try:
        content = documents.content(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise InvalidRun(f"{path} is missing: this is no directory of a night.") from error
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidRun(f"{path} cannot be read: {reason}.") from error
    return list(_results(content, path))


def schema() -> str:
    """The JSON Schema of a line, as ``docs/schemas/cell-result-1.json`` has it."""
    name = f"cell-result-{SCHEMA_VERSION}.json"
    return published(name, "A line of results.jsonl of seawall nightly", schema_of(CellResult, "serialization"))


def _results(content: bytes, path: Path) -> Iterator[CellResult]:
    lines = content.split(b"\n")
    for number, one in enumerate(lines, 1):
        if not one.strip():
            continue
        try:
            yield CellResult.model_validate_json(one, strict=True)
        except ValidationError:
            if number == len(lines):
                return
            raise InvalidRun(_complaint(one, f"{path}, line {number}"), _REMEDY) from None


def _complaint(one: bytes, where: str) -> str:
    try:
        validated(CellResult, documents.json_document(one), where)
    except Unfit as error:
        return f"{where}: {error}."
    except UsageError as error:
        return error.sentence
    return f"{where} is no result of a cell."


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case Mapping():
            return {_encodable(key): _encodable(one) for key, one in value.items()}
        case list() | tuple():
            return [_encodable(one) for one in value]
        case _:
            return value
