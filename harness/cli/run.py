"""``seawall run``: runs one scenario, checks the recorded run and writes its report."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.outcome import AsJson, Outcomes, Quiet, outcomes
from harness.cli.spark import warm_up
from harness.cli.terminal import Say, progress, shown, tell
from harness.cli.verdicts import Engine, Judged, exit_code, judge_recorded, show
from harness.errors import UsageError
from harness.replication.knobs import GENERATIONS

if TYPE_CHECKING:
    from harness.runner import Plan

RUNS = Path("runs")


def run(
    context: typer.Context,
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario's name, a YAML file, or an entry: A02.")
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="builtin, simulated, real Kafka (process:3.9.1, process:3.9.1#quorum, process:DIR, compose:FILE), or "
            "a running cluster (bootstrap:HOST:PORT, cluster:FILE).",
        ),
    ] = "builtin",
    service_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="The services of a compose file that are brokers, where that is not plain."
        ),
    ] = None,
    generation: Annotated[
        str | None, typer.Option(metavar="G", help=f"Replication protocol: {', '.join(GENERATIONS)}.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="0 to 2^63 - 1; drawn when left out.")] = None,
    duration_s: Annotated[
        float | None, typer.Option("--duration-s", metavar="S", help="How long random faults go on.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where run directories go.")] = RUNS,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override; may be given several times.")
    ] = None,
    tap: Annotated[
        bool, typer.Option("--tap", help="Record every request and response, to tell clients' faults from brokers'.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(help="Who decides: Spark, or the plain reference alone, which needs no Java.")
    ] = Engine.SPARK,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a scenario, or every variant of a catalogue entry: write run directories, check them, write their reports.

    Keys of --set: settings.min.insync.replicas=1, workload.producers=2, topic.partitions=3, replication.truncation=hw.
    """
    if seed is None:
        seed = random.SystemRandom().randrange(2**31)
        context.obj.fix("--seed", seed)
    with outcomes("run", context, as_json=as_json, quiet=quiet) as collected:
        plans = _plans(scenario, target, service_pattern, generation, seed, duration_s, set_ or (), tap=tap)
        say = progress()
        directories = _recorded(plans, out, engine, say)
        judged = judge_recorded(directories, context.obj, say, engine, partial(_present, collected))
        collected.exit_code = exit_code(judged)
        for made, directory, one in zip(plans, directories, judged, strict=True):
            collected.add(made, directory, one.verdict, one.verdict.exit_code)
        return collected.exit_code


def _plans(
    scenario: str,
    target: str,
    service_pattern: str | None,
    generation: str | None,
    seed: int,
    duration_s: float | None,
    settings: Sequence[str],
    *,
    tap: bool,
) -> list[Plan]:
    from harness.runner import plan
    from harness.scenario import find
    from harness.targets.kinds import with_pattern

    if service_pattern is not None:
        target = with_pattern(target, service_pattern)
    changed = overrides(settings)
    return [
        plan(one, target, generation, seed, duration_s=duration_s, overrides=changed, tap=tap) for one in find(scenario)
    ]


def _recorded(plans: Sequence[Plan], out: Path, engine: Engine, say: Say) -> list[Path]:
    """Record each; Spark starts meanwhile if it is to decide."""
    if engine is Engine.SPARK and not any(made.system.is_heavy for made in plans):
        warm_up()
    directories = []
    for made in plans:
        say(f"scenario {made.scenario.id}, {made.system.name}, seed {made.seed}")
        for sentence in made.chaos.left_out.values() if made.chaos is not None else ():
            say(f"left out: {sentence}")
        directories.append(record(made, out, say))
    return directories


def _present(collected: Outcomes, judged: Sequence[Judged]) -> None:
    if collected.console is not None:
        show(judged, collected.console)


def record(made: Plan, out: Path, say: Say) -> Path:
    """Run ``made`` and return its run directory, relative when ``out`` is.

    A run that broke off is kept and checked like any other: it is invalid, or what it recorded proves a violation.
    """
    from harness import runner
    from harness.cli.run_view import RunView

    view = RunView()
    try:
        with shown(view):
            return runner.run(made, out, say, view.watch).path
    except (runner.BrokenOff, runner.LeftBehind) as ended:
        tell(f"seawall: {ended}")
        return ended.directory


def overrides(settings: Sequence[str]) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a mapping.

    Raises:
        UsageError: one of them has no ``=``.
    """
    for setting in settings:
        if "=" not in setting:
            raise UsageError(f"--set {setting!r} is not KEY=VALUE.")
    return dict(setting.split("=", 1) for setting in settings)
