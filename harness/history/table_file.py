"""Reads and validates one Parquet file of a table within memory limits.

Parquet compresses repeated values to nothing, so neither the size of a file nor the number of its rows bounds the
memory that it needs. This module reads a file a batch at a time, with texts as references into a dictionary, and checks
the size of a batch before it expands the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import IOBase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.documents import Unfit, require_regular
from harness.errors import InvalidRun, UsageError
from harness.history.arrow import arrow_schema
from harness.history.forms import breach
from harness.history.schema import FAULTS, Table

MOST_ROWS: Mapping[str, int] = MappingProxyType({FAULTS.name: 100_000})
"""The most rows read into memory, by table; of others :data:`MOST_ROWS_OF_OTHERS`."""

MOST_ROWS_OF_OTHERS = 2_000_000
MOST_BYTES = 1 << 30
"""The most memory for the rows of a table in Arrow's format when all of it is read at once."""

MOST_TEXT_BYTES = 1 << 20
"""The greatest length of a text."""

_MOST_BATCH_BYTES = 256 << 20
_MOST_CHUNK_BYTES = 512 << 20
_MOST_VALUES_PER_ROW = 1_024


class TooManyRows(UsageError):
    """A table has more rows than the limit for memory; Spark reads it in parts."""


def require_readable(table: Table, path: Path | str, file: IOBase | None = None) -> int:
    """Validate the footer of a Parquet file, without reading its rows.

    Args:
        table: the expected table.
        path: of the file.
        file: the open file, where ``path`` is not on this machine.

    Returns:
        the number of its rows.

    Raises:
        InvalidRun: the file is truncated or is not the table; names the file.
    """
    footer, schema = _footer(path, file)
    missing = [f.name for f in arrow_schema(table) if f.name not in schema.names]
    if missing:
        raise InvalidRun(f"{path} lacks column {', '.join(missing)} of the table {table.name}.")
    names = Counter(schema.names)
    wanted = arrow_schema(table)
    for column in table.columns:
        if names[column.name] > 1:
            raise InvalidRun(f"{path} has column {column.name} of the table {table.name} more than once.")
        found = schema.field(column.name).type
        if found != wanted.field(column.name).type:
            raise InvalidRun(
                f"{path}: column {column.name} of the table {table.name} is of type {found}, not {column.type}."
            )
    _require_consistent(footer, path)
    return int(footer.num_rows)


def require_rows_of(run: str, table: Table, path: Path) -> int:
    """Read every page of a Parquet file, a batch at a time, and check the run and the schema of every row.

    Returns:
        the number of its rows.

    Raises:
        InvalidRun: a page cannot be read, a row is of another run, or breaks the schema; names the file.
    """
    rows = require_readable(table, path)
    for batch in _checked(table, path):
        _require_run(run, batch.column("run"), path)
    return rows


def require_sound(table: Table, path: str, file: IOBase) -> None:
    """Read every page of a Parquet file that is not on this machine, and check its rows.

    Raises:
        InvalidRun: a row breaks the schema; names the file.
    """
    for _ in _checked(table, path, file):
        pass


def read_files(table: Table, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The rows of files of ``table``, a file at a time; checks the memory limits first.

    Raises:
        TooManyRows: all of them together have too many.
        InvalidRun: as :func:`read_columns`.
    """
    require_few(table, sum(require_readable(table, path) for path in paths))
    for path in paths:
        yield from read_columns(table, path).to_pylist()


def read_columns(table: Table, path: Path | str, file: IOBase | None = None) -> pa.Table:
    """The rows of one file of ``table``, as Arrow's.

    Raises:
        TooManyRows: it has too many, or they take more than :data:`MOST_BYTES`.
        InvalidRun: the file is truncated, is not the table, or a row breaks the schema; names the file.
    """
    require_few(table, require_readable(table, path, file))
    schema, batches, size = arrow_schema(table), [], 0
    for batch in _checked(table, path, file):
        columns = [batch.column(name) for name in schema.names]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        size += batch.nbytes
        if size > MOST_BYTES:
            raise TooManyRows(f"{path}: its rows take more than the {MOST_BYTES:,} bytes that are read into memory.")
    return pa.Table.from_batches(batches, schema=schema)


def require_few(table: Table, rows: int) -> None:
    """Refuse a table with more rows than the limit for memory.

    Raises:
        TooManyRows: it has more.
    """
    most = MOST_ROWS.get(table.name, MOST_ROWS_OF_OTHERS)
    if rows > most:
        raise TooManyRows(
            f"the table {table.name} has {rows:,} rows, and at most {most:,} are read into memory.",
            "`seawall check` reads larger ones with Spark.",
        )


# ---------------------------------------------------------------------------------------------------------- the footer


def _footer(path: Path | str, file: IOBase | None) -> tuple[pq.FileMetaData, pa.Schema]:
    try:
        if file is None:
            require_regular(Path(path))
        footer = pq.read_metadata(path if file is None else file)
        return footer, footer.schema.to_arrow_schema()
    except Unfit as error:
        raise InvalidRun(f"{path} cannot be read: {error}.") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidRun(f"{path} is truncated or no Parquet file: {_first_line(error)}.") from error


def _require_consistent(footer: pq.FileMetaData, path: Path | str) -> None:
    """Refuse inconsistent or huge sizes: a reader allocates what the footer announces."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    if sum(group.num_rows for group in groups) != footer.num_rows:
        raise InvalidRun(f"{path}: its row groups have other than the {footer.num_rows:,} rows of the whole file.")
    for group in groups:
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.total_uncompressed_size > _MOST_CHUNK_BYTES:
                raise InvalidRun(
                    f"{path}: a row group has {chunk.total_uncompressed_size:,} bytes in column "
                    f"{chunk.path_in_schema}, and no more than {_MOST_CHUNK_BYTES:,} are read."
                )
            if chunk.num_values > _MOST_VALUES_PER_ROW * group.num_rows:
                raise InvalidRun(
                    f"{path}: a row group of {group.num_rows:,} rows has {chunk.num_values:,} values in column "
                    f"{chunk.path_in_schema}, which is more than {_MOST_VALUES_PER_ROW:,} for each."
                )


# ------------------------------------------------------------------------------------------------------------ the rows


def _checked(table: Table, path: Path | str, file: IOBase | None = None) -> Iterator[pa.RecordBatch]:
    try:
        before = 0
        for batch in _batches(table, path, file):
            batch.validate(full=True)
            _require_forms(table, batch, path, before)
            yield batch
            before += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidRun(f"{path} cannot be read: {_first_line(error)}.") from error


def _batches(table: Table, path: Path | str, file: IOBase | None) -> Iterator[pa.RecordBatch]:
    footer, _ = _footer(path, file)
    columns = [column.name for column in table.columns]
    leaves = map(footer.schema.column, range(footer.num_columns))
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and _root(leaf.path) in columns]
    source = path if file is None else file
    with pq.ParquetFile(source, page_checksum_verification=True, read_dictionary=texts) as content:
        for batch in content.iter_batches(columns=columns):
            yield _spelled_out(batch, path)


def _root(path: str) -> str:
    return path.partition(".")[0]


def _spelled_out(batch: pa.RecordBatch, path: Path | str) -> pa.RecordBatch:
    """The same rows with texts instead of references.

    Raises:
        InvalidRun: a text is too long, or all of them together.
    """
    size = sum(_text_bytes(column.flatten() if _is_list(column) else column, path) for column in batch.columns)
    if size > _MOST_BATCH_BYTES:
        raise InvalidRun(
            f"{path}: {batch.num_rows:,} of its rows have {size:,} bytes of text, and no more than "
            f"{_MOST_BATCH_BYTES:,} are read at once."
        )
    return pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], batch.schema.names)


def _text_bytes(column: pa.Array, path: Path | str) -> int:
    if not pa.types.is_dictionary(column.type) or not len(column.dictionary):
        return 0
    lengths = pc.binary_length(column.dictionary)
    longest = pc.max(lengths).as_py()
    if longest > MOST_TEXT_BYTES:
        raise InvalidRun(f"{path} has a text of {longest:,} bytes, and the longest may have {MOST_TEXT_BYTES:,}.")
    return int(pc.sum(pc.take(lengths, column.indices)).as_py() or 0)


def _plain(column: pa.Array) -> pa.Array:
    if _is_list(column) and pa.types.is_dictionary(column.type.value_type):
        return column.cast(pa.list_(column.type.value_type.value_type))
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_list(column: pa.Array) -> bool:
    return bool(pa.types.is_list(column.type))


def _require_forms(table: Table, rows: pa.RecordBatch, path: Path | str, before: int) -> None:
    found = breach(table, rows)
    if found is not None:
        raise InvalidRun(f"{path}: row {before + found.row} {found.says}.")


def _require_run(run: str, names: pa.Array, path: Path) -> None:
    foreign = sorted(set(names.unique().to_pylist()) - {run}, key=str)
    if foreign:
        raise InvalidRun(f"{path}: rows of run {foreign[0]!r} in the directory of run {run!r}.")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
