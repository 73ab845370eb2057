"""Many small Parquet files as few: to open a file takes Spark longer than to read its rows.

A recorder writes a file each second or two, so that an hour is thousands of them, and some thirty jobs open them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Up to how many bytes of Parquet, per file on average, the files of a table are packed."""

_PACK = 16 * 1024 * 1024
"""Up to how many bytes of Parquet become one file: they are in memory meanwhile."""


@contextmanager
def packed(spark: SparkSession, files: Mapping[str, Sequence[TableFile]]) -> Iterator[dict[str, Sequence[TableFile]]]:
    """``files`` by table; a table's rows are in fewer, temporary files, in their order, where that is faster.

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
        yield {**files, **{name: _packed(TABLES[name], several, path) for name, several in paying.items()}}


def _pays(files: Sequence[TableFile]) -> bool:
    small = sum(file.size for file in files) <= _MOST_PER_FILE * len(files)
    return len(files) > _FEW and small and all(map(is_local, files))


def _packed(table: Table, files: Sequence[TableFile], directory: Path) -> Sequence[TableFile]:
    done: list[TableFile] = []
    try:
        for pack in _packs(files):
            path = directory / f"{table.name}-{len(done):05d}.parquet"
            done.append(pack[0] if len(pack) == 1 else _written(table, pack, path))
    except (pa.ArrowException, OSError, KeyError):  # KeyError: a file lacks a column
        return files
    return done


def _packs(files: Sequence[TableFile]) -> Iterator[list[TableFile]]:
    """``files`` in order, as many together as have ``_PACK`` bytes at most; a larger one is alone."""
    pack: list[TableFile] = []
    size = 0
    for file in files:
        if pack and size + file.size > _PACK:
            yield pack
            pack, size = [], 0
        pack.append(file)
        size += file.size
    yield pack


def _written(table: Table, pack: Iterable[TableFile], path: Path) -> TableFile:
    rows = pa.concat_tables([_rows(table, local_path(file)) for file in pack])
    pq.write_table(rows, path, row_group_size=ROW_GROUP)
    [file] = local_files([path])
    return file


def _rows(table: Table, path: Path) -> pa.Table:
    """The rows of a file; Spark, too, reads every column as one that may be null."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(table)])
    with pq.ParquetFile(path) as content:
        rows = content.read(schema.names, use_threads=False).select(schema.names)
    if rows.schema.types != schema.types:
        raise pa.ArrowInvalid(f"{path} has other types of columns than {table.name}")
    return rows.cast(schema)
