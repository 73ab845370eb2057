"""``seawall scenario list | show NAME``: what can be run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.cli.terminal import stdout

app = typer.Typer(help="The scenarios that come with seawall.", no_args_is_help=False)


@app.command("list")
def list_() -> None:
    """List the scenarios that come with seawall."""
    from harness.scenario import shipped

    table = Table("scenario", "what it does", "replays")
    for scenario in shipped():
        table.add_row(scenario.id, scenario.title, scenario.source)
    stdout().print(table)


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME", help="A shipped scenario or a YAML file.")]) -> None:
    """Print a scenario as it is written, comments included, after validating it."""
    from rich.syntax import Syntax

    from harness.scenario import load

    load(name)
    shipped_file = files("harness") / "scenarios" / f"{name}.yaml"
    text = (shipped_file if shipped_file.is_file() else Path(name)).read_text(encoding="utf-8")
    console = stdout()
    if console.is_terminal:
        console.print(Syntax(text, "yaml", background_color="default"))
    else:
        typer.echo(text, nl=False)
