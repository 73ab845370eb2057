"""Validates rows against the schema: nulls, words, ranges of numbers and JSON.

Arrow checks only the types of columns. Rows that break :mod:`harness.history.schema` are no evidence, neither for the
system under test nor against it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from harness.history.schema import HISTORY, TIMELINE, Column, DetailType, Table

ABOUT_PARTITIONS = ("state", "truncation", "log_start", "election", "isr")
"""The kinds of timeline rows that are about a partition."""


PLACED = ("send", "assigned", "revoked", "lost", "put", "scan", "offset_for_time", "acknowledge", "drain")
"""The values of ``f`` in history rows that are always about a partition."""

GIVEN = ("offset", "intact")
"""The columns of a record that a poll, or one of a share consumer, has delivered."""

JUDGED = ("offset", "acknowledgement", "group")
"""The columns of an acknowledgement of a share consumer."""

HALF_A_PARTITION = "names half of a partition: a topic or a number, and not both"


class Breach(NamedTuple):
    """A row that breaks the schema, by its position from 0, and what is wrong with it: ``has no node``."""

    row: int
    says: str


def breach(table: Table, rows: pa.RecordBatch) -> Breach | None:
    """The first breach of the schema of ``table`` in ``rows``, which has all of its columns; None: there is none."""
    return next(_breaches(table, rows), None)


def _breaches(table: Table, rows: pa.RecordBatch) -> Iterator[Breach]:
    for column in table.columns:
        yield from _of_column(column, rows.column(column.name))
    if table is TIMELINE:
        yield from _of_timeline(rows)
    if table is HISTORY:
        yield from _of_history(rows)


def _of_column(column: Column, values: pa.Array) -> Iterator[Breach]:
    if values.null_count and not column.nullable:
        yield Breach(_first(values.is_null()), f"has no {column.name}")
    if column.words and (strange := set(values.unique().to_pylist()) - {*column.words, None}):
        word = min(strange)
        says = f"has the {column.name} {word!r}, which is none of {', '.join(column.words)}"
        yield Breach(pc.index(values, word).as_py(), says)
    for bound, end, beyond in ((column.least, "min", "below"), (column.most, "max", "above")):
        number = None if bound is None else pc.min_max(values)[end].as_py()
        if number is not None and (number < bound if end == "min" else number > bound):
            says = f"has the {column.name} {number}, and {beyond} {bound} there is none"
            yield Breach(pc.index(values, number).as_py(), says)
    if pa.types.is_list(values.type) and values.flatten().null_count:
        row = next(row for row, value in enumerate(values.to_pylist()) if value is not None and None in value)
        yield Breach(row, f"has a null among its {column.name}")
    if column.holds is not None:
        yield from _of_json(column.name, values, column.holds)


def _of_json(name: str, values: pa.Array, types: Mapping[str, DetailType]) -> Iterator[Breach]:
    for text in values.unique().to_pylist():
        if text is not None and (wrong := _wrong(text, types)):
            yield Breach(pc.index(values, text).as_py(), f"has a {name} {wrong}: {text[:80]!r}")


def _wrong(text: str, types: Mapping[str, DetailType]) -> str | None:
    """The error in the text of a JSON object that holds ``types``; None: there is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "that is no JSON"
    if not isinstance(found, dict):
        return "that is no JSON object"
    strange = [name for name, type_ in types.items() if name in found and not _FITS[type_](found[name])]
    return f"whose {strange[0]} is no {types[strange[0]]}" if strange else None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_ints(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_int, value))


def _are_links(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value)


_FITS: Mapping[DetailType, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": _is_int,
    "list<int>": _are_ints,
    "list<pair>": lambda value: _are_links(value) and all(map(_are_ints, value)),
    "list<link>": _are_links,
}


def _of_timeline(rows: pa.RecordBatch) -> Iterator[Breach]:
    """A row has both columns of a partition or neither, and both where it is about one.

    A leader's row has its epoch, and in kind ``state`` its bounds; an election has its epoch.
    """
    kind, role = rows.column("kind"), rows.column("role")
    placed = rows.column("topic").is_valid()
    leads = pc.equal(role, "leader").fill_null(False)
    state, about = _is_any(kind, ("state",)), pc.or_(_is_any(kind, ABOUT_PARTITIONS), role.is_valid())
    if _any(half := pc.xor(placed, rows.column("partition").is_valid())):
        yield Breach(_first(half), HALF_A_PARTITION)
    if _any(lost := pc.and_(about, pc.invert(placed))):
        yield Breach(_first(lost), "is about a partition and names none")
    said = {
        "leader_epoch": pc.or_(leads, _is_any(kind, ("election",))),
        **dict.fromkeys(("high_watermark", "log_end_offset"), pc.and_(leads, state)),
    }
    for name, needed in said.items():
        if _any(lacking := pc.and_(needed, rows.column(name).is_null())):
            yield Breach(_first(lacking), f"has no {name}, and is about a leader")


def _of_history(rows: pa.RecordBatch) -> Iterator[Breach]:
    """A row has both columns of a partition or neither; a sent record has its place and value.

    A polled record has its place, and whether its payload is intact. An acknowledged one has its place, and what
    became of it.
    """
    f, placed = rows.column("f"), rows.column("topic").is_valid()
    if _any(half := pc.xor(placed, rows.column("partition").is_valid())):
        yield Breach(_first(half), HALF_A_PARTITION)
    if _any(lost := pc.and_(_is_any(f, PLACED), pc.invert(placed))):
        yield Breach(_first(lost), "is about a partition and names none")
    if _any(lacking := pc.and_(_is_any(f, ("send", "put")), rows.column("value").is_null())):
        yield Breach(_first(lacking), "has no value, and is about a record that was sent")
    given = pc.and_(_is_any(f, ("poll", "acquire")), pc.invert(_is_any(rows.column("type"), ("invoke",))))
    given = pc.and_(given, rows.column("topic").is_valid())
    for name in GIVEN:
        if _any(lacking := pc.and_(given, rows.column(name).is_null())):
            yield Breach(_first(lacking), f"has no {name}, and is about a record that a poll delivered")
    for name in JUDGED:
        if _any(lacking := pc.and_(_is_any(f, ("acknowledge",)), rows.column(name).is_null())):
            yield Breach(_first(lacking), f"has no {name}, and acknowledges a record")


def _any(flags: pa.Array) -> bool:
    return pc.any(flags).as_py() is True


def _is_any(words: pa.Array, known: Iterable[str]) -> pa.Array:
    return pc.is_in(words, pa.array(known, words.type))


def _first(flags: pa.Array) -> int:
    return int(pc.index(flags, True).as_py())
