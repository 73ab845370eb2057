"""``seawall nightly``: runs the cells of a plan, writes their results, and goes on with a night after a crash."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.markup import escape
from typer.core import TyperGroup

from harness.cli.nightly_merge import BANK, NIGHTS
from harness.cli.terminal import stdout, tell
from harness.errors import ExitCode, Interrupted, InvalidRun, UsageError
from harness.nightly.keeping import Keep
from harness.spelling import closest

if TYPE_CHECKING:
    from harness.cli.machine import Finding
    from harness.nightly.cells import Cell
    from harness.nightly.night_directory import Night, NightDirectory
    from harness.nightly.plan import LoadedPlan
    from harness.nightly.result import CellResult

_WAITS = 20
"""How many times longer than it took to write the outputs they are left as they are."""


class _RunsAPlan(TyperGroup):
    """A group of commands whose first word may be left out for :attr:`default`."""

    default = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See :class:`click.Command`."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunsAPlan,
    help="A night of chaos in CI: run a plan, merge its shards, keep its seeds.",
    epilog="`seawall nightly PLAN.yaml` is short for `seawall nightly run PLAN.yaml`.",
    no_args_is_help=True,
)


@app.command("run")
def run(
    context: typer.Context,
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN.yaml", help="What to run; see docs/nightly.md.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The directory of the night; default: nights/ID.")
    ] = None,
    night: Annotated[
        str | None, typer.Option(metavar="ID", help="Decides which seeds are drawn; default: today's date in UTC.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Results of past nights, one a line, oldest first.")
    ] = None,
    bank: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"The seed bank, which runs first; there may be none yet. Default: {BANK}."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="For all cells of this shard: 90m, 6h; default: the plan's.")
    ] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="Run only part I of N.")] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="How many cells run at a time.", min=1, max=256)] = 1,
    keep: Annotated[
        Keep | None, typer.Option(help="Of which runs everything is kept; default: of failing ones.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the night in DIR, after a crash or an interruption.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would run, and for how long.")] = False,
) -> int:
    """Run the cells of a plan, the longest unseen first, and write results.jsonl after each.

    The exit code is that of the gravest cell: 1 before 70 before 3 before 2 before 4.
    """
    from harness.nightly.night_directory import NightDirectory
    from harness.nightly.plan import load

    if resume is not None:
        _refuse_what_is_decided(
            plan, resume, out=out, night=night, history=history, bank=bank, shard=shard, keep=keep
        )  # fmt: skip
        directory = NightDirectory(resume)
        begun = _with(directory.night(), budget, jobs)
        if dry_run:
            _show_cells(_left(begun, directory.results()), str(resume))
            return ExitCode.PASS
        return _execute(context, directory, begun)
    if plan is None:
        raise UsageError("PLAN.yaml is missing.", "Name a plan, or go on with a night by --resume DIR.")
    loaded, name = load(plan), _identifier(night)
    context.obj.fix("--night", name)
    decided = _with(_decided(loaded, name, (history, bank or BANK), shard, keep or Keep.FAILING), budget, jobs)
    if dry_run:
        _show_cells(decided, loaded.path)
        return ExitCode.PASS
    where = out or NIGHTS / (name if shard is None else f"{name}-{shard.replace('/', '-of-')}")
    return _execute(context, NightDirectory(where), decided, loaded.text)


def _refuse_what_is_decided(plan: Path | None, resume: Path, **options: object) -> None:
    """A night that goes on does what was decided when it began."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]} and --resume {resume} exclude each other.", "That was decided at the beginning.")
    if plan is not None:
        from harness.nightly.night_directory import NightDirectory
        from harness.nightly.plan import load

        if load(plan).digest != NightDirectory(resume).night().plan:
            raise UsageError(f"{plan} is not the plan of the night in {resume}.", "Leave it out, or begin a new night.")


def _identifier(given: str | None) -> str:
    name = datetime.now(UTC).strftime("%Y-%m-%d") if given is None else given
    if not name or len(name) > 100 or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise UsageError(f"--night {name!r} is no identifier.", "Use letters, digits, '.', '-' and '_'.")
    return name


def _with(night: Night, budget: str | None, jobs: int) -> Night:
    from harness.nightly.plan_values import seconds

    try:
        changed = {} if budget is None else {"budget_s": seconds(budget)}
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from None
    return night.model_copy(update={**changed, "jobs": jobs})


def _past(history: Path | None) -> list[CellResult]:
    from harness.nightly import history_file

    try:
        return history_file.read(history) if history is not None else []
    except InvalidRun as error:
        raise UsageError(f"--history: {error.sentence}", error.remedy) from None


def _decided(loaded: LoadedPlan, night: str, files: tuple[Path | None, Path], shard: str | None, keep: Keep) -> Night:
    """What runs in this shard, and in which order, by the history and the seed bank in ``files``."""
    from harness.nightly import bank, order
    from harness.nightly.capabilities import missing
    from harness.nightly.cells import expand
    from harness.nightly.night_directory import Lack, Night
    from harness.nightly.past import Past

    history, seeds = files
    known = Past(_past(history))
    part = None if shard is None else order.shard(shard)
    everything = expand(loaded.plan, night, bank.read(seeds))
    lacking = missing(loaded.plan, everything, _probe)
    cells = order.ordered(everything, known)
    if part is not None:
        cells = order.of_shard(cells, known, part)
    return Night(
        night=night,
        plan=loaded.digest,
        plan_path=loaded.path,
        shard=None if part is None else str(part),
        keep=keep,
        budget_s=loaded.plan.budget,
        history=None if history is None else str(history.absolute()),
        bank=str(seeds.absolute()),
        cells=tuple(cells),
        lacking={
            one.cell: Lack(reason=lacking[one.cell].reason, is_failure=lacking[one.cell].is_failure)
            for one in cells
            if one.cell in lacking
        },
        estimates_s={one.cell: order.estimated_s(one, known) for one in cells},
        allowed=tuple((one.cells, one.kinds, one.because) for one in loaded.plan.allow if one.kinds),
    )


def _probes() -> Mapping[str, Callable[[], Finding]]:
    from harness.cli import machine

    return {
        "browser": machine.browser,
        "compiler": machine.compiler,
        "compose": machine.compose,
        "docker": machine.docker,
        "java": machine.java,
        "kcat": machine.kcat,
        "loopback": machine.loopback,
        "maven": machine.maven,
        "memory": lambda: machine.resources(Path()),
    }


def _probe(name: str) -> str | None:
    """What is missing of a capability; see ``seawall doctor``."""
    probes = _probes()
    if name not in probes:
        raise UsageError(f"needs: {name!r} is no capability; {closest(name, probes)}")
    found = probes[name]()
    return None if found.present else f"{found.subject}: {found.seen.rstrip('.')}. {found.remedy}"


# ------------------------------------------------------------------------------------------------------------ execution


def _execute(context: typer.Context, directory: NightDirectory, night: Night, plan_text: str | None = None) -> int:
    """Run a night; ``plan_text`` is None of one that goes on."""
    from harness.cli.nightly_view import view
    from harness.nightly.conclusion import SKIPS, exit_code, gravity
    from harness.nightly.execution import Execution

    with directory.held():
        if plan_text is None:
            for line in directory.clear():
                tell(line)
        else:
            directory.begin(night, plan_text)
        with view(len(night.cells) - len(night.lacking)) as listener:
            written = _outputs_of(night, directory.path)
            execution = Execution(directory, night, listener, written)
            try:
                execution.run()
            except KeyboardInterrupt:
                context.obj.replace("nightly", "--resume", str(directory.path))
                raise Interrupted(
                    f"interrupted; what ran was healed and stopped, and {directory.results_path} is true of the rest."
                ) from None
            finally:
                written(execution.in_order(), at_once=True)
    results = execution.in_order()
    _show(results, directory)
    if night.shard is not None and all(one.outcome in SKIPS for one in results):
        return ExitCode.PASS  # the merge judges whether enough of the night has run
    _lead_to(context, min(results, key=gravity))
    return exit_code(results)


class _Write(Protocol):
    def __call__(self, results: Sequence[CellResult], *, at_once: bool = False) -> None: ...


def _outputs_of(night: Night, place: Path) -> _Write:
    """Writes the outputs of a night after each cell, or less often where that would take a considerable time."""
    from harness.nightly import bank, outputs

    history, seeds = _past(None if night.history is None else Path(night.history)), bank.read(Path(night.bank))
    due = 0.0

    def write(results: Sequence[CellResult], *, at_once: bool = False) -> None:
        nonlocal due
        began = time.monotonic()
        if at_once or began >= due:
            outputs.write(place, results, history, seeds)
            due = time.monotonic() + _WAITS * (time.monotonic() - began)

    return write


def _lead_to(context: typer.Context, gravest: CellResult) -> None:
    words = shlex.split(gravest.reproduce)
    if words[:1] == ["seawall"]:
        context.obj.replace(*words[1:])


def _show(results: Sequence[CellResult], directory: NightDirectory) -> None:
    """Print what did not pass, gravest first, with its reason and its report, and how many cells ended in each way."""
    from harness.nightly.conclusion import ERRORS, FAILURES, gravity
    from harness.nightly.prose import cells, counts

    console = stdout()
    for one in sorted((one for one in results if one.outcome in ERRORS | FAILURES), key=gravity):
        said = one.story[0] if one.story else one.reason
        where = f" ({directory.path / one.report})" if one.report else ""
        line = f"{one.outcome.value}: {one.cell}{where}{f': {said}' if said else ''}"
        console.print(escape(line), highlight=False, soft_wrap=True)
    console.print(f"{cells(len(results))}: {counts(results)}", highlight=False, soft_wrap=True)
    console.print(f"results: {directory.results_path}", highlight=False, soft_wrap=True)


# -------------------------------------------------------------------------------------------------------------- dry run


def _left(night: Night, results: Sequence[CellResult]) -> Night:
    """A night without its cells that have a result already."""
    from harness.nightly.result import CellOutcome

    ended = {one.cell for one in results if one.outcome is not CellOutcome.NOT_RUN}
    cells = tuple(cell for cell in night.cells if cell.cell not in ended)
    lacking = {cell.cell: night.lacking[cell.cell] for cell in cells if cell.cell in night.lacking}
    return night.model_copy(update={"cells": cells, "lacking": lacking})


def _show_cells(night: Night, source: str) -> None:
    """Print each cell with its estimated time, what cannot run or does not fit, and the sums of the plan's entries.

    ``source`` is the plan, or the directory of a night that goes on.
    """
    from harness.nightly.prose import cells as amount
    from harness.nightly.prose import seconds as lasting

    console = stdout()
    fitting = _fitting(night)
    sums: dict[str, list[float]] = {}
    for cell in night.cells:
        runs = cell.cell not in night.lacking and cell.cell in fitting
        takes_s = night.estimates_s[cell.cell] if runs else 0.0
        sums.setdefault(cell.group, []).append(takes_s)
        console.print(escape(f"{_word(cell, night, fitting):>9}  {cell.cell}"), highlight=False, soft_wrap=True)
        if (lack := night.lacking.get(cell.cell)) is not None:
            console.print(escape(f"{'':>9}  {lack.reason}"), highlight=False, soft_wrap=True)
    for group, times in sums.items():
        console.print(escape(f"{group}: {amount(len(times))}, {lasting(sum(times))}"), highlight=False, soft_wrap=True)
    total_s = sum(map(sum, sums.values()))
    shard = f", shard {night.shard}" if night.shard else ""
    console.print(
        f"{source}, night {night.night}{shard}: {amount(len(night.cells))}, "
        f"{len(night.lacking)} of which cannot run here; {lasting(total_s)}, with {night.jobs} at a time "
        f"{lasting(total_s / night.jobs)}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _fitting(night: Night) -> set[str]:
    """The cells for which the budget is likely to suffice."""
    left_s = float("inf") if night.budget_s is None else night.budget_s * night.jobs
    fitting: set[str] = set()
    for cell in night.cells:
        takes_s = night.estimates_s[cell.cell]
        if cell.cell not in night.lacking and takes_s <= left_s:
            left_s -= takes_s
            fitting.add(cell.cell)
    return fitting


def _word(cell: Cell, night: Night, fitting: set[str]) -> str:
    from harness.nightly.prose import seconds as lasting

    if (lack := night.lacking.get(cell.cell)) is not None:
        return "missing" if lack.is_failure else "skipped"
    return lasting(night.estimates_s[cell.cell]) if cell.cell in fitting else "no time"
