"""The directory of one run: ``run.json``, the tables, the brokers' logs, the verdict and the report.

::

    run.json                  what was run, and how far it came
    history/part-*.parquet    what the clients did and saw
    timeline/part-*.parquet   the nodes' states and the controller's decisions
    replica_logs/part-*.parquet   what was on the brokers' disks at the end
    faults.parquet            what was done to the nodes
    wire/part-*.parquet       requests and responses, of a run with a wire tap
    broker_logs/              the nodes' own log output
    cluster/                  the nodes' own files
    schedule_log.json                what the schedule did and saw, by the names that the scenario gives
    verdict.json              the checker's verdict
    report.html               for people
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from harness import documents
from harness.clock import Clock
from harness.documents import Unfit
from harness.errors import InvalidRun, UsageError
from harness.history.arrow import write_blocks, write_rows
from harness.history.blocks import Block
from harness.history.recorder import Recorder
from harness.history.run_json import (
    Configuration,
    EndingDocument,
    Guarantees,
    OrderDocument,
    PredictionDocument,
    ProgramDocument,
    Seconds,
    TableSize,
    UnknownTopicDocument,
    UnrestDocument,
)
from harness.history.schedule_log_json import ScheduleLogDocument
from harness.history.schema import EVERY_TABLE, FORMAT_VERSION, TABLES, Table
from harness.history.table_file import read_files, require_readable
from harness.json_schema import Shape, published, schema_of
from harness.scratch import unfinished
from harness.unwritable import unwritable, writing_below
from harness.validation import Document, shortened, validated

SCHEMA: Final = "run-1.json"
"""The schema of ``run.json``, below ``docs/schemas``."""

_LAST_WORDS_BYTES = 256 * 1024

RunState = Literal["running", "complete", "interrupted", "abandoned"]
"""``running`` is also the state of a killed run; the user stopped an ``interrupted`` one, an error an ``abandoned``."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """``run.json``: what was run, with every default resolved, so that it can be run again.

    Attributes:
        run: the run's id; the same as in every row of every table.
        scenario: the scenario's name.
        seed: of everything that was drawn.
        started_wall: when it started, ISO 8601 with offset.
        state: how far it came.
        versions: of seawall, Python, the target, the clients ... by name.
        generation: the replication protocol's generation, of real Kafka the release's; empty of an imported history.
        configuration: the resolved scenario: target, settings, knobs, topics, workload, faults.
        predictions: ``{kind, topic, partition, offset, verdict}``; a field that is missing or None matches anything,
            but a missing verdict is ``VIOLATION``.
        guarantees: what the configuration promises:
            ``{"min_insync_replicas": 2, "unclean_election": false, "retention": false}``.
        unrest: if the healed cluster did not recover although no probe blames the environment, what the runner saw
            (:meth:`harness.runner.unrest.Unrest.to_json`); else empty.
        endings: the exits of nodes that the harness did not order, with the fields of :class:`harness.target.Ending`.
        unknown_topics: the topics of the run that the cluster did not know in the end; asked for where its nodes cannot
            be probed.
        unrecovered: what the healed cluster still lacked when it had got no nearer to recovery for a while, one phrase
            each; noted where its nodes cannot be probed, so that the environment may be to blame.
        orders: every DeleteRecords that a client sent, and how it ended
            (:class:`harness.history.delete_records_log.DeleteRecordsLog`); None: unknown.
        program: what is known of a user's program besides its output, see :class:`ProgramDocument`; empty: there was
            none.
        duration_s: seconds from start to the last collected row; None while running.
        why: one sentence on why the run is not ``complete``; empty when it is.
        tables: the size of each table when the run had ended, ``{"rows": 41210, "parts": 3}``; empty before, and in
            runs of older versions.
        format: the version of the tables (``schema.FORMAT_VERSION``).
        schema_version: of this document.
    """

    run: str
    scenario: str
    seed: int
    started_wall: str
    state: RunState = "running"
    versions: Mapping[str, str] = field(default_factory=dict)
    generation: str = ""
    configuration: Annotated[Mapping[str, Any], Shape(Configuration)] = field(default_factory=dict)
    predictions: Annotated[Sequence[Mapping[str, Any]], Shape(tuple[PredictionDocument, ...])] = ()
    guarantees: Annotated[Mapping[str, Any], Shape(Guarantees)] = field(default_factory=dict)
    unrest: Annotated[Mapping[str, Any], Shape(UnrestDocument)] = field(default_factory=dict)
    endings: Annotated[Sequence[Mapping[str, Any]], Shape(tuple[EndingDocument, ...])] = field(default_factory=list)
    unknown_topics: Annotated[Sequence[Mapping[str, Any]], Shape(tuple[UnknownTopicDocument, ...])] = field(
        default_factory=list
    )
    unrecovered: Sequence[str] = field(default_factory=list)
    orders: Annotated[Sequence[Mapping[str, Any]] | None, Shape(tuple[OrderDocument, ...] | None)] = None
    program: Annotated[Mapping[str, Any], Shape(ProgramDocument)] = field(default_factory=dict)
    duration_s: Seconds | None = None
    why: str = ""
    tables: Annotated[Mapping[str, Mapping[str, int]], Shape(Mapping[str, TableSize])] = field(default_factory=dict)
    format: int = FORMAT_VERSION
    schema_version: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The run directory ``path``; make one with :meth:`create` or :meth:`open`."""

    path: Path

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """A new run directory.

        Raises:
            EnvironmentFault: ``path`` exists already or cannot be created.
        """
        try:
            path.mkdir(parents=True)
            for name in ("history", "timeline", "replica_logs", "broker_logs"):
                (path / name).mkdir()
        except OSError as error:
            raise unwritable(path, error, "cannot be created") from error
        directory = cls(path)
        directory.write_manifest(manifest)
        return directory

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run directory.

        Raises:
            InvalidRun: its ``run.json`` is missing, broken, of another format or not what it should be.
        """
        directory = cls(path)
        directory.manifest()
        return directory

    def keep_room(self) -> None:
        """Reserve disk space until the run ends, so that its end can be recorded on a full disk.

        Raises:
            EnvironmentFault: there is not enough space for that.
        """
        with writing_below(self.path):
            self._reserve.write_bytes(bytes(_LAST_WORDS_BYTES))

    def make_room(self) -> None:
        """Free the space that :meth:`keep_room` has reserved; idempotent."""
        self._reserve.unlink(missing_ok=True)

    def remove_partial(self) -> None:
        """Remove what a killed harness had begun to write; see :func:`harness.scratch.unfinished`."""
        for path in self.path.glob(".*.partial"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    @property
    def _reserve(self) -> Path:
        return self.path / ".reserve"

    # -------------------------------------------------------------------------------------------------- run.json

    def manifest(self) -> Manifest:
        """The current ``run.json``.

        Raises:
            InvalidRun: it is missing, broken, of another format or not what it should be.
        """
        path = self.path / "run.json"
        return manifest_of(_read_json(path), path)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace ``run.json``."""
        _write_json(self.path / "run.json", asdict(manifest))

    def finish(self, state: RunState, duration_s: float, why: str = "") -> None:
        """Record how the run ended, the reason unless it is ``complete``, and the size of every table."""
        known = {name: self._counted(name) for name in EVERY_TABLE}
        tables = {name: counted for name, counted in known.items() if counted is not None}
        self.write_manifest(replace(self.manifest(), state=state, duration_s=duration_s, why=why, tables=tables))

    def _counted(self, name: str) -> dict[str, int] | None:
        """The number of rows and files of the table; None: it is missing or unreadable."""
        try:
            rows = [require_readable(EVERY_TABLE[name], path) for path in self.table_files(name)]
        except InvalidRun:
            return None
        return {"rows": sum(rows), "parts": len(rows)}

    # ---------------------------------------------------------------------------------------------------- tables

    def recorder(self, clock: Clock) -> Recorder:
        """The recorder of this run's client history; make only one."""
        return Recorder(self.manifest().run, self.path / TABLES["history"].path, clock)

    def write_table(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the whole table ``name``, but not ``history``; replaces an older one."""
        table = EVERY_TABLE[name]
        path = self.path / _file_name(table)
        path.parent.mkdir(exist_ok=True)
        write_rows(table, path, rows)

    def write_blocks(self, name: str, blocks: Iterable[Block]) -> None:
        """Write the whole table ``name`` from blocks of this run's rows, minus ``run``; replaces an older one."""
        table, run = EVERY_TABLE[name], self.manifest().run
        write_blocks(table, self.path / table.path, (block.but(run=run) for block in blocks))

    def read_table(self, name: str) -> list[dict[str, Any]]:
        """Every row of the table ``name``, in the order of its files.

        Raises:
            InvalidRun: the table is missing, or a file of it is truncated, has other columns or a row that breaks the
                schema; names the file.
            TooManyRows: there are more rows than the limit for memory.
        """
        return list(read_files(EVERY_TABLE[name], self.table_files(name)))

    def table_files(self, name: str) -> list[Path]:
        """The files of the table ``name``, in order; at least one.

        Raises:
            InvalidRun: there is none.
        """
        files = self._files(name)
        if not files:
            raise InvalidRun(f"{self.path / _file_name(EVERY_TABLE[name])} is missing: the run did not come that far.")
        return files

    def has_table(self, name: str) -> bool:
        """Whether there is any file of the table ``name``."""
        return bool(self._files(name))

    def _files(self, name: str) -> list[Path]:
        path = self.path / EVERY_TABLE[name].path
        return [path] if path.is_file() else sorted(path.glob("part-*.parquet"))

    # --------------------------------------------------------------------------------------------------- results

    @property
    def broker_logs(self) -> Path:
        """The directory of the nodes' own log output."""
        return self.path / "broker_logs"

    @property
    def cluster(self) -> Path:
        """The directory of the nodes' files, each node's below its name; exists once they have been started."""
        return self.path / "cluster"

    @property
    def report_path(self) -> Path:
        """The report for people."""
        return self.path / "report.html"

    @property
    def verdict_path(self) -> Path:
        """The checker's verdict; ``harness.checker.to_json`` and ``from_json`` are its codec."""
        return self.path / "verdict.json"

    def write_schedule_log(self, document: Mapping[str, Any]) -> None:
        """Replace ``schedule_log.json``: what the schedule did and saw, by the names that the scenario gives."""
        _write_json(self.path / "schedule_log.json", document)

    def read_schedule_log(self) -> dict[str, Any]:
        """``schedule_log.json`` as plain data.

        Raises:
            InvalidRun: it is missing, broken or not what it should be.
        """
        path = self.path / "schedule_log.json"
        document = _read_json(path)
        try:
            validated(ScheduleLogDocument, document, "")
        except UsageError as error:
            raise InvalidRun(f"{path}: {error.sentence}") from None
        return document

    def write_verdict(self, document: Mapping[str, Any]) -> None:
        """Replace ``verdict.json``."""
        _write_json(self.verdict_path, document)

    def read_verdict(self) -> dict[str, Any] | None:
        """``verdict.json`` as plain data; None when the run has not been checked.

        Raises:
            InvalidRun: it is broken.
        """
        return _read_json(self.verdict_path) if self.verdict_path.exists() else None


def manifest_of(document: Mapping[str, Any], path: object) -> Manifest:
    """The manifest in ``run.json``, whose place is ``path``.

    Raises:
        InvalidRun: it has another format, a key is missing, or a value is wrong; names the key.
    """
    if document.get("format") != FORMAT_VERSION:
        raise InvalidRun(
            f"{path}: format {shortened(document.get('format'))} is not this version's {FORMAT_VERSION}.",
            "Check it with the version of seawall that recorded it.",
        )
    try:
        validated(_Document, document, "", whole="it")
        known = {f.name for f in fields(Manifest)}
        return Manifest(**{key: value for key, value in document.items() if key in known})
    except UsageError as error:
        raise InvalidRun(f"{path}: {error.sentence}") from None


def manifest_schema() -> str:
    """The JSON Schema of ``run.json``, as ``docs/schemas/run-1.json`` has it."""
    return published(SCHEMA, "run.json of a run directory of seawall", schema_of(Manifest))


class _Document(Document[Manifest]):
    """``run.json`` with validated types."""


def _file_name(table: Table) -> str:
    return table.path if table.path.endswith(".parquet") else f"{table.path}/part-00000.parquet"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = documents.json_file(path)
    except FileNotFoundError as error:
        raise InvalidRun(f"{path} is missing: this is not a run directory.") from error
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidRun(f"{path} cannot be read: {reason}.") from error
    if not isinstance(document, dict):
        raise InvalidRun(f"{path} does not hold a JSON object.")
    return document


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    with unfinished(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n")
