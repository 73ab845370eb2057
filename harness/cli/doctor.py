"""``seawall doctor``: checks what this machine has, what is missing, and how to get it; and a cluster's commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from harness.cli.terminal import stdout
from harness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from harness.cli.machine import Finding


def doctor(
    target: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="Try what faults do to this target's nodes, instead: cluster:FILE, compose:FILE."
        ),
    ] = None,
) -> int:
    """Print what this machine can do; 0 when the built-in cluster and the check work here, else 4."""
    if target is not None:
        return _of_target(target)
    from harness.cli.machine import findings
    from spark_analysis.installed import has_spark

    found = list(findings(Path("runs")))
    table = Table("", "what", "found", "needed for", "how to get it")
    for finding in found:
        cells = (finding.subject, finding.seen, finding.needed_for, "" if finding.present else finding.remedy)
        table.add_row(_mark(finding), *map(escape, cells))
    stdout().print(table)
    missing = [finding.subject for finding in found if finding.required and not finding.present]
    check = "the Spark check" if has_spark() else "the check by the reference engine"
    works = f"The built-in cluster and {check} work here."
    stdout().print(f"Missing or broken, and needed: {', '.join(missing)}." if missing else works)
    return ExitCode.ENVIRONMENT if missing else ExitCode.PASS


def _of_target(target: str) -> int:
    """Print what works of what a target is harmed by, a line each; 4 when something does not."""
    from harness.targets.kinds import kind_of

    kind = kind_of(target)
    if kind.tried is None:
        raise UsageError(f"target {target!r} has nothing of its user's to try.", "Leave --target out.")
    marks = {True: "[green]ok[/]", False: "[bold red]broken[/]", None: "[yellow]absent[/]"}
    broken = 0
    for one in kind.tried(target.partition(":")[2]):
        broken += one.works is False
        stdout().print(f"{marks[one.works]} {escape(one.what)}: {escape(one.seen)}", soft_wrap=True)
    return ExitCode.ENVIRONMENT if broken else ExitCode.PASS


def _mark(finding: Finding) -> str:
    if finding.present:
        return "[green]ok[/]"
    if finding.required:
        return f"[bold red]{finding.else_it_is or 'missing'}[/]"
    return f"[yellow]{finding.else_it_is or 'absent'}[/]"
