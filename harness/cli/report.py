"""``seawall report``: writes the HTML report of a checked run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run_directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A checked run directory.")]) -> None:
    """Write report.html of a run that has been checked, and print its path.

    Ends with 3 unless the verdict is certainly that of the directory; the report then has a warning, too.
    """
    from harness.errors import InvalidRun
    from harness.history import RunDirectory
    from harness.history.seal import doubts
    from reports import write

    typer.echo(write(run_directory))
    directory = RunDirectory(run_directory)
    if found := doubts(directory, directory.read_verdict() or {}):
        raise InvalidRun(" ".join(found), f"Judge it again: seawall check {run_directory}")
