"""Edits of a run directory as a person, a disk or another program might make them, drawn by Hypothesis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES

Edit = Callable[[Path], None]

NUMBERS = st.sampled_from([0, 1, -1, 2, 7, 100, 2**31 - 1, -(2**31), 2**62, 2**63 - 2, 2**63 - 1, -(2**63)])
TEXTS = st.sampled_from(
    ["", "ledger", "x" * 300, "<script>alert(1)</script>", "\0", "ledger-0", "{}", "[]", '{"a": 1}']
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
POSITIONS = st.integers(0, 10_000)
"""Taken modulo what there is."""

RAW = st.sampled_from([b"", b"{", b"[]", b"null", b"\xff", b'{"a":' * 5_000, b"[" + b"9" * 5_000 + b"]", b"NaN"])


def edits() -> st.SearchStrategy[Edit]:
    """One edit of a run directory."""
    documents = st.sampled_from(["run.json", "schedule_log.json"])
    return st.one_of(
        st.builds(of_document, documents, POSITIONS, st.none() | JSON.map(lambda value: (value,))),
        st.builds(raw, documents, RAW),
        tables(),
    )


def tables() -> st.SearchStrategy[Edit]:
    """One edit of one of the Parquet files."""
    names = st.sampled_from(sorted(TABLES))
    rows = st.sampled_from(["again", "gone", "reversed", "none", "last"])
    cells = st.none() | st.booleans() | NUMBERS | TEXTS | st.lists(NUMBERS, max_size=3)
    types = st.sampled_from([pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_(), pa.null(), pa.binary()])
    return st.one_of(
        st.builds(cell, names, POSITIONS, POSITIONS, cells),
        st.builds(cell, names, POSITIONS, POSITIONS, NUMBERS),
        st.builds(rows_of, names, rows, POSITIONS),
        st.builds(column, names, POSITIONS, st.sampled_from(["gone", "twice", "renamed"]) | types),
        st.builds(bytes_of, names, POSITIONS, st.sampled_from(["cut", "flipped"])),
    )


# --------------------------------------------------------------------------------------------------------- documents


def of_document(name: str, position: int, new: tuple[Any] | None) -> Edit:
    """Replace one of all the values in a document, or remove it."""

    def edit(path: Path) -> None:
        document = json.loads((path / name).read_text())
        places = list(_places(document))
        if places:
            holder, key = places[position % len(places)]
            if new is None:
                del holder[key]
            else:
                holder[key] = new[0]
        (path / name).write_text(json.dumps(document))

    return edit


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield value, key
        yield from _places(one)


def raw(name: str, content: bytes) -> Edit:
    """Other bytes in the place of a document."""
    return lambda path: void((path / name).write_bytes(content))


def void(_: object) -> None: ...


# ------------------------------------------------------------------------------------------------------------- tables


def _rewritten(name: str, change: Callable[[pa.Table], pa.Table]) -> Edit:
    """Other rows or columns, where Arrow can hold them, in a file that was whole."""

    def edit(path: Path) -> None:
        for file in RunDirectory(path).table_files(name)[-1:]:
            try:
                pq.write_table(change(pq.read_table(file)), file)
            except (pa.ArrowException, OSError, OverflowError, TypeError, ValueError):
                continue

    return edit


def cell(name: str, row: int, number: int, new: object) -> Edit:
    """One value of a table."""

    def change(table: pa.Table) -> pa.Table:
        values = table.column(number % table.num_columns).to_pylist()
        values[row % len(values)] = new
        field = table.schema.field(number % table.num_columns).with_nullable(True)
        return table.set_column(number % table.num_columns, field, pa.array(values, field.type))

    return _rewritten(name, lambda table: change(table) if len(table) else table)


def rows_of(name: str, what: str, at: int) -> Edit:
    """A row that is there again or gone, all of them in another order, or only some of them."""

    def change(table: pa.Table) -> pa.Table:
        number = len(table)
        one = at % max(1, number)
        indices = list(range(number))
        chosen = {
            "again": [*indices[: one + 1], *indices[one:]],
            "gone": [*indices[:one], *indices[one + 1 :]],
            "reversed": indices[::-1],
            "none": [],
            "last": indices[one:],
        }
        return table.take(pa.array(chosen[what], pa.int64()))

    return _rewritten(name, change)


def column(name: str, at: int, new: Any) -> Edit:
    """A column that is gone, there twice, called otherwise, or of another type."""

    def change(table: pa.Table) -> pa.Table:
        number = at % table.num_columns
        match new:
            case "gone":
                return table.remove_column(number)
            case "twice":
                return table.append_column(table.schema.field(number), table.column(number))
            case "renamed":
                return table.rename_columns(
                    [f"{one}x" if one == table.column_names[number] else one for one in table.column_names]
                )
            case _:
                values = pa.nulls(len(table), new) if new == pa.null() else table.column(number).cast(new)
                return table.set_column(number, table.column_names[number], values)

    return _rewritten(name, change)


def bytes_of(name: str, at: int, what: str) -> Edit:
    """A file that is cut off, or one of whose bytes is another."""

    def edit(path: Path) -> None:
        for file in RunDirectory(path).table_files(name)[-1:]:
            content = bytearray(file.read_bytes())
            at_byte = at % max(1, len(content))
            if what == "cut":
                content = content[:at_byte]
            elif content:
                content[at_byte] ^= 0x5A
            file.write_bytes(content)

    return edit
