"""``seawall report``: writes the HTML report of a checked run again, or the index of many nights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UsageError


def report(
    run_directory: Annotated[
        Path | None, typer.Argument(metavar="RUN_DIR", exists=True, help="A checked run directory.")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(metavar="RUNS_DIR", help="Write the index of the nights below this directory instead."),
    ] = None,
    bank: Annotated[
        Path, typer.Option(metavar="FILE", help="With --index: the seed bank, whose seeds must pass for a fix.")
    ] = Path("seeds.yaml"),
) -> None:
    """Write report.html of a run that has been checked, or index.html of nights, and print its path.

    Ends with 3 unless the verdict is certainly that of the directory; the report then has a warning, too.
    """
    if (run_directory is None) == (index is None):
        raise UsageError("a report is of a run or of an index.", "Name RUN_DIR, or --index RUNS_DIR.")
    if index is not None:
        _index(index, bank)
    elif run_directory is not None:
        _report(run_directory)


def _index(directory: Path, bank: Path) -> None:
    from harness.nightly import bank as seeds
    from harness.nightly import index

    if not directory.is_dir():
        raise UsageError(f"{directory} does not exist, or is no directory.", "Name the directory of the nights.")
    typer.echo(index.write(directory, index.Nights.below(directory), seeds.read(bank)))


def _report(run_directory: Path) -> None:
    from harness.errors import InvalidRun
    from harness.history.run_directory import RunDirectory
    from harness.history.seal import doubts
    from reports import write

    typer.echo(write(run_directory))
    directory = RunDirectory(run_directory)
    if found := doubts(directory, directory.read_verdict() or {}):
        raise InvalidRun(" ".join(found), f"Judge it again: seawall check {run_directory}")
