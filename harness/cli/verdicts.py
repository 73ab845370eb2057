"""From recorded runs to verdicts, reports, and what a person reads on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from harness.checker import Anomaly, OffsetRange, Outcome, RunVerdict, differing_parts
from harness.cli.reproduction import Reproduction
from harness.cli.terminal import Say, stdout, tell
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
    """Who decides."""

    SPARK = "spark"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Judged:
    """A run, its verdict, and its report; None: it is not on this machine, and has none."""

    path: Path | str
    verdict: RunVerdict
    report: Path | None


def judge(run_directories: Sequence[Path | str], engine: Engine, master: str | None = None) -> list[Judged]:
    """Check recorded runs together, as one Spark job, and write each verdict, and of local ones each report.

    Raises:
        InvalidRun: one of them is no run directory.
        EnvironmentFault: Spark cannot be started.
        KeyboardInterrupt: a signal ended it, also where that ended Spark's JVM, too, and cleaning up failed for that.
    """
    from checkers import check
    from reports import write

    try:
        verdicts = check(run_directories, engine.value, master)
    except Exception as error:
        if came_of_an_interruption(error):
            raise KeyboardInterrupt from error
        raise
    return [
        Judged(path, verdict, write(path) if isinstance(path, Path) else None)
        for path, verdict in zip(run_directories, verdicts, strict=True)
    ]


def judge_recorded(run_directories: Sequence[Path], reproduction: Reproduction, say: Say) -> list[Judged]:
    """Judge and show what has just been recorded; from here on, what fails can be done again without a new run.

    Raises:
        AssertionError: the engines disagree about a run, so that one of them is wrong.
        Interrupted: a signal ended the check; the runs are complete and can still be checked.
    """
    try:
        judged = _judge_twice(run_directories, say)
        show(judged)
    except KeyboardInterrupt:
        _check_again(run_directories, reproduction)
        where = ", ".join(map(str, run_directories))
        raise Interrupted(f"interrupted while checking what is recorded in {where}.") from None
    except Exception:
        _check_again(run_directories, reproduction)
        raise
    return judged


def _check_again(run_directories: Sequence[Path], reproduction: Reproduction) -> None:
    """Lead to the check of what is recorded, unless somebody has removed it."""
    if all((directory / "run.json").exists() for directory in run_directories):
        reproduction.replace("check", *map(str, run_directories))


def _judge_twice(run_directories: Sequence[Path], say: Say) -> list[Judged]:
    """As :func:`judge` with Spark, or with the reference engine where Spark cannot be started.

    Of short runs the reference is asked first, for it needs no time to plan, and both must agree.
    """
    first = _judge_at_once(run_directories, say) if _are_short(run_directories) else []
    try:
        judged = judge(run_directories, Engine.SPARK)
    except EnvironmentFault as fault:
        tell(f"seawall: {fault.sentence} The reference engine decides instead.")
        return first or judge(run_directories, Engine.REFERENCE)
    if first:
        _require_agreement(first, judged)
    return judged


def _are_short(run_directories: Sequence[Path]) -> bool:
    from checkers.sources import LocalRun
    from spark_analysis.sizing import SMALL

    return sum(LocalRun(directory).size() for directory in run_directories) <= SMALL


def _judge_at_once(run_directories: Sequence[Path], say: Say) -> list[Judged]:
    judged = judge(run_directories, Engine.REFERENCE)
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


def show(judged: Sequence[Judged]) -> None:
    """Print one row per run, then what was found in each, why it did not pass, and the path of its report."""
    table = Table("run", "generation", "predicted", "observed", "verdict")
    for one in judged:
        table.add_row(*_row(one))
    console = stdout()
    console.print(table)
    for one in judged:
        for line in _details(one.verdict):
            console.print(escape(line), highlight=False, soft_wrap=True)
        where = f"report: {one.report}" if one.report else f"verdict: {one.path}/verdict.json"
        console.print(escape(where), highlight=False, soft_wrap=True)


def _details(verdict: RunVerdict) -> Iterator[str]:
    """Why there is no verdict; of each kind the first anomaly, and how many there are, and where."""
    yield from verdict.reasons
    yield from verdict.limits
    first = {anomaly.kind: anomaly for anomaly in reversed(verdict.anomalies)}
    for anomaly in sorted(first.values(), key=verdict.anomalies.index):
        yield f"{anomaly.kind} at {_place(anomaly)}: {anomaly.why}"
        if verdict.total(anomaly.kind) > 1:
            yield f"... the first of {verdict.total(anomaly.kind):,} {anomaly.kind}: {_reach(verdict, anomaly.kind)}"


_RANGES_SHOWN = 6
"""How many ranges of offsets one kind of anomaly is shown with; the report has more."""


def _reach(verdict: RunVerdict, kind: str) -> str:
    """Where all anomalies of a kind are."""
    extents = [one for one in verdict.extents if one.kind == kind]
    spans = [(f"{x.topic}-{x.partition}", span) for x in extents for span in x.ranges]
    said = []
    for place, ours in groupby(spans[:_RANGES_SHOWN], key=itemgetter(0)):
        said.append(f"{place} at " + ", ".join(_offsets(span) for _, span in ours))
    hidden = len(spans[_RANGES_SHOWN:]) + sum(one.more_ranges for one in extents)
    nowhere = sum(one.without_offset for one in extents)
    more = [f"{hidden:,} more ranges of offsets"] if hidden else []
    more += [f"{nowhere:,} that name no offset"] if nowhere else []
    return "; ".join([*said, *more])


def _offsets(span: OffsetRange) -> str:
    last = span.end_offset - 1
    return f"offset {last}" if span.first_offset == last else f"offsets {span.first_offset} to {last}"


def _place(anomaly: Anomaly) -> str:
    """Where it is, as far as that is known: records of old formats carry no leader epoch."""
    parts = [f"{anomaly.topic}-{anomaly.partition}"]
    if anomaly.offset is not None:
        parts[0] += f" offset {anomaly.offset}"
    if anomaly.leader_epoch is not None and anomaly.leader_epoch >= 0:
        parts.append(f"leader epoch {anomaly.leader_epoch}")
    return ", ".join(parts)


def exit_code(judged: Sequence[Judged]) -> ExitCode:
    """The exit code of all of them together."""
    return worst(one.verdict.exit_code for one in judged)


def _row(judged: Judged) -> tuple[str, str, str, str, str]:
    verdict = judged.verdict
    scenario, generation, word, proof = _told(judged)
    return (
        escape(scenario),
        escape(generation),
        _counted(Counter(p.kind for p in verdict.predicted)),
        _counted({a.kind: verdict.total(a.kind) for a in verdict.anomalies}),
        f"[{_COLOURS[verdict.outcome]}]{escape(word)}[/]. {escape(' '.join(proof))}",
    )


def _told(judged: Judged) -> tuple[str, str, str, Sequence[str]]:
    """The scenario, the generation, the verdict in a word, and what it rests on, but not what limits it."""
    from harness.history.run_directory import RunDirectory
    from reports.run import read
    from reports.sentences import banner

    if not isinstance(judged.path, Path):
        return judged.verdict.run, "", judged.verdict.outcome.value, ()
    manifest, found = RunDirectory(judged.path).manifest(), banner(read(judged.path))
    proof = [sentence for sentence in found.proof if sentence not in judged.verdict.limits]
    return manifest.scenario, manifest.generation, found.word, proof


def _counted(kinds: Mapping[str, int]) -> str:
    return "\n".join(f"{n:,} {kind}" if n > 1 else kind for kind, n in sorted(kinds.items())) or "nothing"
