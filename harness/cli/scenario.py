"""``seawall scenario list | show | run | matrix``: lists and runs scenarios, and compares outcomes with predictions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from harness.cli.outcome import AsJson, Outcomes, Quiet, outcomes
from harness.cli.run import RUNS
from harness.cli.terminal import Say, be_quiet, progress, stdout, tell
from harness.errors import EnvironmentFault, ExitCode, Interrupted, UsageError
from harness.signals import die_with_parent, leave_silently

if TYPE_CHECKING:
    from harness.runner import Plan
    from harness.runner.matrix import Cell
    from harness.scenario import Scenario

app = typer.Typer(help="The scenarios that come with seawall.", no_args_is_help=False)

_Target = Annotated[
    str,
    typer.Option(metavar="TARGET", help="builtin: real processes; simulated: virtual time; process:3.9.1: real Kafka."),
]
_Seed = Annotated[int, typer.Option(metavar="N", help="0 to 2^63 - 1.")]


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array instead.")] = False,
) -> None:
    """List the scenarios that come with seawall; without a terminal, a line each, with tabs in between."""
    from harness.scenario import shipped

    columns = ("entry", "scenario", "what it does", "replays")
    rows = [
        (scenario.catalogue or "", scenario.id, scenario.title, scenario.source)
        for scenario in sorted(shipped(), key=lambda one: (one.catalogue or "~", one.id))
    ]
    if as_json:
        names = ("entry", "id", "title", "source")
        typer.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
    elif not (console := stdout()).is_terminal:
        typer.echo("\n".join("\t".join(row) for row in rows))
    else:
        table = Table(*columns)
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A scenario, a YAML file, or an entry of the catalogue: A02.")
    ],
) -> None:
    """Print a scenario, or every variant of a catalogue entry, as written, comments included, after validating it."""
    from rich.syntax import Syntax

    from harness.scenario import find

    text = "---\n".join(one.text for one in find(name))
    console = stdout()
    if console.is_terminal:
        console.print(Syntax(text, "yaml", background_color="default"))
    else:
        typer.echo(text, nl=False)


@app.command()
def run(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A scenario, a YAML file, or an entry of the catalogue: A02.")
    ],
    target: _Target = "builtin",
    generation: Annotated[
        str | None, typer.Option(metavar="G", help="Only this one; without it, the oldest that the scenario is about.")
    ] = None,
    seed: _Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where run directories go; simulated runs leave none without it.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override; may be given several times.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a scenario, or every variant of a catalogue entry, and compare the outcome with the prediction.

    Ends with 1 when anything differs: an old generation that does not lose is a failed reproduction. Ends with 3 when
    nothing does, but a run proves nothing. Known differences of a Kafka release are printed and count as neither.
    With --set, too, the prediction is that of the generation as it is.
    """
    from harness.cli.matrix import exit_code

    settings = set_ or []
    with outcomes("scenario run", context, as_json=as_json, quiet=quiet) as collected:
        cells = list(_shown(_plans(name, target, generation, seed, settings), _out(target, out), settings, collected))
        _lead_to_the_first_difference(context, cells, target, seed, settings)
        collected.exit_code = exit_code(cells)
        return collected.exit_code


def _shown(plans: Iterator[Plan], out: Path | None, settings: Sequence[str], collected: Outcomes) -> Iterator[Cell]:
    """Run each, print what came of it, and collect that."""
    from harness.checker import from_json
    from harness.cli.matrix import exit_code, played, show_cell
    from harness.history.run_directory import RunDirectory

    say = progress()
    for plan in list(plans):
        say(f"{plan.scenario.id} on generation {plan.generation}, target {plan.target}, seed {plan.seed}")
        cell, directory = played(plan, out, say)
        found = None if directory is None else RunDirectory(directory).read_verdict()
        collected.add(plan, directory, None if found is None else from_json(found), exit_code([cell]), cell)
        if (console := collected.console) is not None:
            show_cell(cell, settings, console)
            if directory is not None:
                console.print(f"report: {directory / 'report.html'}", highlight=False, soft_wrap=True)
        yield cell


@app.command()
def matrix(
    context: typer.Context,
    target: _Target = "builtin",
    generations: Annotated[
        str, typer.Option(metavar="G,G-G", help="Only these: 0.10,2.0.0-2.1; without it, all.")
    ] = "",
    only: Annotated[str, typer.Option(metavar="ID,ID", help="Only these scenarios or catalogue entries.")] = "",
    seed: _Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Runs at a time.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where run directories go.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
    tries: Annotated[
        int, typer.Option(min=1, metavar="N", help="Up to how often what proves nothing is played, in the end alone.")
    ] = 1,
) -> int:
    """Run every scenario that has outcomes on every generation: observed against predicted.

    Prints and skips what a release of real Kafka cannot play. Ends with 1 when any cell differs, with 3 when none
    does, but one proves nothing in any of its tries; known differences of a release are printed with the reason and
    count as neither.
    """
    from harness.cli.matrix import exit_code, in_short, show_json, show_table
    from harness.replication.knobs import GENERATIONS
    from harness.runner.matrix import chosen, rows
    from harness.scenario import shipped
    from harness.targets.kinds import source_of

    generations = generations or source_of(target).generation or ""
    meant = list(rows(chosen(shipped(), _words(only)), _words(generations)))
    plans = list(_possible(meant, target, seed))
    if not plans:
        raise UsageError(
            f"there is nothing to run: --only {only or '(all)'} --generations {generations or '(all)'} leave no cell.",
            "`seawall scenario list` shows the scenarios, and each names its generations.",
        )
    cells = []
    for number, cell in enumerate(_cells(plans, _out(target, out), jobs), 1):
        tell(f"{number}/{len(plans)}  {cell.catalogue}  {cell.scenario}  {cell.generation}: {in_short(cell)}")
        cells.append(cell)
    for _ in range(1, tries):
        for place, (plan, cell) in enumerate(zip(plans, cells, strict=True)):
            if cell.proves_nothing and cell.is_news:
                cells[place] = _tried(_out(target, out), plan)
                tell(f"again  {cell.catalogue}  {cell.scenario}  {cell.generation}: {in_short(cells[place])}")
    if as_json:
        show_json(cells)
    else:
        across = {name for _, names in meant for name in names}
        show_table(cells, [name for name in GENERATIONS if name in across])
    _lead_to_the_first_difference(context, cells, target, seed)
    return exit_code(cells)


def _plans(name: str, target: str, generation: str | None, seed: int, settings: Sequence[str]) -> Iterator[Plan]:
    from harness.cli.run import overrides
    from harness.runner import plan
    from harness.runner.expectation import expectations
    from harness.targets.kinds import source_of

    spoken = source_of(target).generation
    for scenario in _named(name):
        known = expectations(scenario)
        wanted = generation or spoken or (scenario.generation if scenario.generation in known else next(iter(known)))
        if wanted not in known:
            raise UsageError(
                f"scenario {scenario.id!r} says nothing of generation {wanted!r}.",
                f"It is about {', '.join(known)}.",
            )
        yield plan(scenario, target, wanted, seed, overrides=overrides(settings))


def _possible(meant: Sequence[tuple[Scenario, list[str]]], target: str, seed: int) -> Iterator[Plan]:
    """A plan for each cell; prints and skips cells that the target cannot play."""
    from harness.runner import plan
    from harness.runner.matrix import impossible
    from harness.targets.kinds import source_of

    real = source_of(target).generation is not None
    for scenario, names in meant:
        for name in names:
            try:
                why = impossible(scenario, name) if real else None
                made = None if why else plan(scenario, target, name, seed)
            except UsageError as refused:
                if not real and not scenario.transacts:
                    raise
                why, made = refused.sentence, None
            if made is not None:
                yield made
            else:
                tell(f"left out: {scenario.catalogue or scenario.id}  {scenario.id}  {name}: {why}")


def _named(name: str) -> list[Scenario]:
    """The scenario of that id or in that file, or every variant of the catalogue entry."""
    from harness.scenario import find

    known = [one for one in find(name) if one.outcomes]
    if not known:
        raise UsageError(f"scenario {name!r} has no outcomes to compare with.", "Run it with `seawall run`.")
    return known


def _silent(_: str) -> None:
    """Prints nothing."""


def _cells(plans: list[Plan], out: Path | None, jobs: int) -> Iterator[Cell]:
    """The outcome of each plan, in the order of the plans."""
    if jobs == 1:
        say: Say = progress() if out is not None else _silent
        yield from (_tried(out, plan, say) for plan in plans)
        return
    with ProcessPoolExecutor(jobs, initializer=_prepare) as pool:
        try:
            yield from pool.map(partial(_tried_in_a_worker, out), plans)
        except BaseException:
            for worker in active_children():
                worker.terminate()
            raise


def _prepare() -> None:
    """End with the parent, and silently: the parent reports a signal, and one process alone has a status line."""
    be_quiet(True)
    leave_silently()
    die_with_parent()


def _tried_in_a_worker(out: Path | None, plan: Plan) -> Cell:
    """The outcome of ``plan``; an interruption ends the worker, which would else get the next plan."""
    try:
        return _tried(out, plan)
    except (KeyboardInterrupt, Interrupted):
        os._exit(ExitCode.INTERRUPTED)


def _tried(out: Path | None, plan: Plan, say: Say = _silent) -> Cell:
    """The outcome of ``plan``; a cluster that fails does not end the following cells."""
    from harness.cli.matrix import played
    from harness.runner.matrix import unplayed

    try:
        return played(plan, out, say)[0]
    except EnvironmentFault as fault:
        return unplayed(plan, str(fault))


def _out(target: str, asked: Path | None) -> Path | None:
    """The directory for run directories; None: runs on the target are repeated as quickly, and leave none."""
    from harness.targets.kinds import is_in_virtual_time

    return asked or (None if is_in_virtual_time(target) else RUNS)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _lead_to_the_first_difference(
    context: typer.Context, cells: list[Cell], target: str, seed: int, settings: Sequence[str] = ()
) -> None:
    for cell in sorted(cells, key=lambda one: one.proves_nothing):
        if cell.is_news:
            where = ("--generation", cell.generation, "--target", target, "--seed", str(seed))
            pinned = [word for setting in settings for word in ("--set", setting)]
            context.obj.replace("scenario", "run", cell.origin, *where, *pinned)
            return
