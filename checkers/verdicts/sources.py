"""Reads the evidence of a run from a directory of this machine, or of a file system that Hadoop knows."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from checkers.views.frames import DELETE_RECORDS, END_TXN
from checkers.views.row import Row, where
from harness.documents import Unfit, json_document
from harness.errors import InvalidRun
from harness.history.run_directory import Manifest, RunDirectory, manifest_of
from harness.history.schema import EVERY_TABLE, TABLES, WIRE, Table
from harness.history.seal import inputs
from harness.history.table_file import (
    TooManyRows,
    read_columns,
    read_files,
    require_few,
    require_readable,
    require_rows_of,
    require_sound,
)
from harness.model import CLIENTS, TopicPartition
from spark_analysis.files import TableFile, local_files, local_path, local_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_analysis.hadoop import Contents

ASKED = ("history", "timeline", "replica_logs")
"""The tables that engines query; the faults are few and read directly."""


class Opened(NamedTuple):
    """A run whose files have been checked.

    Attributes:
        files: by table, those that can be read.
        unreadable: by table, why others cannot, a sentence each.
        inputs: the digests of all of them, see ``harness.history.seal``; empty where they are not on this machine.
    """

    manifest: Manifest
    files: Mapping[str, Sequence[TableFile]]
    unreadable: Mapping[str, Sequence[str]]
    faults: Sequence[Row]
    inputs: Mapping[str, str]


class Source(Protocol):
    """Where the evidence of a run is."""

    @property
    def where(self) -> str:
        """Its path or URI."""

    @property
    def uri(self) -> str:
        """Its URI."""

    def opened(self) -> Opened:
        """Look through all of its files.

        Raises:
            InvalidRun: it is no run directory, or of another format.
        """

    def write_verdict(self, document: Mapping[str, Any]) -> None:
        """Replace ``verdict.json``."""


class LocalRun:
    """A run directory of this machine."""

    def __init__(self, path: Path) -> None:
        self._directory = RunDirectory.open(path)

    @property
    def where(self) -> str:
        """Its path."""
        return str(self._directory.path)

    @property
    def uri(self) -> str:
        """The same for Spark."""
        return local_uri(self._directory.path)

    def size(self) -> int:
        """The size in bytes of the tables that engines query."""
        return sum(path.stat().st_size for name in ASKED for path in self._paths(name)[0])

    def opened(self) -> Opened:
        """Look through all of its files, several at a time."""
        sealed = inputs(self._directory)
        manifest = self._directory.manifest()
        files: dict[str, list[TableFile]] = {}
        unreadable: dict[str, list[str]] = {}
        with ThreadPoolExecutor(os.cpu_count(), "read") as pool:
            for name, table in _recorded(manifest).items():
                paths, lacking = self._paths(name)
                looked = list(pool.map(partial(_looked_at, manifest.run, table), paths))
                rows = [found for found in looked if isinstance(found, int)]
                files[name] = local_files(path for path, it in zip(paths, looked, strict=True) if isinstance(it, int))
                broken = [*lacking, *(why for why in looked if isinstance(why, str))]
                unreadable[name] = broken or lacking_rows(manifest, name, rows)
        return Opened(manifest, files, unreadable, _faults(files, unreadable), sealed)

    def write_verdict(self, document: Mapping[str, Any]) -> None:
        """Replace ``verdict.json``."""
        self._directory.write_verdict(document)

    def _paths(self, name: str) -> tuple[list[Path], list[str]]:
        """The files of a table, and why there is none."""
        try:
            return self._directory.table_files(name), []
        except InvalidRun as error:
            return [], [error.sentence]


def rows_of(files: Mapping[str, Sequence[TableFile]], name: str) -> list[Row]:
    """Every row of a table whose files are on this machine.

    Raises:
        TooManyRows: there are more than are read into memory.
    """
    return list(read_files(EVERY_TABLE[name], list(map(local_path, files[name]))))


def _recorded(manifest: Manifest) -> Mapping[str, Table]:
    """The tables that the run must have."""
    return EVERY_TABLE if is_tapped(manifest) else TABLES


def is_tapped(manifest: Manifest) -> bool:
    """Whether the run had a wire tap."""
    return bool(manifest.configuration.get("scenario", {}).get("tap"))


def frames_of(files: Sequence[TableFile], places: Collection[TopicPartition]) -> tuple[list[Row], set[str]]:
    """What a wire tap has recorded of some partitions from and to clients, and the APIs of which it missed something.

    Of DeleteRecords it is what it has recorded of every partition: rules on facts find later what is wrong with them.
    Holds a file at a time in Arrow's format. An API that is not known is "".

    Raises:
        TooManyRows: a file has more rows than are read into memory.
    """
    found: list[Row] = []
    blind: set[str] = set()
    for file in files:
        rows = read_columns(WIRE, local_path(file))
        of_clients = rows.filter(pc.equal(rows["peer"], CLIENTS))
        unnamed = pc.and_(pc.is_null(of_clients["topic"]), pc.is_valid(of_clients["partition"]))
        odd = of_clients.filter(pc.or_(pc.is_valid(of_clients["problem"]), unnamed))
        blind |= {api or "" for api in odd["api"].unique().to_pylist()}
        topics = pa.array(sorted({place.topic for place in places}), pa.string())
        anywhere = pa.array([END_TXN, DELETE_RECORDS], pa.string())
        named = pc.or_(pc.is_in(of_clients["topic"], value_set=topics), pc.is_in(of_clients["api"], value_set=anywhere))
        several = of_clients.filter(named).to_pylist()
        found += [
            row for row in several if row["topic"] is None or row["api"] == DELETE_RECORDS or where(row) in places
        ]
    return found, blind


def _faults(files: Mapping[str, Sequence[TableFile]], unreadable: dict[str, list[str]]) -> list[Row]:
    """Every fault; none where there are too many to be held, and then that is why the table is unreadable."""
    try:
        return rows_of(files, "faults")
    except TooManyRows as error:
        unreadable["faults"].append(f"The faults are not looked at: {error.sentence}")
        return []


def lacking_rows(manifest: Manifest, name: str, rows: Sequence[int]) -> list[str]:
    """A sentence when a table does not have as many rows as when the run ended; ``rows``: of each of its files.

    The number of files does not count: large runs are rewritten into fewer.
    """
    found = manifest.tables.get(name)
    if found is None or found.get("rows") == sum(rows):
        return []
    had = f"run.json says {found.get('rows')} rows in {found.get('parts')}"
    return [f"The table {name} has {sum(rows)} rows in {len(rows)} files, where {had}."]


def _looked_at(run: str, table: Table, path: Path) -> int | str:
    """How many rows a file has, or why it cannot be used."""
    try:
        return require_rows_of(run, table, path)
    except InvalidRun as error:
        return error.sentence


class HadoopRun:
    """A run directory of a file system that Hadoop knows. Spark reads what is large; the driver only what is small."""

    def __init__(self, uri: str, spark: SparkSession) -> None:
        from spark_analysis.hadoop import Directory  # noqa: PLC0415 - only here Spark is needed

        self._directory = Directory(spark, uri)
        self._spark = spark

    @property
    def where(self) -> str:
        """Its URI."""
        return self._directory.uri

    @property
    def uri(self) -> str:
        """Its URI."""
        return self._directory.uri

    def opened(self) -> Opened:
        """Look at the footers of all of its files, and have Spark read all of their pages."""
        manifest = self._manifest()
        files: dict[str, list[TableFile]] = {}
        unreadable: dict[str, list[str]] = {}
        for name, table in _recorded(manifest).items():
            pattern = table.path if table.path.endswith(".parquet") else f"{table.path}/part-*.parquet"
            found = self._directory.files(pattern)
            whole, unreadable[name] = self._whole(table, found)
            files[name], broken = self._readable(manifest.run, table, list(whole))
            unreadable[name] += broken
            if not found:
                unreadable[name].append(f"{self.where}/{pattern} is missing: the run did not come that far.")
            unreadable[name] = unreadable[name] or lacking_rows(manifest, name, list(whole.values()))
        return Opened(manifest, files, unreadable, self._faults(files["faults"], unreadable), {})

    def write_verdict(self, document: Mapping[str, Any]) -> None:
        """Replace ``verdict.json``."""
        self._directory.write("verdict.json", (json.dumps(document, indent=1) + "\n").encode())

    def _manifest(self) -> Manifest:
        path = f"{self.where}/run.json"
        content = self._directory.read("run.json")
        if content is None:
            raise InvalidRun(f"{path} is missing: this is not a run directory.")
        try:
            document = json_document(content)
        except Unfit as error:
            raise InvalidRun(f"{path} cannot be read: {error}.") from error
        if not isinstance(document, dict):
            raise InvalidRun(f"{path} does not hold a JSON object.")
        return manifest_of(document, path)

    def _whole(self, table: Table, files: Sequence[TableFile]) -> tuple[dict[TableFile, int], list[str]]:
        """The files whose footers fit the table, with their rows, and why others do not."""
        whole: dict[TableFile, int] = {}
        reasons = []
        for file in files:
            try:
                with self._directory.open(file) as content:
                    whole[file] = require_readable(table, file.uri, content)
            except InvalidRun as error:
                reasons.append(error.sentence)
        return whole, reasons

    def _readable(self, run: str, table: Table, files: Sequence[TableFile]) -> tuple[list[TableFile], list[str]]:
        """The files all of whose pages can be read, are of the run and sound, and why others are not."""
        from spark_analysis.hadoop import Damaged, contents  # noqa: PLC0415 - only here Spark is needed

        sound, reasons = list(files), []
        while sound:
            try:
                found = contents(self._spark, table, sound)
            except Damaged as error:
                sound.remove(error.file)
                reasons.append(f"{error.file.uri} cannot be read: {error}.")
                continue
            broken = {file: why for file in sound if (why := self._why_broken(run, table, file, found.get(file)))}
            return [file for file in sound if file not in broken], [*reasons, *broken.values()]
        return sound, reasons

    def _why_broken(self, run: str, table: Table, file: TableFile, found: Contents | None) -> str:
        """Why a file is none of the run's, or not sound; empty: it is.

        What engines count and put in order may be large, and then only Spark reads all of it; the rest is small.
        """
        if found is None:
            return ""
        if found.strange or any(column.holds is not None for column in table.columns):
            try:
                with self._directory.open(file) as content:
                    require_sound(table, file.uri, content)
            except InvalidRun as error:
                return error.sentence
        others = found.runs - {run}
        return f"{file.uri}: rows of run {min(others)!r} in the directory of run {run!r}." if others else ""

    def _faults(self, files: Sequence[TableFile], unreadable: dict[str, list[str]]) -> list[Row]:
        """As for a directory of this machine."""
        table, rows = TABLES["faults"], []
        try:
            for file in files:
                with self._directory.open(file) as content:
                    rows += read_columns(table, file.uri, content).to_pylist()
                require_few(table, len(rows))
        except TooManyRows as error:
            unreadable["faults"].append(f"The faults are not looked at: {error.sentence}")
            return []
        return rows
