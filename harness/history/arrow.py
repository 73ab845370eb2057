"""Writes the tables of :mod:`harness.history.schema` as Parquet files, by their Arrow schemas.

A file is written under another name and renamed when complete, so a table's file is whole, however the writer ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.blocks import Block
from harness.history.schema import ColumnType, Table
from harness.scratch import unfinished, unfinished_directory

_TYPES: Mapping[ColumnType, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
    "list<int32>": pa.list_(pa.int32()),
    "list<string>": pa.list_(pa.string()),
}

ROW_GROUP = 65_536
FILE_ROWS = 16 * ROW_GROUP


def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of ``table``: the same columns, order and nullability."""
    return pa.schema([pa.field(c.name, _TYPES[c.type], nullable=c.nullable) for c in table.columns])


def write_rows(table: Table, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write ``rows`` as the whole Parquet file ``path``; holds at most a row group at a time.

    Args:
        table: of the rows; a column that a row lacks is null.
        path: its directory must exist; replaces an older file of this name.
        rows: one mapping per row.

    Raises:
        AssertionError: a row has a column that the table lacks, or lacks one that must not be null.
    """
    names = [c.name for c in table.columns]
    with _writer(table, path) as writer:
        for group in _groups(rows):
            strange = {key for row in group for key in row}.difference(names)
            assert not strange, f"table {table.name} has no column {', '.join(sorted(strange))}"
            writer.write_table(_arrow(table, [[row.get(name) for row in group] for name in names]))


def write_blocks(table: Table, directory: Path, blocks: Iterable[Block]) -> None:
    """Write the rows of ``blocks`` as the whole ``directory``, in files of about ``FILE_ROWS`` rows; at least one.

    A check by Spark reads a file in one task, which holds it in memory.

    Args:
        table: of the rows; a column that a block lacks is null.
        directory: replaces an older one of this name, once all files are written.
        blocks: are not split, so that a file may be longer by less than one of them.

    Raises:
        AssertionError: a column that must not be null holds None.
    """
    names, left = [c.name for c in table.columns], iter(blocks)
    with unfinished_directory(directory) as temporary:
        for number in itertools.count():
            with _writer(table, temporary / f"part-{number:05d}.parquet") as writer:
                is_full = _write_groups(table, writer, names, left)
            if not is_full:
                return


def _write_groups(table: Table, writer: pq.ParquetWriter, names: Sequence[str], blocks: Iterator[Block]) -> bool:
    """Write blocks into a file until it has ``FILE_ROWS`` rows; whether it has, and there may be more blocks."""
    written = 0
    columns: list[list[Any]] = [[] for _ in names]
    for block in blocks:
        for column, values in zip(columns, block.values(names), strict=True):
            column.extend(values)
        if len(columns[0]) >= ROW_GROUP:
            writer.write_table(_arrow(table, columns))
            written += len(columns[0])
            columns = [[] for _ in names]
        if written >= FILE_ROWS:
            return True
    if columns[0]:
        writer.write_table(_arrow(table, columns))
    return False


def write_columns(table: Table, path: Path, columns: Sequence[Sequence[Any]]) -> None:
    """Write one list of values per column of ``table``, in its order, as the whole Parquet file ``path``.

    Raises:
        AssertionError: a column that must not be null holds None.
    """
    with _writer(table, path) as writer:
        writer.write_table(_arrow(table, columns))


def _arrow(table: Table, columns: Sequence[Sequence[Any]]) -> pa.Table:
    for column, values in zip(table.columns, columns, strict=True):
        assert column.nullable or None not in values, f"{table.name}.{column.name} must not be null"
    schema = arrow_schema(table)
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


@contextmanager
def _writer(table: Table, path: Path) -> Iterator[pq.ParquetWriter]:
    """A writer to a temporary file that becomes ``path`` when complete, and else is removed."""
    schema = arrow_schema(table)
    with unfinished(path) as temporary, pq.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
        yield writer


def _groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    left = iter(rows)
    while group := list(itertools.islice(left, ROW_GROUP)):
        yield group
