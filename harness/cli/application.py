"""Assembles the command line from its commands, and adds ``--version``."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from harness.cli import (
    audit,
    check,
    cluster,
    demo,
    detection,
    diff,
    doctor,
    heal,
    jepsen,
    kafka,
    museum,
    nightly,
    nightly_merge,
    replay,
    report,
    run,
    scenario,
    schema,
    shrink,
    simulate,
)

app = typer.Typer(
    name="seawall",
    help="Break a Kafka-like log on purpose, and prove what it lost.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 pass, 1 violation, 2 inconclusive, 3 invalid run, 4 environment, 64 usage, "
    "70 bug in seawall, 130 interrupted.",
)

app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("audit")(audit.audit)
app.command("check")(check.check)
app.command("report")(report.report)
app.command("diff")(diff.diff)
app.command("simulate")(simulate.simulate)
app.command("replay")(replay.replay)
app.command("shrink")(shrink.shrink)
app.command("detection")(detection.detection)
app.command("museum")(museum.museum)
app.command("schema")(schema.schema)
app.command("doctor")(doctor.doctor)
app.command("heal")(heal.heal)
app.add_typer(cluster.app, name="cluster")
app.add_typer(kafka.app, name="kafka")
app.add_typer(jepsen.imports, name="import")
app.add_typer(jepsen.exports, name="export")
app.add_typer(scenario.app, name="scenario")
nightly.app.command("merge")(nightly_merge.merge)
nightly.app.command("retire")(nightly_merge.retire)
nightly.app.command("keep")(nightly_merge.keep)
app.add_typer(nightly.app, name="nightly")


@app.callback(invoke_without_command=True)
def _seawall(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show_version:
        typer.echo(f"seawall {version('seawall')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
