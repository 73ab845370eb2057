"""``seawall run``: runs one scenario, checks the recorded run and writes its report."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.spark import warm_up
from harness.cli.terminal import Say, progress, tell
from harness.cli.verdicts import Engine, exit_code, judge_recorded
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
            help="builtin, simulated, or real Kafka: process:3.9.1, process:3.9.1#quorum, process:DIR, compose:FILE.",
        ),
    ] = "builtin",
    service_pattern: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="The services of a compose file that run Kafka, where that is not plain."),
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
    engine: Annotated[
        Engine, typer.Option(help="Who decides: Spark, or the plain reference alone, which needs no Java.")
    ] = Engine.SPARK,
) -> int:
    """Run a scenario, or every variant of a catalogue entry: write run directories, check them, write their reports.

    Keys of --set: settings.min.insync.replicas=1, workload.producers=2, topic.partitions=3, replication.truncation=hw.
    """
    from harness.runner import plan
    from harness.runner.real import with_pattern
    from harness.scenario import find

    if seed is None:
        seed = random.SystemRandom().randrange(2**31)
        context.obj.fix("--seed", seed)
    if service_pattern is not None:
        target = with_pattern(target, service_pattern)
    settings = overrides(set_ or ())
    plans = [plan(one, target, generation, seed, duration_s=duration_s, overrides=settings) for one in find(scenario)]
    say, directories = progress(), []
    if engine is Engine.SPARK and not any(made.system.is_heavy for made in plans):
        warm_up()
    for made in plans:
        say(f"scenario {made.scenario.id}, {made.system.name}, seed {made.seed}")
        for sentence in made.left_out.values():
            say(f"left out: {sentence}")
        directories.append(record(made, out, say))
    say("checking")
    return exit_code(judge_recorded(directories, context.obj, say, engine))


def record(made: Plan, out: Path, say: Say) -> Path:
    """Run ``made`` and return its run directory, relative when ``out`` is.

    A run that broke off is kept and checked like any other: it is invalid, or what it recorded proves a violation.
    """
    from harness import runner

    try:
        return runner.run(made, out, say).path
    except runner.BrokenOff as broken:
        tell(f"seawall: {broken}")
        return broken.directory


def overrides(settings: Sequence[str]) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a mapping.

    Raises:
        UsageError: one of them has no ``=``.
    """
    for setting in settings:
        if "=" not in setting:
            raise UsageError(f"--set {setting!r} is not KEY=VALUE.")
    return dict(setting.split("=", 1) for setting in settings)
