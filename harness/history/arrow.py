"""Writes the tables of :mod:`harness.history.schema` as Parquet files, by their Arrow schemas.

A file is written under another name and renamed when complete, so a table's file is whole, however the writer ended.
"""

from __future__ import annotations

import itertools
from array import array
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
            columns = {name: [row.get(name) for row in group] for name in names}
            writer.write_table(_arrow(table, [Block({}, columns, len(group))]))


def write_file(table: Table, path: Path, blocks: Sequence[Block]) -> None:
    """Write the rows of ``blocks``, at least one, as the whole Parquet file ``path``, of one row group.

    Raises:
        AssertionError: a column that must not be null holds None.
    """
    with _writer(table, path) as writer:
        writer.write_table(_arrow(table, blocks))


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
    left = iter(blocks)
    with unfinished_directory(directory) as temporary:
        for number in itertools.count():
            with _writer(table, temporary / f"part-{number:05d}.parquet") as writer:
                is_full = _write_groups(table, writer, left)
            if not is_full:
                return


def _write_groups(table: Table, writer: pq.ParquetWriter, blocks: Iterator[Block]) -> bool:
    """Write blocks into a file until it has ``FILE_ROWS`` rows; whether it has, and there may be more blocks."""
    written = held = 0
    group: list[Block] = []
    for block in blocks:
        group.append(block)
        held += block.count
        if held >= ROW_GROUP:
            writer.write_table(_arrow(table, group))
            written, held, group = written + held, 0, []
        if written >= FILE_ROWS:
            return True
    if held:
        writer.write_table(_arrow(table, group))
    return False


def _arrow(table: Table, blocks: Sequence[Block]) -> pa.Table:
    """What ``blocks`` hold; a value that all rows of a block have is not made once for each."""
    schema = arrow_schema(table)
    columns = [pa.chunked_array([_array(field, one) for one in blocks], type=field.type) for field in schema]
    for field, column in zip(schema, columns, strict=True):
        assert field.nullable or not column.null_count, f"{table.name}.{field.name} must not be null"
    return pa.Table.from_arrays(columns, schema=schema)


def _array(field: pa.Field, block: Block) -> pa.Array:
    values = block.columns.get(field.name)
    if values is not None:
        if isinstance(values, range) and field.type == pa.int64():
            return pa.Array.from_buffers(field.type, block.count, [None, pa.py_buffer(array("q", values))])
        return pa.array(values, type=field.type)
    same = block.same.get(field.name)
    if same is None:
        return pa.nulls(block.count, field.type)
    return pa.repeat(pa.scalar(same, type=field.type), block.count)


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
