"""Many small Parquet files as one file for each table: to open a file takes Spark longer than to read its few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from harness.history.arrow import ROW_GROUP, arrow_schema
from harness.history.schema import TABLES, Table
from spark_analysis.files import TableFile, is_local, local_files, local_path

_FEW = 8
"""Up to how many files of a table are left as they are."""

_MOST_PER_FILE = 64 * 1024
_MOST = 16 * 1024 * 1024
"""Up to how many bytes of Parquet, per file on average and in all, a table's files are packed: they are in memory."""


@contextmanager
def packed(spark: SparkSession, files: Mapping[str, Sequence[TableFile]]) -> Iterator[dict[str, Sequence[TableFile]]]:
    """``files`` by table, or meanwhile a temporary file with the rows of all of a table's, where that is faster.

    Only files of this machine are packed, and only for a Spark that runs on it. What cannot be packed is left to Spark.
    """
    if not str(spark.sparkContext.master).startswith("local"):
        yield dict(files)
        return
    paying = {name: several for name, several in files.items() if _pays(several)}
    if not paying:
        yield dict(files)
        return
    try:
        temporary = TemporaryDirectory(prefix="packed-")
    except OSError:  # no space, say
        yield dict(files)
        return
    with temporary as directory:
        path = Path(directory)
        done = {name: _packed(TABLES[name], several, path / f"{name}.parquet") for name, several in paying.items()}
        yield {**files, **done}


def _pays(files: Sequence[TableFile]) -> bool:
    size = sum(file.size for file in files)
    small = size <= min(_MOST, _MOST_PER_FILE * len(files))
    return len(files) > _FEW and small and all(map(is_local, files))


def _packed(table: Table, files: Sequence[TableFile], path: Path) -> Sequence[TableFile]:
    try:
        pq.write_table(
            pa.concat_tables([_rows(table, local_path(file)) for file in files]), path, row_group_size=ROW_GROUP
        )
    except (pa.ArrowException, OSError, KeyError):  # KeyError: a file lacks a column
        return files
    return local_files([path])


def _rows(table: Table, path: Path) -> pa.Table:
    """The rows of a file; Spark, too, reads every column as one that may be null."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(table)])
    with pq.ParquetFile(path) as content:
        rows = content.read(schema.names, use_threads=False).select(schema.names)
    if rows.schema.types != schema.types:
        raise pa.ArrowInvalid(f"{path} has other types of columns than {table.name}")
    return rows.cast(schema)
