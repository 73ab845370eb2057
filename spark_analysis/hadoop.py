"""Directories on any file system that Hadoop knows (``hdfs://``, ``s3a://``, ``viewfs://``, ``file://`` ...)."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from harness.errors import EnvironmentFault
from harness.history.forms import GIVEN, PLACED
from harness.history.schema import HISTORY, Table
from spark_analysis.files import TableFile, local_uri
from spark_analysis.tables import spark_schema

_BUFFER = 256 * 1024


class Damaged(Exception):
    """Spark failed to read ``file``."""

    def __init__(self, file: TableFile, reason: str) -> None:
        super().__init__(reason)
        self.file = file


class Directory:
    """The directory at ``uri``, as Spark's Hadoop client sees it from this machine."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no public way to Hadoop's file systems
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def read(self, name: str) -> bytes | None:
        """The whole file ``name``; None: there is none.

        Raises:
            EnvironmentFault: the file system does not answer.
        """
        path = self._path(name)
        try:
            system = path.getFileSystem(self._configuration)
            if not system.exists(path):
                return None
            stream = system.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _fault(self.uri, error) from error

    def write(self, name: str, content: bytes) -> None:
        """Replace the file ``name``; no reader sees half of it.

        Raises:
            EnvironmentFault: it cannot be written.
        """
        partial, path = self._path(f".{name}.partial"), self._path(name)
        try:
            system = path.getFileSystem(self._configuration)
            stream = system.create(partial, True)
            try:
                stream.write(content)
            finally:
                stream.close()
            system.delete(path, False)
            system.rename(partial, path)
        except Py4JJavaError as error:
            raise _fault(self.uri, error) from error

    def files(self, pattern: str) -> list[TableFile]:
        """The files that match ``pattern``, in order.

        Raises:
            EnvironmentFault: the file system does not answer.
        """
        path = self._path(pattern)
        try:
            found = path.getFileSystem(self._configuration).globStatus(path) or ()
            return sorted(TableFile(str(one.getPath().toString()), int(one.getLen())) for one in found)
        except Py4JJavaError as error:
            raise _fault(self.uri, error) from error

    def open(self, file: TableFile) -> io.RawIOBase:
        """A file to read parts of, such as its footer; whole files take long this way."""
        path = self._jvm.org.apache.hadoop.fs.Path(file.uri)
        return _File(path.getFileSystem(self._configuration).open(path), file.size, self._jvm)

    def remove(self) -> None:
        """Remove it with everything in it; what cannot be removed stays."""
        path = self._path("")
        try:
            path.getFileSystem(self._configuration).delete(path, True)
        except Py4JError:
            return

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.uri}/{name}" if name else self.uri)


class _File(io.RawIOBase):
    """A Hadoop stream as a file for pyarrow."""

    def __init__(self, stream: Any, size: int, jvm: Any) -> None:
        self._stream, self._size, self._jvm, self._position = stream, size, jvm, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._size - self._position, _BUFFER))
        if wanted:
            self._stream.seek(self._position)
            buffer[:wanted] = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(self._stream, wanted))
        self._position += wanted
        return wanted

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def temporary_directory(spark: SparkSession) -> str:
    """The URI of a new directory of this machine."""
    local = str(spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()).split(",")[0]
    return local_uri(Path(tempfile.mkdtemp(prefix="seawall-", dir=local)))


class Contents(NamedTuple):
    """A file's rows: their runs, of several the first and the last; and whether any breaks the schema.

    A ``strange`` row lacks what must be there, or has a word or a number outside of the schema; JSON and lists are not
    parsed.
    """

    runs: frozenset[str]
    strange: bool


def contents(spark: SparkSession, table: Table, files: Sequence[TableFile]) -> Mapping[TableFile, Contents]:
    """Read every page of the files, and return what rows each has; a file without rows is left out.

    Raises:
        Damaged: a page of a file cannot be read.
        EnvironmentFault: Spark itself failed.
    """
    reading = spark.read.schema(spark_schema(table)).option("parquet.page.verify-checksum.enabled", "true")
    rows = reading.parquet(*[file.literally for file in files])
    everything = f.bit_xor(f.xxhash64("*")).alias("everything")
    known = rows.groupBy(f.input_file_name().alias("file")).agg(
        f.min("run").alias("first"), f.max("run").alias("last"), f.max(_is_strange(table)).alias("strange"), everything
    )
    try:
        found = known.collect()
    except (Py4JError, PySparkException) as error:
        message = str(error)
        damaged = next((file for file in files if file.uri in message), None)
        if damaged is None:
            raise EnvironmentFault(f"Spark failed: {message.splitlines()[0].rstrip('.')}.") from error
        raise Damaged(damaged, message.splitlines()[0].rstrip(".")) from error
    named = {_place(unquote(row["file"])): row for row in found}
    whose = {file: named[place] for file in files if (place := _place(file.uri)) in named}
    return {file: Contents(frozenset({row["first"], row["last"]}), row["strange"]) for file, row in whose.items()}


def _place(uri: str) -> tuple[str, str]:
    """A URI without the slashes before its path: Hadoop writes ``file:/a`` where Spark writes ``file:///a``."""
    scheme, _, path = uri.partition(":")
    return scheme, path.lstrip("/")


def _is_strange(table: Table) -> Column:
    """Whether a row breaks the schema, as far as :class:`Contents` checks it."""
    wrong: list[Column] = []
    for column in table.columns:
        value = f.col(column.name)
        wrong += [] if column.nullable else [value.isNull()]
        wrong += [~value.isin(*column.words)] if column.words else []
        wrong += [] if column.least is None else [value < column.least]
        wrong += [] if column.most is None else [value > column.most]
    if table is HISTORY:
        placed = f.col("topic").isNotNull()
        given = (f.col("f") == "poll") & (f.col("type") != "invoke") & placed
        wrong += [placed != f.col("partition").isNotNull(), f.col("f").isin(*PLACED) & ~placed]
        wrong += [(f.col("f") == "send") & f.col("value").isNull()]
        wrong += [given & f.col(name).isNull() for name in GIVEN]
    return reduce(or_, [f.coalesce(one, f.lit(False)) for one in wrong])


def _fault(uri: str, error: Py4JJavaError) -> EnvironmentFault:
    reason = str(error.java_exception.toString()).splitlines()[0]
    return EnvironmentFault(f"{uri} cannot be used: {reason}.", "Is its file system configured (HADOOP_CONF_DIR)?")
