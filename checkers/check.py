"""Checking runs: from run directories to verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from checkers import reference
from checkers.judge import Evidence, judge
from checkers.recovery import healed_ns
from checkers.rows import Row, RunRows
from checkers.witnesses import Witnesses
from harness.checker import RunVerdict, to_json
from harness.errors import InvalidRun, UsageError
from harness.history import Manifest, RunDirectory
from harness.history.run_directory import read_file, require_rows_of
from harness.history.schema import TABLES
from spark_analysis.answer import Answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["spark", "reference"]

ASKED = ("history", "timeline", "replica_logs")
"""The tables that engines are asked about; the faults are few."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, opened: its files that can be read, and why others cannot."""

    directory: RunDirectory
    manifest: Manifest
    files: Mapping[str, Sequence[Path]]
    unreadable: Mapping[str, Sequence[str]]
    faults: Sequence[Row]


def check(
    run_dirs: Sequence[Path],
    engine: Engine = "spark",
    master: str | None = None,
    session: SparkSession | None = None,
) -> list[RunVerdict]:
    """Check runs and write each one's ``verdict.json``.

    Args:
        run_dirs: the run directories; all are checked in one job.
        engine: ``spark``, or ``reference``: plain Python in memory, without Java.
        master: the Spark master's URL; None: this machine. Ignored when ``session`` is given.
        session: the Spark session to use; None: the process's own.

    Returns:
        one verdict per run directory, in their order.

    Raises:
        InvalidRun: a directory is no run directory, or of another format. (Missing and truncated tables make an
            INVALID verdict instead.)
        UsageError: two directories hold the same run.
        EnvironmentFault: there is no Java for Spark.
    """
    runs = [_open(RunDirectory.open(path)) for path in run_dirs]
    _require_distinct(runs)
    answers, witnesses = _ask_reference(runs) if engine == "reference" else _ask_spark(runs, master, session)
    verdicts = []
    for run in runs:
        evidence = Evidence(run.manifest, run.faults, run.unreadable)
        verdict = judge(evidence, answers, witnesses[run.manifest.run], engine)
        run.directory.write_verdict(to_json(verdict))
        verdicts.append(verdict)
    return verdicts


def _open(directory: RunDirectory) -> _Run:
    manifest = directory.manifest()
    files: dict[str, list[Path]] = {}
    unreadable: dict[str, list[str]] = {}
    for name, table in TABLES.items():
        files[name], unreadable[name] = [], []
        try:
            for path in directory.table_files(name):
                try:
                    require_rows_of(manifest.run, table, path)
                    files[name].append(path)
                except InvalidRun as error:
                    unreadable[name].append(error.sentence)
        except InvalidRun as error:
            unreadable[name].append(error.sentence)
    faults = [row for path in files["faults"] for row in read_file(TABLES["faults"], path)]
    return _Run(directory, manifest, files, unreadable, faults)


def _require_distinct(runs: Sequence[_Run]) -> None:
    known: dict[str, Path] = {}
    for run in runs:
        name, path = run.manifest.run, run.directory.path
        if name in known:
            raise UsageError(f"{known[name]} and {path} hold the same run {name!r}.", "Name each run once.")
        known[name] = path


def _ask_reference(runs: Sequence[_Run]) -> tuple[Answers, dict[str, Witnesses]]:
    tables = []
    for run in runs:
        history, timeline, replica_logs = (_rows(run, name) for name in ASKED)
        tables.append(RunRows(run.manifest.run, history, timeline, replica_logs, healed_ns(run.faults)))
    witnesses = {
        rows.run: Witnesses(rows.history, rows.timeline, rows.replica_logs, run.faults)
        for rows, run in zip(tables, runs, strict=True)
    }
    return reference.answer(tables), witnesses


def _rows(run: _Run, name: str) -> list[Row]:
    return [row for path in run.files[name] for row in read_file(TABLES[name], path)]


def _ask_spark(
    runs: Sequence[_Run], master: str | None, session: SparkSession | None
) -> tuple[Answers, dict[str, Witnesses]]:
    # Spark is loaded only when it is wanted: the reference must work where it, or Java, does not.
    from spark_analysis import session as spark_session  # noqa: PLC0415
    from spark_analysis.answers import ask  # noqa: PLC0415

    spark = session or spark_session.session(master)
    names = [run.manifest.run for run in runs]
    files = {name: [path for run in runs for path in run.files[name]] for name in ASKED}
    healed = {run.manifest.run: at for run in runs if (at := healed_ns(run.faults)) is not None}
    answers, rows = ask(spark, names, files, healed)
    return answers, {run.manifest.run: _witnesses(rows.get(run.manifest.run, {}), run.faults) for run in runs}


def _witnesses(rows: Mapping[str, Sequence[Row]], faults: Sequence[Row]) -> Witnesses:
    return Witnesses(rows.get("history", ()), rows.get("timeline", ()), rows.get("replica_logs", ()), faults)
