"""Checks recorded runs, writes their verdicts and reports, and prints the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.checker import Outcome, RunVerdict, differing_parts
from harness.cli.check_view import SPARK, CheckView, checking
from harness.cli.findings import counted, details, observations, styled
from harness.cli.reproduction import Reproduction
from harness.cli.spark import decides_alone
from harness.cli.terminal import Say, remark, stdout
from harness.errors import EnvironmentFault, ExitCode, Interrupted, came_of_an_interruption, worst

_COLOURS = {
    Outcome.PASS: "green",
    Outcome.AS_PREDICTED: "green",
    Outcome.VIOLATION: "bold red",
    Outcome.NOT_REPRODUCED: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.INVALID: "yellow",
}


class Engine(StrEnum):
    """The engine that decides."""

    SPARK = "spark"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Judged:
    """A run, its verdict, and its report; None: a run that is not on this machine has none."""

    path: Path | str
    verdict: RunVerdict
    report: Path | None


_NAMES = {Engine.SPARK: SPARK, Engine.REFERENCE: "the reference engine"}


def judge(
    run_directories: Sequence[Path | str],
    engine: Engine,
    master: str | None = None,
    view: CheckView | None = None,
) -> list[Judged]:
    """Check recorded runs together, as one Spark job, and write each verdict and each local run's report.

    ``view`` shows how far that is.

    Raises:
        InvalidRun: one of them is no run directory.
        EnvironmentFault: Spark cannot be started.
        KeyboardInterrupt: a signal ended it, even if it ended Spark's JVM and so the clean-up failed.
    """
    from checkers import check
    from reports import write

    view = view or CheckView(0)
    view.begins(_NAMES[engine])
    try:
        verdicts = check(run_directories, engine.value, master, report=view.report)
    except Exception as error:
        if came_of_an_interruption(error):
            raise KeyboardInterrupt from error
        raise
    view.report("writing the report")
    return [
        Judged(path, verdict, write(path) if isinstance(path, Path) else None)
        for path, verdict in zip(run_directories, verdicts, strict=True)
    ]


def judge_shown(run_directories: Sequence[Path | str], engine: Engine, master: str | None, say: Say) -> list[Judged]:
    """As :func:`judge`, with a status line of how far it is."""
    with checking(run_directories, _NAMES[engine], say) as view:
        return judge(run_directories, engine, master, view)


def judge_recorded(
    run_directories: Sequence[Path],
    reproduction: Reproduction,
    say: Say,
    engine: Engine = Engine.SPARK,
    present: Callable[[Sequence[Judged]], None] | None = None,
) -> list[Judged]:
    """Judge and present just recorded runs; what fails from here on can be repeated without a new run.

    ``present`` is called with what came of them; None: :func:`show`.
    With :attr:`Engine.REFERENCE` Spark is not asked.

    Raises:
        AssertionError: the engines disagree about a run, so that one of them is wrong.
        Interrupted: a signal ended the check; the runs are complete and can still be checked.
    """
    try:
        twice = engine is Engine.SPARK and not decides_alone()
        alone = partial(judge_shown, engine=Engine.REFERENCE, master=None)
        judged = (_judge_twice if twice else alone)(run_directories, say=say)
        (present or show)(judged)
    except KeyboardInterrupt:
        _check_again(run_directories, reproduction)
        where = ", ".join(map(str, run_directories))
        raise Interrupted(f"interrupted while checking what is recorded in {where}.") from None
    except Exception:
        _check_again(run_directories, reproduction)
        raise
    return judged


def _check_again(run_directories: Sequence[Path], reproduction: Reproduction) -> None:
    """Reproduce by a check of the recorded runs, unless they have been removed."""
    if all((directory / "run.json").exists() for directory in run_directories):
        reproduction.replace("check", *map(str, run_directories))


def _judge_twice(run_directories: Sequence[Path], say: Say) -> list[Judged]:
    """As :func:`judge` with Spark, or with the reference engine where Spark cannot be started.

    Short runs are judged by the reference first, which needs no time to plan; both must agree.
    """
    short = _are_short(run_directories)
    engines = f"{_NAMES[Engine.REFERENCE]}, then {_NAMES[Engine.SPARK]}" if short else _NAMES[Engine.SPARK]
    with checking(run_directories, engines, say) as view:
        first = _judge_at_once(run_directories, say, view) if short else []
        try:
            judged = judge(run_directories, Engine.SPARK, view=view)
        except EnvironmentFault as fault:
            remark(f"seawall: {fault.sentence} The reference engine decides instead.")
            return first or judge(run_directories, Engine.REFERENCE, view=view)
    if first:
        _require_agreement(first, judged)
    return judged


def _are_short(run_directories: Sequence[Path]) -> bool:
    from checkers.verdicts.sources import LocalRun
    from spark_analysis.files import SMALL

    return sum(LocalRun(directory).size() for directory in run_directories) <= SMALL


def _judge_at_once(run_directories: Sequence[Path], say: Say, view: CheckView) -> list[Judged]:
    judged = judge(run_directories, Engine.REFERENCE, view=view)
    for one in judged:
        scenario, generation, word, _ = _told(one)
        say(f"the reference engine on {scenario}, {generation}: {word}")
    say("asking Spark, which must agree")
    return judged


def _require_agreement(first: Sequence[Judged], judged: Sequence[Judged]) -> None:
    for one, other in zip(first, judged, strict=True):
        differing = ", ".join(differing_parts(one.verdict, other.verdict))
        # Raised, not asserted: it must not depend on how Python was started.
        if differing:
            raise AssertionError(
                f"Spark and the reference engine disagree about {differing} of {one.path}: one of them is wrong. Keep "
                f"the run directory and report it; seawall check --engine reference {one.path} shows the other verdict."
            )


def show(judged: Sequence[Judged], console: Console | None = None) -> None:
    """Print one row per run, then the basis of each verdict, the anomalies, and the path of the report."""
    console = console or stdout()
    console.print(_table(judged))
    for one in judged:
        _, _, word, proof = _told(one)
        for line in (" ".join((f"{word}.", *proof)), *details(one.verdict)):
            console.print(escape(line), highlight=False, soft_wrap=not console.is_terminal)
        where = f"report: {one.report}" if one.report else f"verdict: {one.path}/verdict.json"
        console.print(escape(where), highlight=False, soft_wrap=True)


def _table(judged: Sequence[Judged]) -> Table:
    """A table of 80 columns if the scenario's name is short; kinds of anomalies are never truncated."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    predicted = any(one.verdict.predicted for one in judged)
    for name in ("run", "generation", *(["predicted"] if predicted else []), "verdict", "observed"):
        table.add_column(name, overflow="fold")
    for one in judged:
        scenario, generation, word, _ = _told(one)
        seen = [_predicted(one.verdict)] if predicted else []
        found = "\n".join(map(styled, observations(one.verdict))) or "nothing"
        table.add_row(
            escape(scenario), escape(generation), *seen, f"[{_COLOURS[one.verdict.outcome]}]{escape(word)}[/]", found
        )
    return table


def _predicted(verdict: RunVerdict) -> str:
    kinds = Counter(one.kind for one in verdict.predicted)
    return "\n".join(counted(number, kind) for kind, number in sorted(kinds.items())) or "nothing"


def exit_code(judged: Sequence[Judged]) -> ExitCode:
    """The exit code of all of them together."""
    return worst(one.verdict.exit_code for one in judged)


def _told(judged: Judged) -> tuple[str, str, str, Sequence[str]]:
    """The scenario, the generation, the headline of the outcome, and its basis without its limits."""
    from harness.history.run_directory import RunDirectory
    from reports.run import read
    from reports.sentences import banner

    if not isinstance(judged.path, Path):
        return judged.verdict.run, "", judged.verdict.outcome.headline, ()
    manifest, found = RunDirectory(judged.path).manifest(), banner(read(judged.path))
    proof = [sentence for sentence in found.proof if sentence not in judged.verdict.limits]
    return manifest.scenario, manifest.generation, found.outcome.headline, proof
