"""Prints what came of ``seawall run`` and ``scenario run``: for people, as one JSON object, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict
from rich.console import Console

from harness.checker import Outcome, RunVerdict
from harness.cli.reproduction import Reproduction
from harness.cli.terminal import be_quiet, stderr, stdout
from harness.errors import ExitCode, Interrupted, SeawallError
from harness.json_schema import published, schema_of

if TYPE_CHECKING:
    from harness.runner import Plan
    from harness.runner.matrix import Cell

SCHEMA_VERSION = 1

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to standard output, and everything else to the other.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only; the exit code tells the outcome.")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AnomalyCount(_Frozen):
    """The anomalies of one kind.

    Attributes:
        count: all of them.
        excused: those that the configuration or the acks excuse.
    """

    count: int
    excused: int


class Comparison(_Frozen):
    """The outcome in words beside the predicted one, of ``scenario run``.

    Attributes:
        predicted: the words of the scenario.
        observed: empty when the run proves nothing.
        differences: one sentence each; empty: none.
        known: why it differs, if that is a known difference of the release of Kafka.
    """

    predicted: tuple[str, ...]
    observed: tuple[str, ...]
    differences: tuple[str, ...]
    known: str | None


class OneRun(_Frozen):
    """One run.

    Attributes:
        scenario: its id.
        target: as ``--target`` has it.
        generation: of the replication protocol.
        seed: that was given or drawn.
        engine: that gave the verdict; None: the run was not checked.
        verdict: None: a simulated run without a run directory has none, and what is not checked.
        exit_code: of a command that ran this one alone.
        run_directory: as ``--out`` has it; None: nothing was recorded.
        report: the HTML report.
        anomalies: by kind.
        reasons: of a verdict that decides nothing, one sentence each.
        comparison: None: of ``run``, which makes none.
    """

    scenario: str
    target: str
    generation: str
    seed: int
    verdict: Outcome | None
    exit_code: int
    engine: str | None
    run_directory: str | None
    report: str | None
    anomalies: Mapping[str, AnomalyCount]
    reasons: tuple[str, ...] = ()
    comparison: Comparison | None = None


class RunOutcome(_Frozen):
    """What came of a command.

    Attributes:
        schema_version: of this object.
        command: ``run`` or ``scenario run``.
        verdict: of the first run that has the exit code; None: no run has.
        exit_code: of the command.
        run_directory: of the same run.
        report: of the same run.
        error: why the command ended before its time, in a sentence or two; None: it did not.
        anomalies: of all runs together.
        replay: the command that does the same again, with the seed that was drawn.
        runs: one for each variant of an entry of the catalogue.
    """

    schema_version: Literal[1] = 1
    command: str
    verdict: Outcome | None
    exit_code: int
    error: str | None
    run_directory: str | None
    report: str | None
    anomalies: Mapping[str, AnomalyCount]
    replay: str
    runs: tuple[OneRun, ...]


class Outcomes:
    """Collects the runs of one command.

    Attributes:
        console: where results for people go; None: nowhere.
    """

    def __init__(self, command: str, reproduction: Reproduction, *, as_json: bool, quiet: bool) -> None:
        self.console: Console | None = None if quiet else stderr() if as_json else stdout()
        self._command = command
        self._reproduction = reproduction
        self._runs: list[OneRun] = []
        self.exit_code = ExitCode.PASS

    def add(
        self, plan: Plan, directory: Path | None, verdict: RunVerdict | None, code: ExitCode, cell: Cell | None = None
    ) -> None:
        """Add a run, whose exit code is ``code``; ``cell`` has the comparison with the predicted outcome."""
        report = None if directory is None else directory / "report.html"
        self._runs.append(
            OneRun(
                scenario=plan.scenario.id,
                target=plan.target,
                generation=plan.generation,
                seed=plan.seed,
                verdict=None if verdict is None else verdict.outcome,
                exit_code=code,
                engine=None if verdict is None else verdict.engine,
                run_directory=None if directory is None else str(directory),
                report=str(report) if report is not None and report.exists() else None,
                anomalies={} if verdict is None else _anomalies(verdict),
                reasons=() if verdict is None else tuple(verdict.reasons),
                comparison=None if cell is None else _comparison(cell),
            )
        )

    def outcome(self, error: str | None = None) -> RunOutcome:
        """What came of the command."""
        decides = next((one for one in self._runs if error is None and one.exit_code == self.exit_code), None)
        return RunOutcome(
            command=self._command,
            verdict=decides and decides.verdict,
            exit_code=self.exit_code,
            error=error,
            run_directory=decides and decides.run_directory,
            report=decides and decides.report,
            anomalies=_sum(self._runs),
            replay=self._reproduction.without("--json", "--quiet", "-q"),
            runs=tuple(self._runs),
        )


@contextmanager
def outcomes(command: str, context: typer.Context, *, as_json: bool, quiet: bool) -> Iterator[Outcomes]:
    """Collect the runs of a command; with ``as_json`` print the object at the end, also when an error ends it."""
    be_quiet(quiet)
    collected = Outcomes(command, context.obj, as_json=as_json, quiet=quiet)
    error = None
    try:
        yield collected
    except (KeyboardInterrupt, Exception) as ended:
        collected.exit_code, error = _code(ended), _sentence(ended)
        raise
    finally:
        if as_json:
            typer.echo(collected.outcome(error).model_dump_json(indent=1))


def schema() -> str:
    """The JSON Schema of the object, as ``docs/schemas/run-outcome-1.json`` has it."""
    name = f"run-outcome-{SCHEMA_VERSION}.json"
    return published(name, "What seawall run --json prints", schema_of(RunOutcome, "serialization"))


def _code(ended: BaseException) -> ExitCode:
    match ended:
        case SeawallError():
            return ended.exit_code
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case OSError():
            return ExitCode.ENVIRONMENT
        case _:
            return ExitCode.INTERNAL


def _sentence(ended: BaseException) -> str:
    return Interrupted("interrupted.").sentence if isinstance(ended, KeyboardInterrupt) else str(ended)


def _anomalies(verdict: RunVerdict) -> dict[str, AnomalyCount]:
    kinds = sorted({one.kind for one in verdict.anomalies} | {one.kind for one in verdict.extents})
    return {kind: AnomalyCount(count=verdict.total(kind), excused=verdict.excused(kind)) for kind in kinds}


def _sum(runs: Sequence[OneRun]) -> dict[str, AnomalyCount]:
    count: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    for run in runs:
        for kind, one in run.anomalies.items():
            count[kind] += one.count
            excused[kind] += one.excused
    return {kind: AnomalyCount(count=count[kind], excused=excused[kind]) for kind in sorted(count)}


def _comparison(cell: Cell) -> Comparison:
    return Comparison(
        predicted=tuple(word.value for word in cell.predicted),
        observed=tuple(word.value for word in cell.observed),
        differences=cell.differences,
        known=cell.known,
    )
