"""``seawall replay SEED``: prints the trace of one simulated run, transition by transition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.checker import Verdict
from harness.cli.run import overrides
from harness.cli.simulate import DEFAULT_DEPTH, Depth, Generation, Settings
from harness.errors import ExitCode
from harness.replication.knobs import CURRENT_GENERATION
from harness.scenario import checked_seed


def replay(
    context: typer.Context,
    seed: Annotated[int, typer.Argument(metavar="SEED", help="As `seawall simulate` named it.", min=0)],
    generation: Generation = CURRENT_GENERATION,
    depth: Depth = DEFAULT_DEPTH,
    set_: Settings = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also leave a run directory, for check and report.")
    ] = None,
) -> int:
    """Run one seed again and print its trace: one line per transition, the same bytes every time."""
    from harness.exploration.depth import run_of, write
    from harness.simulation.core.configuration import setup
    from harness.simulation.trace import HEADER, Trace

    checked_seed(seed)
    context.obj.fix("--generation", generation)
    chosen = setup(generation, overrides(set_ or ()), depth)
    world = run_of(seed, chosen, trace=Trace(typer.echo), recorded=out is not None)
    typer.echo(HEADER)
    finished = world.run()
    if out is not None:
        write(world, out, generation)
    for violation in finished.violations:
        typer.echo(f"{violation.verdict}: {violation}")
    typer.echo(f"seed {seed}: {finished.events} events, {len(finished.violations)} breaches")
    broken = any(violation.verdict is Verdict.VIOLATION for violation in finished.violations)
    return ExitCode.VIOLATION if broken else ExitCode.PASS
