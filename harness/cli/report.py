"""``seawall report``: the HTML report of a checked run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run_directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A checked run directory.")]) -> None:
    """Write report.html of a run that has been checked, and print its path."""
    from reports import write

    typer.echo(write(run_directory))
