"""Checks runs: reads run directories, asks an engine the questions, and writes each run's ``verdict.json``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from checkers.reference import engine
from checkers.registry import RULES
from checkers.verdicts.evidence_tiers import reads_logs
from checkers.verdicts.judge import judge
from checkers.verdicts.memory import Tables, views_in_memory
from checkers.verdicts.severity import Evidence
from checkers.verdicts.sources import ASKED, HadoopRun, LocalRun, Opened, Source, frames_of, rows_of
from checkers.views.configured import is_sampled, is_virtual, isr_wanted, lag_allowed_ns, members_kept_ns
from checkers.views.expected import expected
from checkers.views.frames import Frames, not_understood
from checkers.views.proofs_match import filed
from checkers.views.recovery import comes_to_rest, healed_ns
from checkers.views.rotten_logs import rotten, swapped
from checkers.views.row import Row
from checkers.views.tombstones import tombstones_stay_ns
from checkers.views.witnesses import Witnesses
from harness.checker import RunVerdict, to_json
from harness.errors import UsageError
from harness.findings import Answers, Finding
from harness.history.schema import WIRE
from harness.history.seal import sealed
from harness.history.table_file import TooManyRows
from harness.model import TopicPartition
from spark_analysis.demands import Damage, Demands
from spark_analysis.files import RunFiles
from spark_analysis.installed import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["spark", "reference"]

Report = Callable[[str], None]
"""Called, from any thread, with what is done from now on; words for a status line."""

_UNKNOWN = 1 << 40
"""Assumed size in bytes where it cannot be known before Spark has started."""


def _silent(stage: str) -> None:
    """Prints nothing."""


def check(
    run_dirs: Sequence[Path | str],
    engine: Engine = "spark",
    master: str | None = None,
    session: SparkSession | None = None,
    report: Report = _silent,
) -> list[RunVerdict]:
    """Check runs and write each one's ``verdict.json``.

    Args:
        run_dirs: the run directories: paths of this machine, or URIs of a file system that Hadoop knows; all are
            checked in one job.
        engine: ``spark``, or ``reference``: plain Python in memory, without Java; it reads this machine's files alone.
        master: the Spark master's URL; None: this machine. Ignored when ``session`` is given.
        session: the Spark session to use; None: the process's own.
        report: see :data:`Report`.

    Returns:
        one verdict per run directory, in their order.

    Raises:
        InvalidRun: a directory is no run directory, or of another format. (Missing and truncated tables make an
            INVALID verdict instead.)
        UsageError: two directories hold the same run, or the reference is asked to read a URI.
        TooManyRows: the reference is asked about more than it holds in memory.
        EnvironmentFault: there is no PySpark, no Java for it, or a file system does not answer.
    """
    report("reading the files")
    if engine == "reference":
        sources, spark = _local(run_dirs), None
        runs = [source.opened() for source in sources]
    else:
        sources, runs, spark = _opened(run_dirs, master, session, report)
    _require_distinct(sources, runs)
    answers, witnesses = _ask_reference(runs, report) if spark is None else _ask_spark(sources, runs, spark, report)
    verdicts = []
    for number, (source, run) in enumerate(zip(sources, runs, strict=True), 1):
        report(f"judging run {number} of {len(runs)}" if len(runs) > 1 else "judging")
        evidence = Evidence(run.manifest, run.faults, run.unreadable)
        verdict = judge(evidence, answers, witnesses[run.manifest.run], engine)
        source.write_verdict(sealed(to_json(verdict), run.inputs))
        verdicts.append(verdict)
    return verdicts


def is_uri(place: Path | str) -> bool:
    """Whether this is a URI, and not a path of this machine."""
    return isinstance(place, str) and "://" in place


def _local(places: Sequence[Path | str]) -> list[Source]:
    for place in places:
        if is_uri(place):
            raise UsageError(f"{place} is not on this machine, and the reference reads nothing else.", "Use Spark.")
    return [LocalRun(Path(place)) for place in places]


def _opened(
    places: Sequence[Path | str], master: str | None, session: SparkSession | None, report: Report
) -> tuple[list[Source], list[Opened], SparkSession]:
    """The runs, looked through, and Spark; its JVM starts while the files of this machine are read."""
    local = {place: LocalRun(Path(place)) for place in places if not is_uri(place)}
    with ThreadPoolExecutor(1, "spark-start") as starting:
        size = _UNKNOWN if len(local) < len(places) else 0
        started = starting.submit(lambda: session or _session(master, list(local.values()), size))
        opened = {place: run.opened() for place, run in local.items()}
        report("starting Spark")
    spark = started.result()
    sources: list[Source] = [local[place] if place in local else HadoopRun(str(place), spark) for place in places]
    runs = [opened[place] if place in opened else at.opened() for place, at in zip(places, sources, strict=True)]
    return sources, runs, spark


def _session(master: str | None, local: Sequence[LocalRun], remote: int) -> SparkSession:
    # Spark is loaded only when it is wanted: the reference must work where it, or Java, does not.
    require_spark()
    from spark_analysis.session import session  # noqa: PLC0415
    from spark_analysis.sizing import are_large  # noqa: PLC0415

    size = remote + sum(run.size() for run in local)
    return session(master, size if are_large(size, len(local)) else 0)


def _require_distinct(sources: Sequence[Source], runs: Sequence[Opened]) -> None:
    known: dict[str, str] = {}
    for source, run in zip(sources, runs, strict=True):
        name, where = run.manifest.run, source.where
        if name in known:
            raise UsageError(f"{known[name]} and {where} hold the same run {name!r}.", "Name each run once.")
        known[name] = where


def _ask_reference(runs: Sequence[Opened], report: Report) -> tuple[Answers, dict[str, Witnesses]]:
    tables, views = [], []
    for run in runs:
        history, timeline, replica_logs = (_held(run, name) for name in ASKED)
        tables.append((history, timeline, replica_logs))
        views.append(views_in_memory(run.manifest, tables[-1], run.faults, faults_known=_are_faults_known(run)))
    answers = engine.answer(views, report)
    witnesses = {
        run.manifest.run: Witnesses(*_citable(held, run), run.faults, _frames(run, held, answers.findings))
        for held, run in zip(tables, runs, strict=True)
    }
    return answers, witnesses


def _frames(run: Opened, tables: Tables, findings: Sequence[Finding]) -> Frames | None:
    """The frames about the partitions of which something was found; None: there was no wire tap."""
    if WIRE.name not in run.files:
        return None
    places = {TopicPartition(one.topic, one.partition) for one in findings if one.run == run.manifest.run}
    try:
        wire, blind = frames_of(run.files[WIRE.name], places)
    except TooManyRows as error:
        raise TooManyRows(
            f"run {run.manifest.run}: {error.sentence}", "Check it with Spark (--engine spark)."
        ) from None
    history, _, replica_logs = tables
    return Frames(wire, blind, history, replica_logs)


def _held(run: Opened, table: str) -> list[Row]:
    try:
        return rows_of(run.files, table)
    except TooManyRows as error:
        raise TooManyRows(
            f"run {run.manifest.run}: {error.sentence}", "Check it with Spark (--engine spark)."
        ) from None


def _ask_spark(
    sources: Sequence[Source], runs: Sequence[Opened], spark: SparkSession, report: Report
) -> tuple[Answers, dict[str, Witnesses]]:
    from spark_analysis.answers import ask  # noqa: PLC0415 - see _session

    names = [run.manifest.run for run in runs]
    tables = {name: [file for run in runs for file in run.files[name]] for name in ASKED}
    wire = [file for run in runs for file in run.files.get(WIRE.name, ())]
    files = RunFiles(names, tables, wire, sources[0].uri if sources else None)
    answers, rows = ask(spark, files, _demands(runs), _damage(runs), rules=RULES, report=report)
    return answers, {run.manifest.run: _witnesses(rows.get(run.manifest.run, {}), run) for run in runs}


def _demands(runs: Sequence[Opened]) -> Demands:
    promised = {run.manifest.run: run.manifest.guarantees for run in runs}
    return Demands(
        sampled=[name for name, guarantees in promised.items() if is_sampled(guarantees)],
        at_rest=[run.manifest.run for run in runs if _is_settled(run)],
        lag_ns={name: ns for name, guarantees in promised.items() if (ns := lag_allowed_ns(guarantees)) is not None},
        kept_ns={name: ns for name, guarantees in promised.items() if (ns := members_kept_ns(guarantees)) is not None},
        virtual=[name for name, guarantees in promised.items() if is_virtual(guarantees)],
        min_isr={name: least for name, guarantees in promised.items() if (least := isr_wanted(guarantees)) is not None},
        tombstones_stay_ns={
            run.manifest.run: ns
            for run in runs
            if (ns := tombstones_stay_ns(run.manifest.guarantees, run.faults)) is not None
        },
    )


def _damage(runs: Sequence[Opened]) -> Damage:
    trusted = {run.manifest.run: filed(run.faults, expected(run.manifest)) for run in runs}
    spoilt = {name: [(*place, node) for place, node in sorted(rotten(faults))] for name, faults in trusted.items()}
    foreign = {name: sorted(swapped(faults)) for name, faults in trusted.items()}
    return Damage(
        healed_ns={run.manifest.run: at for run in runs if (at := healed_ns(run.faults)) is not None},
        rotten={name: logs for name, logs in spoilt.items() if logs},
        swapped={name: places for name, places in foreign.items() if places},
    )


def _is_settled(run: Opened) -> bool:
    """Whether the run promises to settle, and is known to have had every fault healed."""
    return _are_faults_known(run) and comes_to_rest(run.manifest.guarantees, run.faults, run.manifest.unrest)


def _are_faults_known(run: Opened) -> bool:
    return not run.unreadable.get("faults")


def _witnesses(rows: Mapping[str, Sequence[Row]], run: Opened) -> Witnesses:
    history, timeline, replica_logs, wire = (rows.get(name, ()) for name in (*ASKED, WIRE.name))
    frames = None
    if WIRE.name in run.files:
        frames = Frames(wire, not_understood(wire), history, replica_logs)
    return Witnesses(*_citable((history, timeline, replica_logs), run), run.faults, frames)


def _citable(tables: Tables, run: Opened) -> tuple[Sequence[Row], Sequence[Row], Sequence[Row] | None]:
    """``tables`` without replica logs, where none was read."""
    history, timeline, replica_logs = tables
    return history, timeline, replica_logs if reads_logs(run.manifest) else None
