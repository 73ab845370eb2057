"""``seawall check``: judges recorded runs again; several runs are one Spark job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.checker import to_json
from harness.cli.outcome import Quiet
from harness.cli.spark import decides_alone
from harness.cli.terminal import be_quiet, progress
from harness.cli.verdicts import Engine, exit_code, judge_shown, show
from harness.errors import UsageError


def check(
    run_directories: Annotated[
        list[str],
        typer.Argument(metavar="RUN_DIR...", help="Run directories; also URIs that Hadoop knows: hdfs://, s3a:// ..."),
    ],
    engine: Annotated[
        Engine | None,
        typer.Option(help="Who decides: Spark, by default where it is installed, or the plain reference."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master, see docs/scale.md; default: this machine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as a JSON array.")] = False,
    quiet: Quiet = False,
) -> int:
    """Check recorded runs, together; writes verdict.json and report.html into each (no report behind a URI)."""
    be_quiet(quiet)
    if engine is None:
        engine = Engine.REFERENCE if master is None and decides_alone() else Engine.SPARK
    places = [place if "://" in place else Path(place) for place in run_directories]
    for place in places:
        if isinstance(place, Path) and not place.exists():
            raise UsageError(f"{place} does not exist.", "Name run directories, or URIs with a scheme.")
    judged = judge_shown(places, engine, master, progress())
    if as_json:
        typer.echo(json.dumps([to_json(one.verdict) for one in judged], indent=1))
    elif not quiet:
        show(judged)
    return exit_code(judged)
