"""``seawall doctor``: checks what this machine has, what is missing, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from harness.cli.terminal import stdout
from harness.errors import ExitCode

if TYPE_CHECKING:
    from harness.cli.machine import Finding


def doctor() -> int:
    """Print what this machine can do; 0 when the built-in cluster and the check work here, else 4."""
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


def _mark(finding: Finding) -> str:
    if finding.present:
        return "[green]ok[/]"
    if finding.required:
        return f"[bold red]{finding.else_it_is or 'missing'}[/]"
    return f"[yellow]{finding.else_it_is or 'absent'}[/]"
