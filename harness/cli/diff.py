"""``seawall diff``: compares two checked runs, and says whether the second is worse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.terminal import stdout
from harness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from reports.comparison import Line


def diff(
    a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A checked run directory.")],
    b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The one that may be worse.")],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the same as an HTML page.")] = None,
    tolerance: Annotated[
        float, typer.Option(metavar="SHARE", min=0, help="How much worse a measure of B may be than A's.")
    ] = 0.5,
) -> int:
    """Compare two runs: verdicts, anomalies by kind and place, outages, recovery, latency, settings.

    Ends with 1 when B is worse.
    """
    from reports import comparison

    for path in (a, b):
        if not path.is_dir():
            raise UsageError(f"{path} does not exist, or is no directory.", "Name two run directories.")
    found = comparison.compare(a, b, tolerance)
    _show("", [found.outcome])
    _show("anomalies", found.anomalies)
    _show("availability and latency", found.measures)
    _show("settings that differ", found.settings)
    if found.settings_hidden:
        typer.echo(f"{found.settings_hidden} more settings differ; see both files run.json")
    typer.echo(f"B is worse: {', '.join(found.worse)}" if found.worse else "B is not worse")
    if html is not None:
        comparison.write(html, found)
        typer.echo(f"page: {html}")
    return ExitCode.VIOLATION if found.worse else ExitCode.PASS


def _show(title: str, lines: Sequence[Line]) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    if not lines:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in (title, "A", "B", "B is"):
        table.add_column(name, overflow="fold")
    for line in lines:
        change = f"[bold red]{line.change}[/]" if line.change == "worse" else line.change.value
        table.add_row(escape(line.what), escape(line.a), escape(line.b), change)
    stdout().print(table)
